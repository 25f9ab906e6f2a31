-- SQL cannot open a pack.
ALTER TABLE message_packs NO FORCE ROW LEVEL SECURITY;

DO $$
BEGIN
    IF EXISTS (SELECT FROM message_packs) THEN
        RAISE EXCEPTION 'messages lie in packs, which an older version cannot read: restore a backup from before';
    END IF;
END
$$;

ALTER TABLE checkpoint_results
    DROP CONSTRAINT checkpoint_results_pkey,
    ADD PRIMARY KEY (tenant_id, session_key, n, ref);

CREATE INDEX checkpoint_results_ref ON checkpoint_results (tenant_id, session_key, ref);

DROP TRIGGER messages_body ON messages;
DROP FUNCTION refuse_new_body();
DROP INDEX sessions_offload;

ALTER TABLE sessions
    DROP COLUMN offloaded_n;

ALTER TABLE messages
    DROP CONSTRAINT messages_packed_check,
    DROP CONSTRAINT messages_view_check,
    ADD CONSTRAINT messages_check CHECK ((view_body IS NULL) = (view_tokens IS NULL)),
    ALTER COLUMN body SET NOT NULL,
    ALTER COLUMN calls SET NOT NULL,
    ALTER COLUMN answers SET NOT NULL,
    DROP COLUMN bytes;

DROP TABLE message_packs;
