-- An import of conversations. done is how many of its lines are acknowledged: they are stored, in the transaction that
-- says so. attempt grows with every request that sends lines, so that one that was given up cannot write behind the one
-- that took over. digest is what the lines so far hash to. key is the Idempotency-Key that began it.
CREATE TABLE imports (
    tenant_id   uuid        NOT NULL REFERENCES tenants (id),
    id          uuid        NOT NULL,
    state       text        NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'running', 'succeeded', 'failed')),
    key         text,
    source      text        NOT NULL DEFAULT '', -- '' until the first line says it
    wanted      text        NOT NULL DEFAULT '', -- the source that the caller named
    session     text        NOT NULL DEFAULT '', -- the id that the caller named for what the file holds
    attempt     integer     NOT NULL DEFAULT 0,
    done        bigint      NOT NULL DEFAULT 0,
    total       bigint,
    bytes       bigint      NOT NULL DEFAULT 0,
    digest      bytea       NOT NULL DEFAULT '',
    sessions    bigint      NOT NULL DEFAULT 0,
    messages    bigint      NOT NULL DEFAULT 0,
    duplicates  bigint      NOT NULL DEFAULT 0,
    rejected    bigint      NOT NULL DEFAULT 0,
    report      jsonb       NOT NULL DEFAULT '{}',
    error       text,
    created_at  timestamptz NOT NULL DEFAULT now(),
    updated_at  timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    PRIMARY KEY (tenant_id, id)
);

CREATE UNIQUE INDEX imports_key ON imports (tenant_id, key) WHERE key IS NOT NULL;

CREATE INDEX imports_newest ON imports (tenant_id, created_at DESC, id DESC);

-- What became of the lines of an import. A row is a run of them: n, line and seq grow by one from line to line, all else
-- is the same. n counts from 1 in the order of storing, line in the file. There is no foreign key to sessions: the session
-- of an erased one is not named any more.
CREATE TABLE import_lines (
    tenant_id   uuid    NOT NULL,
    import_id   uuid    NOT NULL,
    n           bigint  NOT NULL CHECK (n > 0),
    lines       integer NOT NULL CHECK (lines > 0),
    line        bigint  NOT NULL,
    outcome     text    NOT NULL CHECK (outcome IN ('created', 'exists', 'stored', 'duplicate', 'checked', 'skipped', 'rejected')),
    session_key uuid,
    seq         bigint,
    detail      text    NOT NULL DEFAULT '',
    PRIMARY KEY (tenant_id, import_id, n),
    FOREIGN KEY (tenant_id, import_id) REFERENCES imports (tenant_id, id)
);

CREATE INDEX import_lines_rejected ON import_lines (tenant_id, import_id, n) WHERE outcome = 'rejected';

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['imports', 'import_lines']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format($policy$CREATE POLICY tenant ON %I
            USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
            WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)$policy$, name);
    END LOOP;
END
$$;
