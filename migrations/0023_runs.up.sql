-- A run says why it was done now, or why not yet, and reports what it did. What waits until it is worth its price is
-- postponed; administrators recompact and restore.
ALTER TABLE runs
    DROP CONSTRAINT runs_state_check,
    DROP CONSTRAINT runs_cause_check,
    ADD CONSTRAINT runs_state_check CHECK (state IN ('queued', 'running', 'done', 'unchanged', 'postponed', 'superseded', 'failed')),
    ADD CONSTRAINT runs_cause_check CHECK (cause IN ('threshold', 'hard', 'manual', 'sweep', 'follow_up', 'recompaction', 'restore')),
    ADD COLUMN reason text  NOT NULL DEFAULT '',
    ADD COLUMN why    jsonb NOT NULL DEFAULT '{}',
    ADD COLUMN report jsonb NOT NULL DEFAULT '{}';
