-- What a result that was capped at insertion leaves of its message: the body that views show until a compaction covers it,
-- and its tokens. tokens stays that of the whole.
ALTER TABLE messages
    ADD COLUMN view_tokens integer CHECK (view_tokens >= 0),
    ADD CHECK ((view_body IS NULL) = (view_tokens IS NULL));

-- No result of fewer bytes than this is capped at insertion; NULL if none is. It stands beside the document because every
-- append of a result asks. A token, a character and a line have a byte at least.
ALTER TABLE policies
    ADD COLUMN caps_over integer GENERATED ALWAYS AS (
        CASE WHEN document #>> '{cap,enabled}' = 'true' AND document #>> '{cap,at_insertion}' = 'true'
             THEN least(nullif((document #>> '{cap,max_tokens}')::int, 0), nullif((document #>> '{cap,max_bytes}')::int, 0),
                        nullif((document #>> '{cap,max_chars}')::int, 0), nullif((document #>> '{cap,max_lines}')::int, 0), nullif((document #>> '{cap,max_line_chars}')::int, 0))
        END) STORED;
