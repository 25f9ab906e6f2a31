-- A session token lets its holder reach one session for at most a day. It ends with the API key that made it, and with
-- its session: a session that is made anew under the same id has another key.
CREATE TABLE session_tokens (
    tenant_id   uuid        NOT NULL,
    session_key uuid        NOT NULL,
    id          uuid        NOT NULL,
    name        text        NOT NULL DEFAULT '',
    digest      bytea       NOT NULL CHECK (octet_length(digest) = 32),
    last4       text        NOT NULL,
    scopes      text[]      NOT NULL CHECK (scopes @> ARRAY['read'] AND scopes <@ ARRAY['read', 'compact']),
    made_by     uuid        NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),
    expires_at  timestamptz NOT NULL CHECK (expires_at <= created_at + interval '24 hours'),
    revoked_at  timestamptz,
    PRIMARY KEY (tenant_id, session_key, id),
    FOREIGN KEY (tenant_id, session_key) REFERENCES sessions (tenant_id, key),
    FOREIGN KEY (tenant_id, made_by) REFERENCES api_keys (tenant_id, id)
);

CREATE UNIQUE INDEX session_tokens_digest ON session_tokens (tenant_id, digest);

ALTER TABLE session_tokens ENABLE ROW LEVEL SECURITY;
ALTER TABLE session_tokens FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON session_tokens
    USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);
