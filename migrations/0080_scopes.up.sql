-- What a key may do, the key that it takes the place of, and when it was used, as of some minutes ago. Keys of before
-- may do everything, as do those that a program of before makes.
ALTER TABLE api_keys
    ADD COLUMN scopes text[] NOT NULL DEFAULT ARRAY['sessions:read', 'sessions:write', 'results:read', 'compact',
        'policy', 'export', 'erase', 'admin'],
    ADD COLUMN replaces uuid,
    ADD COLUMN last_used_at timestamptz,
    ADD CONSTRAINT api_keys_scopes_check CHECK (cardinality(scopes) > 0 AND scopes <@ ARRAY['sessions:read',
        'sessions:write', 'results:read', 'compact', 'policy', 'export', 'erase', 'admin']);

CREATE INDEX api_keys_newest ON api_keys (tenant_id, created_at DESC, id DESC);

-- Keys of operators belong to no tenant. Only varve_admin may read them.
CREATE TABLE operator_keys (
    id           uuid        PRIMARY KEY,
    name         text        NOT NULL DEFAULT '',
    digest       bytea       NOT NULL CHECK (octet_length(digest) = 32),
    last4        text        NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    expires_at   timestamptz,
    revoked_at   timestamptz,
    last_used_at timestamptz,
    CONSTRAINT operator_keys_digest_key UNIQUE (digest)
);

-- A key that has ended does not live again, and none lives for longer than it was made for: whoever is not the owner of
-- the table may only end keys.
CREATE FUNCTION refuse_revival() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF pg_has_role(current_user, (SELECT relowner FROM pg_class WHERE oid = TG_RELID), 'USAGE') THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'a key may be ended, and not be given more time';
END
$$;

CREATE TRIGGER api_keys_end
    BEFORE UPDATE OF revoked_at, expires_at ON api_keys
    FOR EACH ROW
    WHEN (OLD.revoked_at IS NOT NULL AND NEW.revoked_at IS DISTINCT FROM OLD.revoked_at
        OR OLD.expires_at IS NOT NULL AND (NEW.expires_at > OLD.expires_at) IS NOT FALSE)
    EXECUTE FUNCTION refuse_revival();

CREATE TRIGGER operator_keys_end
    BEFORE UPDATE OF revoked_at, expires_at ON operator_keys
    FOR EACH ROW
    WHEN (OLD.revoked_at IS NOT NULL AND NEW.revoked_at IS DISTINCT FROM OLD.revoked_at
        OR OLD.expires_at IS NOT NULL AND (NEW.expires_at > OLD.expires_at) IS NOT FALSE)
    EXECUTE FUNCTION refuse_revival();
