-- The pairs of a key and a value that sessions have as metadata, by a hash: behind row-level security no operator of
-- jsonb may use an index, because none is leakproof. A trigger writes them, so that programs of before do, too; an append
-- does not change them. Other sessions may have a pair of the same hash, and a pair may be there that its session has
-- had before: who reads them compares the metadata itself.
CREATE TABLE session_metadata (
    tenant_id   uuid        NOT NULL,
    session_key uuid        NOT NULL,
    pair        bigint      NOT NULL,
    created_at  timestamptz NOT NULL, -- of the session: lists are in this order
    PRIMARY KEY (tenant_id, session_key, pair),
    FOREIGN KEY (tenant_id, session_key) REFERENCES sessions (tenant_id, key)
);
CREATE INDEX session_metadata_pair ON session_metadata (tenant_id, pair, created_at DESC, session_key DESC);

ALTER TABLE session_metadata ENABLE ROW LEVEL SECURITY;
ALTER TABLE session_metadata FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON session_metadata
    USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);

-- The pairs of metadata whose values are strings: one object contains another only if it has all its pairs.
CREATE FUNCTION metadata_pairs(metadata jsonb) RETURNS SETOF bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT DISTINCT hashtextextended(e.value #>> '{}', hashtextextended(e.key, 0))
      FROM jsonb_each(CASE WHEN jsonb_typeof(metadata) = 'object' THEN metadata ELSE '{}' END) e
     WHERE jsonb_typeof(e.value) = 'string'
$$;

CREATE FUNCTION index_metadata() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, public AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        DELETE FROM public.session_metadata
         WHERE tenant_id = OLD.tenant_id AND session_key = OLD.key;
    END IF;
    IF TG_OP = 'DELETE' THEN
        RETURN OLD;
    END IF;
    INSERT INTO public.session_metadata (tenant_id, session_key, pair, created_at)
    SELECT NEW.tenant_id, NEW.key, p.pair, NEW.created_at
      FROM public.metadata_pairs(NEW.metadata) AS p (pair)
        ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$;

CREATE TRIGGER sessions_metadata_made AFTER INSERT ON sessions
    FOR EACH ROW WHEN (NEW.metadata <> '{}') EXECUTE FUNCTION index_metadata();
CREATE TRIGGER sessions_metadata_changed AFTER UPDATE OF metadata ON sessions
    FOR EACH ROW WHEN (NEW.metadata IS DISTINCT FROM OLD.metadata) EXECUTE FUNCTION index_metadata();

CREATE TRIGGER sessions_metadata_gone BEFORE DELETE ON sessions
    FOR EACH ROW EXECUTE FUNCTION index_metadata();

-- The sweep writes the pairs of the sessions that are there, tenant by tenant. As long as a tenant has this chore, its
-- filters read all its sessions. Which kinds there are is the programs' matter.
ALTER TABLE chores
    DROP CONSTRAINT chores_kind_check,
    ADD CONSTRAINT chores_kind_check CHECK (octet_length(kind) BETWEEN 1 AND 64);
INSERT INTO chores (tenant_id, kind)
SELECT id, 'metadata'
  FROM tenants;
