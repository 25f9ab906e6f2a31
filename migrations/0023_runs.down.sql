-- A run that was postponed changed nothing, and what an administrator asked for was asked for by hand. The owner sees
-- all rows only while row-level security does not bind it.
ALTER TABLE runs NO FORCE ROW LEVEL SECURITY;
UPDATE runs SET state = 'unchanged' WHERE state = 'postponed';
UPDATE runs SET cause = 'manual' WHERE cause IN ('recompaction', 'restore');
ALTER TABLE runs FORCE ROW LEVEL SECURITY;

ALTER TABLE runs
    DROP COLUMN reason,
    DROP COLUMN why,
    DROP COLUMN report,
    DROP CONSTRAINT runs_state_check,
    DROP CONSTRAINT runs_cause_check,
    ADD CONSTRAINT runs_state_check CHECK (state IN ('queued', 'running', 'done', 'unchanged', 'superseded', 'failed')),
    ADD CONSTRAINT runs_cause_check CHECK (cause IN ('threshold', 'hard', 'manual', 'sweep', 'follow_up'));
