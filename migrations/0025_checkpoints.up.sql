-- restored_from is the checkpoint whose body, state and units this one has again. Such a checkpoint keeps its body beyond
-- the last ten, until another is restored.
ALTER TABLE checkpoints
    ADD COLUMN restored_from integer CHECK (restored_from < n);

-- Where a session's window comes from: its caller, the registry of models, or nobody, which makes it the default one.
-- Of a session that is older than this column it is not known; its window stays as it is.
ALTER TABLE sessions
    ADD COLUMN window_source text NOT NULL DEFAULT 'request' CHECK (window_source IN ('request', 'model', 'default'));
