-- The owner sees all rows only while row-level security does not bind it.
ALTER TABLE runs NO FORCE ROW LEVEL SECURITY;
UPDATE runs SET cause = 'threshold' WHERE cause = 'idle';
ALTER TABLE runs FORCE ROW LEVEL SECURITY;

ALTER TABLE runs
    DROP CONSTRAINT runs_cause_check,
    ADD CONSTRAINT runs_cause_check CHECK (cause IN ('threshold', 'hard', 'manual', 'sweep', 'follow_up', 'recompaction', 'restore'));
ALTER TABLE sessions
    DROP COLUMN idle_asked,
    DROP COLUMN floor_seq,
    DROP COLUMN floor_version;
ALTER TABLE policies
    DROP COLUMN idle_ratio,
    DROP COLUMN idle_after;
