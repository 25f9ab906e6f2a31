DELETE FROM chores WHERE kind = 'rollout';
ALTER TABLE chores
    DROP CONSTRAINT chores_kind_check,
    ADD CONSTRAINT chores_kind_check CHECK (kind IN ('policy', 'recompaction', 'replay', 'index', 'erasure'));
ALTER TABLE runs DROP COLUMN tenant_version, DROP COLUMN session_version, DROP COLUMN failures;
DROP TABLE policy_rollouts;
DROP INDEX policies_for;
ALTER TABLE policies DROP CONSTRAINT policies_rollout;
ALTER TABLE policies NO FORCE ROW LEVEL SECURITY;
UPDATE policies SET rollout_id = NULL, share = NULL WHERE rollout_id <> id;
DELETE FROM policies WHERE rollout_id = id;
ALTER TABLE policies FORCE ROW LEVEL SECURITY;
ALTER TABLE policies DROP COLUMN for_id, DROP COLUMN share, DROP COLUMN rollout_id;
