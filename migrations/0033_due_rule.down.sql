ALTER TABLE policies
    DROP COLUMN on_request,
    DROP COLUMN trigger_tokens,
    DROP COLUMN trim_ratio,
    DROP COLUMN budget_ratio,
    DROP COLUMN budget_min,
    DROP COLUMN budget_max,
    DROP COLUMN caps_over;
ALTER TABLE policies
    ADD COLUMN caps_over integer GENERATED ALWAYS AS (
        CASE
        WHEN document #>> '{cap,enabled}' = 'true' AND document #>> '{cap,at_insertion}' = 'true'
            THEN least(nullif((document #>> '{cap,max_tokens}')::integer, 0),
                       nullif((document #>> '{cap,max_bytes}')::integer, 0),
                       nullif((document #>> '{cap,max_chars}')::integer, 0),
                       nullif((document #>> '{cap,max_lines}')::integer, 0),
                       nullif((document #>> '{cap,max_line_chars}')::integer, 0))
        END
    ) STORED;
