-- Varve's own tables. Every table of a tenant has tenant_id first in every key, and row-level security that is forced
-- and fails closed: without app.tenant_id nothing is seen and nothing can be written. nullif, because the setting is
-- '' and not NULL once a transaction of the connection has set it.

CREATE TABLE tenants (
    id         uuid        PRIMARY KEY,
    name       text        NOT NULL UNIQUE CHECK (octet_length(name) BETWEEN 1 AND 255),
    created_at timestamptz NOT NULL DEFAULT now()
);

-- A key's text is shown once and never stored: only its SHA-256, and enough of its ends to recognise it in a list.
CREATE TABLE api_keys (
    tenant_id  uuid        NOT NULL REFERENCES tenants (id),
    id         uuid        NOT NULL,
    name       text        NOT NULL DEFAULT '',
    digest     bytea       NOT NULL CHECK (octet_length(digest) = 32),
    last4      text        NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz,
    revoked_at timestamptz,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, digest)
);

-- The nil uuid is a tenant's default policy; the others belong to one session each and are replaced, not changed.
-- The ratios stand beside the document because every append compares with them.
CREATE TABLE policies (
    tenant_id     uuid             NOT NULL REFERENCES tenants (id),
    id            uuid             NOT NULL,
    trigger_ratio double precision NOT NULL CHECK (trigger_ratio > 0 AND trigger_ratio <= 1),
    hard_ratio    double precision NOT NULL CHECK (hard_ratio >= trigger_ratio AND hard_ratio <= 1),
    cache_ttl     interval         NOT NULL DEFAULT '0',
    document      json             NOT NULL,
    created_at    timestamptz      NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, id)
);

-- wake is the level whose crossing makes the next append take the slow path: 1 trigger, 2 hard, 3 none.
-- floor_tokens is what the newest compaction could not remove; while it is above the trigger, the session is due only
-- after it grew by another twentieth of its window, so that a session that cannot shrink is not compacted at every append.
-- No counter is indexed and pages are filled to 70 %: an append's UPDATE then stays on its page.
CREATE TABLE sessions (
    tenant_id       uuid        NOT NULL REFERENCES tenants (id),
    key             uuid        NOT NULL,
    id              text        NOT NULL CHECK (octet_length(id) BETWEEN 1 AND 255),
    format          smallint    NOT NULL DEFAULT 0,
    model           text        NOT NULL DEFAULT '',
    window_tokens   integer     NOT NULL CHECK (window_tokens > 0),
    overhead_tokens integer     NOT NULL DEFAULT 0 CHECK (overhead_tokens >= 0),
    policy_id       uuid        NOT NULL,
    metadata        jsonb       NOT NULL DEFAULT '{}',
    last_seq        bigint      NOT NULL DEFAULT 0,
    pinned          bigint      NOT NULL DEFAULT 0, -- how many messages at the beginning are system messages
    tail_bytes      bigint      NOT NULL DEFAULT 0, -- of the messages after the newest checkpoint
    context_tokens  bigint      NOT NULL DEFAULT 0,
    total_tokens    bigint      NOT NULL DEFAULT 0,
    floor_tokens    bigint      NOT NULL DEFAULT 0,
    wake            smallint    NOT NULL DEFAULT 1 CHECK (wake BETWEEN 1 AND 3),
    checkpoint_n    integer     NOT NULL DEFAULT 0, -- the newest checkpoint, 0 for none
    through_seq     bigint      NOT NULL DEFAULT 0, -- the last message that it covers
    checkpoint_size integer     NOT NULL DEFAULT 0, -- of its body, decompressed
    created_at      timestamptz NOT NULL DEFAULT now(),
    last_append_at  timestamptz,
    PRIMARY KEY (tenant_id, key),
    UNIQUE (tenant_id, id),
    FOREIGN KEY (tenant_id, policy_id) REFERENCES policies (tenant_id, id)
) WITH (fillfactor = 70);

CREATE INDEX sessions_newest ON sessions (tenant_id, created_at DESC, key DESC);

-- body is what came in, to the byte. Rows are written once: varve_app has no right to UPDATE them. There is no foreign
-- key to sessions because every insert selects from the UPDATE of its session's row.
CREATE TABLE messages (
    tenant_id   uuid        NOT NULL,
    session_key uuid        NOT NULL,
    seq         bigint      NOT NULL CHECK (seq > 0),
    role        text        NOT NULL,
    format      smallint    NOT NULL,
    tokens      integer     NOT NULL CHECK (tokens >= 0),
    client_id   text,
    calls       text[]      NOT NULL DEFAULT '{}',
    answers     text[]      NOT NULL DEFAULT '{}',
    starts_unit boolean     NOT NULL,
    flags       integer     NOT NULL DEFAULT 0,
    body        bytea       NOT NULL,
    view_body   bytea,
    created_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, session_key, seq)
);

CREATE UNIQUE INDEX messages_client_id ON messages (tenant_id, session_key, client_id) WHERE client_id IS NOT NULL;

-- body holds zstd blocks that are spliced into an answer's frame as they are, state is zstd; both are NULL in all but
-- the last ten checkpoints of a session.
CREATE TABLE checkpoints (
    tenant_id      uuid        NOT NULL,
    session_key    uuid        NOT NULL,
    n              integer     NOT NULL CHECK (n > 0),
    base_n         integer     NOT NULL,
    through_seq    bigint      NOT NULL,
    tokens         bigint      NOT NULL,
    body           bytea,
    body_size      integer     NOT NULL,
    state          bytea,
    units          jsonb       NOT NULL,
    manifest       jsonb       NOT NULL,
    open_calls     text[]      NOT NULL DEFAULT '{}',
    policy         json        NOT NULL,
    engine_version integer     NOT NULL,
    run_id         uuid        NOT NULL,
    created_at     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, session_key, n),
    FOREIGN KEY (tenant_id, session_key) REFERENCES sessions (tenant_id, key)
);

ALTER TABLE checkpoints
    ALTER COLUMN body SET STORAGE EXTERNAL,
    ALTER COLUMN state SET STORAGE EXTERNAL;

CREATE TABLE results (
    tenant_id   uuid        NOT NULL,
    session_key uuid        NOT NULL,
    ref         text        NOT NULL,
    seq         bigint      NOT NULL,
    part        integer     NOT NULL,
    tool_name   text        NOT NULL,
    call_id     text        NOT NULL,
    category    text        NOT NULL,
    media_type  text        NOT NULL,
    bytes       bigint      NOT NULL,
    lines       bigint      NOT NULL,
    tokens      bigint      NOT NULL,
    sha256      bytea       NOT NULL CHECK (octet_length(sha256) = 32),
    created_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, session_key, ref),
    UNIQUE (tenant_id, session_key, seq, part),
    FOREIGN KEY (tenant_id, session_key) REFERENCES sessions (tenant_id, key)
);

-- Equal results of one session share a body. codec: 0 as it is, 1 zstd.
CREATE TABLE result_bodies (
    tenant_id   uuid     NOT NULL,
    session_key uuid     NOT NULL,
    sha256      bytea    NOT NULL,
    codec       smallint NOT NULL,
    body        bytea    NOT NULL,
    PRIMARY KEY (tenant_id, session_key, sha256)
);

ALTER TABLE result_bodies
    ALTER COLUMN body SET STORAGE EXTERNAL;

-- The foreign key below looks results up by their body whenever a body is deleted.
CREATE INDEX results_body ON results (tenant_id, session_key, sha256);

ALTER TABLE results
    ADD FOREIGN KEY (tenant_id, session_key, sha256) REFERENCES result_bodies (tenant_id, session_key, sha256)
    DEFERRABLE INITIALLY DEFERRED;

-- The refs that a checkpoint names and its base does not: the database refuses a checkpoint that names a result that is
-- not there, and the deletion of a result that a checkpoint names.
CREATE TABLE checkpoint_results (
    tenant_id   uuid    NOT NULL,
    session_key uuid    NOT NULL,
    n           integer NOT NULL,
    ref         text    NOT NULL,
    PRIMARY KEY (tenant_id, session_key, n, ref),
    FOREIGN KEY (tenant_id, session_key, n) REFERENCES checkpoints (tenant_id, session_key, n) DEFERRABLE INITIALLY DEFERRED,
    FOREIGN KEY (tenant_id, session_key, ref) REFERENCES results (tenant_id, session_key, ref) DEFERRABLE INITIALLY DEFERRED
);

CREATE INDEX checkpoint_results_ref ON checkpoint_results (tenant_id, session_key, ref);

CREATE TABLE runs (
    tenant_id         uuid        NOT NULL,
    id                uuid        NOT NULL,
    session_key       uuid        NOT NULL,
    cause             text        NOT NULL CHECK (cause IN ('threshold', 'hard', 'manual', 'sweep', 'follow_up')),
    state             text        NOT NULL CHECK (state IN ('queued', 'running', 'done', 'unchanged', 'superseded', 'failed')),
    job_id            bigint      NOT NULL,
    base_n            integer,
    checkpoint_n      integer,
    through_seq       bigint,
    tokens_before     bigint,
    tokens_after      bigint,
    results_persisted integer,
    bytes_persisted   bigint,
    stages            jsonb       NOT NULL DEFAULT '[]',
    timings           jsonb       NOT NULL DEFAULT '{}',
    error             text,
    triggered_at      timestamptz NOT NULL DEFAULT now(),
    started_at        timestamptz,
    finished_at       timestamptz,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, session_key) REFERENCES sessions (tenant_id, key)
);

CREATE INDEX runs_newest ON runs (tenant_id, session_key, triggered_at DESC, id DESC);

-- A record lives as long as the session that its request was about: an erased session leaves no answer behind, and a new
-- one under the same id begins anew.
CREATE TABLE idempotency (
    tenant_id   uuid        NOT NULL,
    route       text        NOT NULL,
    key         text        NOT NULL,
    session_key uuid        NOT NULL,
    digest      bytea       NOT NULL,
    answer      text        NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, route, key)
);

CREATE INDEX idempotency_session ON idempotency (tenant_id, session_key);

CREATE INDEX idempotency_age ON idempotency (tenant_id, created_at);

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['api_keys', 'policies', 'sessions', 'messages', 'checkpoints', 'results',
                                'result_bodies', 'checkpoint_results', 'runs', 'idempotency']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format($policy$CREATE POLICY tenant ON %I
            USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
            WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)$policy$, name);
    END LOOP;
END
$$;
