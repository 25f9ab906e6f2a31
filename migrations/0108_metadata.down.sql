DELETE FROM chores WHERE kind NOT IN ('policy', 'recompaction', 'replay', 'index', 'erasure', 'rollout');
ALTER TABLE chores
    DROP CONSTRAINT chores_kind_check,
    ADD CONSTRAINT chores_kind_check CHECK (kind IN ('policy', 'recompaction', 'replay', 'index', 'erasure', 'rollout'));
DROP TRIGGER sessions_metadata_gone ON sessions;
DROP TRIGGER sessions_metadata_changed ON sessions;
DROP TRIGGER sessions_metadata_made ON sessions;
DROP FUNCTION index_metadata;
DROP FUNCTION metadata_pairs;
DROP TABLE session_metadata;
