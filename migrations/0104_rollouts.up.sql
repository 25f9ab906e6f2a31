-- A new version of a tenant's policy, for a share of its sessions first. Of a tenant whose default is being replaced so,
-- policies has two rows for the sessions without a policy of their own: the default, and the one that is tried, whose id
-- is the rollout's. Both have the rollout's id and its share in thousandths.
ALTER TABLE policies
    ADD COLUMN rollout_id uuid,
    ADD COLUMN share      smallint CHECK (share BETWEEN 1 AND 1000),
    ADD COLUMN for_id     uuid NOT NULL GENERATED ALWAYS AS (
        CASE WHEN rollout_id = id THEN '00000000-0000-0000-0000-000000000000'::uuid ELSE id END) STORED,
    ADD CONSTRAINT policies_rollout_check CHECK (rollout_id IS NULL OR share IS NOT NULL),
    ADD CONSTRAINT policies_rollout FOREIGN KEY (tenant_id, rollout_id) REFERENCES policies (tenant_id, id)
        ON DELETE SET NULL (rollout_id);

CREATE INDEX policies_for ON policies (tenant_id, for_id);

CREATE TABLE policy_rollouts (
    tenant_id    uuid        NOT NULL REFERENCES tenants (id),
    id           uuid        NOT NULL,
    state        text        NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'promoted', 'back')),
    base_version integer     NOT NULL,
    version      integer     NOT NULL,
    share        smallint    NOT NULL CHECK (share BETWEEN 1 AND 1000),
    min_sessions integer     NOT NULL DEFAULT 0 CHECK (min_sessions >= 0),
    guard        jsonb,
    reason       text,
    recompaction uuid,
    revision     integer     NOT NULL DEFAULT 1,
    started_at   timestamptz NOT NULL DEFAULT now(),
    ended_at     timestamptz,
    PRIMARY KEY (tenant_id, id),
    CONSTRAINT policy_rollouts_ended CHECK ((ended_at IS NULL) = (state = 'running')),
    CONSTRAINT policy_rollouts_versions CHECK (version > base_version)
);

CREATE UNIQUE INDEX policy_rollouts_live ON policy_rollouts (tenant_id) WHERE ended_at IS NULL;

ALTER TABLE policy_rollouts ENABLE ROW LEVEL SECURITY;
ALTER TABLE policy_rollouts FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON policy_rollouts
    USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);

-- The versions of the tenant's and of the session's layer that a run was made under, NULL for a policy that was lent to
-- it; and how many of its attempts failed by the session's fault.
ALTER TABLE runs
    ADD COLUMN tenant_version  integer,
    ADD COLUMN session_version integer,
    ADD COLUMN failures        integer NOT NULL DEFAULT 0;

-- What ran under a version of a tenant's policy.
CREATE INDEX runs_version ON runs (tenant_id, tenant_version, finished_at) WHERE session_version = 0;

ALTER TABLE chores
    DROP CONSTRAINT chores_kind_check,
    ADD CONSTRAINT chores_kind_check CHECK (kind IN ('policy', 'recompaction', 'replay', 'index', 'erasure', 'rollout'));
