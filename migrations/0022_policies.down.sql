DROP INDEX sessions_policy;

DROP TABLE policy_versions;

ALTER TABLE policies
    DROP COLUMN patch,
    DROP COLUMN tenant_version,
    DROP COLUMN session_version;
