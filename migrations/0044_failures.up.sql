-- The processes that work jobs. Each renews its row every second; one that is silent for some seconds is dead, and the
-- others take over its jobs. The rows name no tenant. unbroken is since when a process has not been late: one that was
-- late itself cannot tell whether others are dead or the database was away.
CREATE TABLE workers (
    id         text        PRIMARY KEY,
    started_at timestamptz NOT NULL DEFAULT now(),
    unbroken   timestamptz NOT NULL DEFAULT now(),
    renewed_at timestamptz NOT NULL DEFAULT now(),
    dead_at    timestamptz
);

-- A session whose compaction fails, until one succeeds. failures are its own errors; deaths are workers that died while
-- they compacted it. From quarantined_at on it is tried seldom, alone in its process, or when somebody asks.
CREATE TABLE session_failures (
    tenant_id      uuid        NOT NULL,
    session_key    uuid        NOT NULL,
    run_id         uuid        NOT NULL,
    job_id         bigint      NOT NULL,
    failures       integer     NOT NULL DEFAULT 0,
    deaths         integer     NOT NULL DEFAULT 0,
    trials         integer     NOT NULL DEFAULT 0,
    error          text        NOT NULL,
    since          timestamptz NOT NULL DEFAULT now(),
    failed_at      timestamptz NOT NULL DEFAULT now(),
    next_try_at    timestamptz NOT NULL,
    quarantined_at timestamptz,
    PRIMARY KEY (tenant_id, session_key),
    FOREIGN KEY (tenant_id, session_key) REFERENCES sessions (tenant_id, key)
);
ALTER TABLE session_failures ENABLE ROW LEVEL SECURITY;
ALTER TABLE session_failures FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON session_failures
    USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);
