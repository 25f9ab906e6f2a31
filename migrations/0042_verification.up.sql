-- Where the periodic verification of a tenant's sessions is: the key of the last session of this round that was looked
-- at, and what the round and the one before it have read and found.
CREATE TABLE verifications (
    tenant_id    uuid        PRIMARY KEY REFERENCES tenants (id),
    cursor       uuid        NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    started_at   timestamptz NOT NULL DEFAULT now(),
    sessions     bigint      NOT NULL DEFAULT 0,
    bytes        bigint      NOT NULL DEFAULT 0,
    finished_at  timestamptz,
    last_sessions bigint     NOT NULL DEFAULT 0,
    last_bytes   bigint      NOT NULL DEFAULT 0,
    updated_at   timestamptz NOT NULL DEFAULT now()
);

-- What was found in a session when it was last looked at. There is no foreign key to sessions: rows without a session
-- are found, too.
CREATE TABLE findings (
    tenant_id   uuid        NOT NULL REFERENCES tenants (id),
    session_key uuid        NOT NULL,
    n           integer     NOT NULL,
    kind        text        NOT NULL,
    finding     jsonb       NOT NULL,
    found_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, session_key, n)
);

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['verifications', 'findings']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format($policy$CREATE POLICY tenant ON %I
            USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
            WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)$policy$, name);
    END LOOP;
END
$$;
