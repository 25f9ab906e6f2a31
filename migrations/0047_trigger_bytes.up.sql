-- A view is due by its bytes, too: pictures have few tokens. A document from before has the default.
ALTER TABLE policies
    ADD COLUMN trigger_bytes bigint NOT NULL GENERATED ALWAYS AS (
        coalesce((document #>> '{trigger_bytes}')::bigint, 16777216)
    ) STORED;
