-- The owner sees all rows only while row-level security does not bind it.
ALTER TABLE runs NO FORCE ROW LEVEL SECURITY;
UPDATE runs SET cause = 'manual' WHERE cause = 'damage';
ALTER TABLE runs FORCE ROW LEVEL SECURITY;

ALTER TABLE runs
    DROP CONSTRAINT runs_cause_check,
    ADD CONSTRAINT runs_cause_check CHECK (cause IN ('threshold', 'hard', 'idle', 'manual', 'sweep', 'follow_up', 'recompaction', 'restore'));

ALTER TABLE sessions
    DROP COLUMN damaged_n;

ALTER TABLE checkpoints
    DROP COLUMN body_digest,
    DROP COLUMN state_digest;

ALTER TABLE messages
    DROP COLUMN digest;
