-- A replay measures policies over stored sessions of a tenant. It reads their logs, and changes none of them. contender
-- is the one that is being measured.
CREATE TABLE replays (
    tenant_id    uuid        NOT NULL REFERENCES tenants (id),
    id           uuid        NOT NULL,
    state        text        NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'running', 'cancelling', 'done', 'failed', 'cancelled')),
    filter       jsonb       NOT NULL,
    contenders   json        NOT NULL,
    windows      integer[]   NOT NULL,
    sample       integer     NOT NULL CHECK (sample BETWEEN 1 AND 1000),
    seed         bigint      NOT NULL,
    max_messages bigint      NOT NULL,
    max_bytes    bigint      NOT NULL,
    matched      bigint      NOT NULL DEFAULT 0,
    too_short    bigint      NOT NULL DEFAULT 0,
    total        bigint      NOT NULL DEFAULT 0,
    contender    text,
    report       json,
    error        text,
    created_at   timestamptz NOT NULL DEFAULT now(),
    started_at   timestamptz,
    finished_at  timestamptz,
    PRIMARY KEY (tenant_id, id)
);

CREATE INDEX replays_newest ON replays (tenant_id, created_at DESC, id DESC);

-- A tenant has one replay at a time.
CREATE UNIQUE INDEX replays_live ON replays (tenant_id) WHERE finished_at IS NULL;

-- The sessions of a replay in the order of their sample, with the log and the window that they had when the sample was
-- taken: a replay that is continued measures what it began with. attempts counts since the last outcome. There is no
-- foreign key to sessions: taking the sample would wait for every session that is just being erased.
CREATE TABLE replay_sessions (
    tenant_id     uuid        NOT NULL,
    replay_id     uuid        NOT NULL,
    session_key   uuid        NOT NULL,
    place         integer     NOT NULL,
    last_seq      bigint      NOT NULL,
    window_tokens integer     NOT NULL,
    state         text        NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'measured', 'skipped', 'failed')),
    reason        text,
    attempts      integer     NOT NULL DEFAULT 0,
    finished_at   timestamptz,
    PRIMARY KEY (tenant_id, replay_id, session_key),
    FOREIGN KEY (tenant_id, replay_id) REFERENCES replays (tenant_id, id)
);

CREATE UNIQUE INDEX replay_sessions_order ON replay_sessions (tenant_id, replay_id, place);

CREATE INDEX replay_sessions_left ON replay_sessions (tenant_id, replay_id, place) WHERE finished_at IS NULL;

-- For the erasure of a session.
CREATE INDEX replay_sessions_session ON replay_sessions (tenant_id, session_key);

-- What was measured of one session under one contender, by its place in the replay's list, in one window.
CREATE TABLE replay_outcomes (
    tenant_id     uuid    NOT NULL,
    replay_id     uuid    NOT NULL,
    session_key   uuid    NOT NULL,
    contender     integer NOT NULL,
    window_tokens integer NOT NULL,
    outcome       jsonb   NOT NULL,
    PRIMARY KEY (tenant_id, replay_id, session_key, contender, window_tokens),
    FOREIGN KEY (tenant_id, replay_id, session_key) REFERENCES replay_sessions (tenant_id, replay_id, session_key)
);

CREATE INDEX replay_outcomes_session ON replay_outcomes (tenant_id, session_key);

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['replays', 'replay_sessions', 'replay_outcomes']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format($policy$CREATE POLICY tenant ON %I
            USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
            WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)$policy$, name);
    END LOOP;
END
$$;
