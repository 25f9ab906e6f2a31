-- When a tenant's sessions expire: so long after the last append (or, without one, after their creation), and so long
-- after their creation. NULL is never. looked_at is when a worker last looked for expired sessions.
CREATE TABLE retention (
    tenant_id    uuid        NOT NULL PRIMARY KEY REFERENCES tenants (id),
    idle_seconds bigint      CHECK (idle_seconds > 0),
    age_seconds  bigint      CHECK (age_seconds > 0),
    looked_at    timestamptz NOT NULL DEFAULT '-infinity'
);
CREATE INDEX retention_looked_at ON retention (looked_at);

-- What a session has in place of its tenant's retention. look_at is the earliest time at which it may be expired: an
-- append does not move it, the worker that looks then does.
CREATE TABLE session_retention (
    tenant_id    uuid        NOT NULL,
    session_key  uuid        NOT NULL,
    idle_seconds bigint      CHECK (idle_seconds > 0),
    age_seconds  bigint      CHECK (age_seconds > 0),
    look_at      timestamptz,
    PRIMARY KEY (tenant_id, session_key),
    FOREIGN KEY (tenant_id, session_key) REFERENCES sessions (tenant_id, key)
);
CREATE INDEX session_retention_look_at ON session_retention (tenant_id, look_at) WHERE look_at IS NOT NULL;

ALTER TABLE retention ENABLE ROW LEVEL SECURITY;
ALTER TABLE retention FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON retention
    USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);

ALTER TABLE session_retention ENABLE ROW LEVEL SECURITY;
ALTER TABLE session_retention FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON session_retention
    USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);

-- Sessions to which nothing was ever appended, in the order in which they were made.
CREATE INDEX usage_sessions_empty ON usage_sessions (tenant_id, session_key) WHERE appended_at IS NULL;

-- An erasure of sessions that have expired.
ALTER TABLE erasures DROP CONSTRAINT erasures_kind_check;
ALTER TABLE erasures ADD CONSTRAINT erasures_kind_check
    CHECK (kind IN ('session', 'subject', 'tenant', 'retention'));
CREATE UNIQUE INDEX erasures_of_expired ON erasures (tenant_id) WHERE kind = 'retention' AND state <> 'done';
