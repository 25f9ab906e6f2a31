-- When a session is due is a matter of the policy's document, beside the columns trigger_ratio and hard_ratio: package
-- due compares these with every append. A document from before has none of the fields, which then have no effect.
ALTER TABLE policies
    ADD COLUMN on_request boolean NOT NULL GENERATED ALWAYS AS (
        (document #>> '{enabled}') IS NOT DISTINCT FROM 'false' OR (document #>> '{auto}') IS NOT DISTINCT FROM 'false'
    ) STORED,
    ADD COLUMN trigger_tokens bigint NOT NULL GENERATED ALWAYS AS (
        coalesce((document #>> '{trigger_tokens}')::bigint, 0)
    ) STORED,
    ADD COLUMN trim_ratio double precision NOT NULL GENERATED ALWAYS AS (
        CASE
        WHEN document #>> '{trim,enabled}' = 'true' AND document #>> '{trim,eager}' = 'true'
            THEN greatest((document #>> '{trim,floor_ratio}')::double precision, 0.00001)
        ELSE 0
        END
    ) STORED,
    ADD COLUMN budget_ratio double precision NOT NULL GENERATED ALWAYS AS (
        CASE
        WHEN document #>> '{budget,enabled}' = 'true' AND document #>> '{budget,eager}' = 'true'
             AND (document #>> '{budget,tokens}')::bigint = 0
            THEN (document #>> '{budget,ratio}')::double precision
        ELSE 0
        END
    ) STORED,
    ADD COLUMN budget_min bigint NOT NULL GENERATED ALWAYS AS (
        CASE
        WHEN document #>> '{budget,enabled}' = 'true' AND document #>> '{budget,eager}' = 'true'
            THEN coalesce(nullif((document #>> '{budget,tokens}')::bigint, 0),
                          (document #>> '{budget,min_tokens}')::bigint)
        ELSE 0
        END
    ) STORED,
    ADD COLUMN budget_max bigint NOT NULL GENERATED ALWAYS AS (
        CASE
        WHEN document #>> '{budget,enabled}' = 'true' AND document #>> '{budget,eager}' = 'true'
            THEN coalesce(nullif((document #>> '{budget,tokens}')::bigint, 0),
                          (document #>> '{budget,max_tokens}')::bigint)
        ELSE 0
        END
    ) STORED;

-- A policy that is switched off caps nothing.
ALTER TABLE policies DROP COLUMN caps_over;
ALTER TABLE policies
    ADD COLUMN caps_over integer GENERATED ALWAYS AS (
        CASE
        WHEN (document #>> '{enabled}') IS DISTINCT FROM 'false'
             AND document #>> '{cap,enabled}' = 'true' AND document #>> '{cap,at_insertion}' = 'true'
            THEN least(nullif((document #>> '{cap,max_tokens}')::integer, 0),
                       nullif((document #>> '{cap,max_bytes}')::integer, 0),
                       nullif((document #>> '{cap,max_chars}')::integer, 0),
                       nullif((document #>> '{cap,max_lines}')::integer, 0),
                       nullif((document #>> '{cap,max_line_chars}')::integer, 0))
        END
    ) STORED;
