-- A session that nobody uses is compacted below its trigger, from a share of the window on, once its provider's cache is
-- cold. idle_asked says that it has asked for that since its newest compaction. A document from before has no such
-- field, which then has no effect.
--
-- A floor ends with the message floor_seq, after which the policy protects less (0: only growth ends it), and with
-- another version of the tenant's policy. The floors from before end now.
ALTER TABLE policies
    ADD COLUMN idle_ratio double precision NOT NULL GENERATED ALWAYS AS (
        CASE
        WHEN document #>> '{idle,enabled}' = 'true'
             AND greatest((document #>> '{idle,after_seconds}')::bigint,
                          (document #>> '{economy,ttl_seconds}')::bigint) > 0
            THEN (document #>> '{idle,from}')::double precision
        ELSE 0
        END
    ) STORED,
    ADD COLUMN idle_after bigint NOT NULL GENERATED ALWAYS AS (
        CASE
        WHEN document #>> '{idle,enabled}' = 'true'
            THEN coalesce(nullif((document #>> '{idle,after_seconds}')::bigint, 0),
                          (document #>> '{economy,ttl_seconds}')::bigint)
        ELSE 0
        END
    ) STORED;

ALTER TABLE sessions
    ADD COLUMN idle_asked    boolean NOT NULL DEFAULT false,
    ADD COLUMN floor_seq     bigint  NOT NULL DEFAULT 0,
    ADD COLUMN floor_version integer NOT NULL DEFAULT 0;

ALTER TABLE runs
    DROP CONSTRAINT runs_cause_check,
    ADD CONSTRAINT runs_cause_check CHECK (cause IN ('threshold', 'hard', 'idle', 'manual', 'sweep', 'follow_up', 'recompaction', 'restore'));
