-- A policy is made of layers: a profile, the tenant's default, a session's own. patch is the layer of this row, document
-- the whole policy that comes of it and the layers below. A row says under which versions of the two layers it was made;
-- session_version is 0 in a tenant's default. A session's row is made anew when its tenant's default changes.
ALTER TABLE policies
    ADD COLUMN patch           json    NOT NULL DEFAULT '{}',
    ADD COLUMN tenant_version  integer NOT NULL DEFAULT 1 CHECK (tenant_version > 0),
    ADD COLUMN session_version integer NOT NULL DEFAULT 0 CHECK (session_version >= 0);

-- Every version of every layer, as it was made. The nil uuid stands for the tenant's default. patch and document are
-- NULL where the version is that the session has no policy of its own any more. changed_by is the key that did it, NULL
-- for the operator.
CREATE TABLE policy_versions (
    tenant_id      uuid        NOT NULL REFERENCES tenants (id),
    session_key    uuid        NOT NULL,
    version        integer     NOT NULL CHECK (version > 0),
    tenant_version integer     NOT NULL,
    patch          json,
    document       json,
    changed_by     uuid,
    created_at     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, session_key, version)
);

-- The foreign key from sessions looks for those that have a policy whenever one is deleted.
CREATE INDEX sessions_policy ON sessions (tenant_id, policy_id);

-- What is there already becomes version 1. Row-level security is forced on the owner, too, who has no tenant here.
ALTER TABLE policies NO FORCE ROW LEVEL SECURITY;
ALTER TABLE sessions NO FORCE ROW LEVEL SECURITY;

UPDATE policies
   SET patch = document,
       session_version = CASE WHEN id = '00000000-0000-0000-0000-000000000000' THEN 0 ELSE 1 END;

INSERT INTO policy_versions (tenant_id, session_key, version, tenant_version, patch, document, created_at)
SELECT tenant_id, id, 1, 1, patch, document, created_at
  FROM policies
 WHERE id = '00000000-0000-0000-0000-000000000000';

INSERT INTO policy_versions (tenant_id, session_key, version, tenant_version, patch, document, created_at)
SELECT p.tenant_id, s.key, 1, 1, p.patch, p.document, p.created_at
  FROM policies p
  JOIN sessions s ON s.tenant_id = p.tenant_id AND s.policy_id = p.id
 WHERE p.id <> '00000000-0000-0000-0000-000000000000';

ALTER TABLE policies FORCE ROW LEVEL SECURITY;
ALTER TABLE sessions FORCE ROW LEVEL SECURITY;

ALTER TABLE policy_versions ENABLE ROW LEVEL SECURITY;
ALTER TABLE policy_versions FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON policy_versions
    USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);
