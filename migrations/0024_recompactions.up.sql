-- A recompaction campaign compacts many sessions of a tenant anew, from their logs. cursor is how far its sessions were
-- looked for, by key.
CREATE TABLE recompactions (
    tenant_id     uuid        NOT NULL REFERENCES tenants (id),
    id            uuid        NOT NULL,
    state         text        NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'running', 'cancelling', 'done', 'failed', 'cancelled')),
    filter        jsonb       NOT NULL,
    policy        json,
    max_running   integer     NOT NULL CHECK (max_running BETWEEN 1 AND 32),
    cursor        uuid        NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    total         bigint      NOT NULL DEFAULT 0,
    changed       bigint      NOT NULL DEFAULT 0,
    unchanged     bigint      NOT NULL DEFAULT 0,
    failed        bigint      NOT NULL DEFAULT 0,
    skipped       bigint      NOT NULL DEFAULT 0,
    tokens_before bigint      NOT NULL DEFAULT 0,
    tokens_after  bigint      NOT NULL DEFAULT 0,
    error         text,
    created_at    timestamptz NOT NULL DEFAULT now(),
    started_at    timestamptz,
    finished_at   timestamptz,
    PRIMARY KEY (tenant_id, id)
);

CREATE INDEX recompactions_newest ON recompactions (tenant_id, created_at DESC, id DESC);

CREATE INDEX recompactions_live ON recompactions (tenant_id, id) WHERE finished_at IS NULL;

-- One row for each session of a campaign. There is no foreign key to sessions: filling would wait for every session that
-- is just being erased; its rows are erased with it.
CREATE TABLE recompaction_sessions (
    tenant_id       uuid        NOT NULL,
    recompaction_id uuid        NOT NULL,
    session_key     uuid        NOT NULL,
    state           text        NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'running', 'changed', 'unchanged', 'failed')),
    failures        integer     NOT NULL DEFAULT 0,
    job_id          bigint,
    run_id          uuid,
    tokens_before   bigint,
    tokens_after    bigint,
    error           text,
    finished_at     timestamptz,
    PRIMARY KEY (tenant_id, recompaction_id, session_key),
    FOREIGN KEY (tenant_id, recompaction_id) REFERENCES recompactions (tenant_id, id)
);

-- What a campaign has to do next: those that failed least often first.
CREATE INDEX recompaction_sessions_left ON recompaction_sessions (tenant_id, recompaction_id, state, failures, session_key)
    WHERE finished_at IS NULL;

CREATE INDEX recompaction_sessions_failed ON recompaction_sessions (tenant_id, recompaction_id, finished_at DESC)
    WHERE state = 'failed';

-- For the erasure of a session.
CREATE INDEX recompaction_sessions_session ON recompaction_sessions (tenant_id, session_key);

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['recompactions', 'recompaction_sessions']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format($policy$CREATE POLICY tenant ON %I
            USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
            WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)$policy$, name);
    END LOOP;
END
$$;
