-- The search over all of a tenant's messages. A worker writes the words of what was stored behind it: due_since says
-- since when it is known that a session has messages behind indexed_seq, or words of another language than the tenant's.
CREATE TABLE search_settings (
    tenant_id uuid NOT NULL PRIMARY KEY REFERENCES tenants (id),
    language  text NOT NULL
);

CREATE TABLE search_sessions (
    tenant_id   uuid    NOT NULL,
    session_key uuid    NOT NULL,
    language    text    NOT NULL DEFAULT 'simple',
    indexed_seq bigint  NOT NULL DEFAULT 0,
    in_part     integer NOT NULL DEFAULT 0, -- messages of which only the beginning is indexed, or nothing
    due_since   timestamptz,
    PRIMARY KEY (tenant_id, session_key),
    FOREIGN KEY (tenant_id, session_key) REFERENCES sessions (tenant_id, key)
);
CREATE INDEX search_sessions_due ON search_sessions (tenant_id, due_since, session_key) WHERE due_since IS NOT NULL;
CREATE INDEX search_sessions_in_part ON search_sessions (tenant_id) WHERE in_part > 0;

-- A passage of a message: bytes of its text piece, from at on. Its words have one more, which is the tenant, so that a
-- search of the index never meets what others have.
CREATE TABLE search_texts (
    tenant_id   uuid     NOT NULL,
    session_key uuid     NOT NULL,
    seq         bigint   NOT NULL,
    n           integer  NOT NULL,
    id          bigint   NOT NULL GENERATED ALWAYS AS IDENTITY,
    piece       integer  NOT NULL,
    at          integer  NOT NULL,
    bytes       integer  NOT NULL,
    words       tsvector NOT NULL,
    PRIMARY KEY (tenant_id, session_key, seq, n),
    FOREIGN KEY (tenant_id, session_key) REFERENCES sessions (tenant_id, key)
);
CREATE INDEX search_texts_words ON search_texts USING gin (words) WITH (gin_pending_list_limit = 1024);

CREATE FUNCTION search_tenant_word(tenant uuid) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$ SELECT ' ' || tenant::text $$;

-- What a search finds, the best first. Behind row-level security no operator of tsvector may use an index, because none
-- is leakproof. This function is the owner's, whom row-level security of this one table does not bind; it answers for
-- the tenant of the transaction alone.
CREATE FUNCTION search_passages(tenant uuid, language regconfig, wanted text, most integer)
    RETURNS TABLE (session_key uuid, seq bigint, id bigint, piece integer, at integer, bytes integer, rank real)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public'
    SET enable_seqscan TO off
    SET enable_indexscan TO off
    AS $$
DECLARE
    query tsquery := websearch_to_tsquery(language, wanted);
BEGIN
    RETURN QUERY EXECUTE '
        SELECT f.session_key, f.seq, f.id, f.piece, f.at, f.bytes, ts_rank(f.words, $3, 1)
          FROM (SELECT *
                  FROM public.search_texts t
                 WHERE t.tenant_id = $1
                   AND t.words @@ $2
                 LIMIT $4) f
         ORDER BY 7 DESC, f.id DESC'
    USING nullif(current_setting('app.tenant_id', true), '')::uuid,
          quote_literal(public.search_tenant_word(tenant))::tsquery && query, query, most;
END
$$;

REVOKE EXECUTE ON FUNCTION search_passages FROM PUBLIC;

ALTER TABLE search_settings ENABLE ROW LEVEL SECURITY;
ALTER TABLE search_settings FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON search_settings
    USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);

ALTER TABLE search_sessions ENABLE ROW LEVEL SECURITY;
ALTER TABLE search_sessions FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON search_sessions
    USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);

ALTER TABLE search_texts ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON search_texts
    USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);

ALTER TABLE chores
    DROP CONSTRAINT chores_kind_check,
    ADD CONSTRAINT chores_kind_check CHECK (kind IN ('policy', 'recompaction', 'replay', 'index'));
