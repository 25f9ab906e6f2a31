-- Erasures: of a session, or of all sessions of a data subject. A row is there before anything is erased and stays with
-- its receipt. What it counts is added by the transactions that erase.
CREATE TABLE erasures (
    tenant_id   uuid        NOT NULL,
    id          uuid        NOT NULL,
    kind        text        NOT NULL CHECK (kind IN ('session', 'subject')),
    state       text        NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'running', 'done')),
    metadata    jsonb       CHECK (metadata IS NULL OR kind = 'subject'), -- which the sessions have; NULL at the end
    actor       text        NOT NULL,
    actor_id    uuid,
    request     text,
    address     text,
    sessions    bigint      NOT NULL DEFAULT 0,
    messages    bigint      NOT NULL DEFAULT 0,
    results     bigint      NOT NULL DEFAULT 0,
    bodies      bigint      NOT NULL DEFAULT 0,
    checkpoints bigint      NOT NULL DEFAULT 0,
    bytes       bigint      NOT NULL DEFAULT 0,
    objects     bigint      NOT NULL DEFAULT 0,
    digest      bytea, -- of what was erased so far; NULL at the end, when the receipt has it under a key
    created_at  timestamptz NOT NULL DEFAULT now(),
    started_at  timestamptz,
    finished_at timestamptz,
    receipt     text,
    PRIMARY KEY (tenant_id, id),
    CHECK ((state = 'done') = (receipt IS NOT NULL)),
    CHECK ((state = 'done') = (finished_at IS NOT NULL))
);

CREATE INDEX erasures_newest ON erasures (tenant_id, created_at DESC, id DESC);

-- What an erasure does with sessions: due is a fork of one that was erased; erased has no row any more, but may have
-- objects in result stores, below its own prefix and those of sessions that it had inherited from; gone has nothing; held
-- is under a legal hold, and was not erased.
CREATE TABLE erasure_sessions (
    tenant_id   uuid   NOT NULL,
    erasure_id  uuid   NOT NULL,
    session_key uuid   NOT NULL,
    state       text   NOT NULL CHECK (state IN ('due', 'held', 'erased', 'gone')),
    prefixes    uuid[] NOT NULL DEFAULT '{}',
    PRIMARY KEY (tenant_id, erasure_id, session_key),
    FOREIGN KEY (tenant_id, erasure_id) REFERENCES erasures (tenant_id, id)
);

CREATE INDEX erasure_sessions_live ON erasure_sessions (tenant_id, erasure_id, state) WHERE state <> 'gone';

ALTER TABLE erasures ENABLE ROW LEVEL SECURITY;
ALTER TABLE erasures FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON erasures
    USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);

ALTER TABLE erasure_sessions ENABLE ROW LEVEL SECURITY;
ALTER TABLE erasure_sessions FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON erasure_sessions
    USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);

-- The Ed25519 keys that receipts are signed with. Workers make one and sign; others read what verifies.
CREATE TABLE receipt_keys (
    id         text        PRIMARY KEY,
    public     bytea       NOT NULL CHECK (octet_length(public) = 32),
    seed       bytea       NOT NULL CHECK (octet_length(seed) = 32),
    created_at timestamptz NOT NULL DEFAULT now(),
    live       boolean     UNIQUE CHECK (live) -- NULL for a key that signs no more
);

-- A row of the audit trail about an erased session has lost what it said of it: its place, who did what kind of thing
-- when, and its hash stay. blanked_by is the row that says so, which has the number and the hashes of all rows that it
-- blanked as they are now.
ALTER TABLE audit_trail ADD COLUMN blanked_by bigint;

CREATE FUNCTION audit_blanks() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public AS $$
BEGIN
    IF OLD.blanked_by IS NULL AND NEW.blanked_by > OLD.n
       AND NEW.detail IS NULL AND NEW.before IS NULL AND NEW.after IS NULL
       AND (NEW.tenant_id, NEW.n, NEW.at, NEW.login, NEW.actor, NEW.action, NEW.object, NEW.previous, NEW.hash)
         = (OLD.tenant_id, OLD.n, OLD.at, OLD.login, OLD.actor, OLD.action, OLD.object, OLD.previous, OLD.hash)
       AND (NEW.actor_id, NEW.request, NEW.address) IS NOT DISTINCT FROM (OLD.actor_id, OLD.request, OLD.address) THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'the audit trail only grows: its rows are never changed and never removed'
        USING ERRCODE = 'insufficient_privilege';
END
$$;

DROP TRIGGER audit_trail_kept ON audit_trail;
CREATE TRIGGER audit_trail_kept BEFORE DELETE ON audit_trail
    FOR EACH ROW EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_trail_blanks BEFORE UPDATE ON audit_trail
    FOR EACH ROW EXECUTE FUNCTION audit_blanks();

-- Blanks the rows about a session that is gone, and those of others that name it. The next row of the trail must say so,
-- with what this returns: the first row, how many there are, and the SHA-256 of their hashes as they are now. It takes
-- the lock of the chain's head.
CREATE FUNCTION audit_blank(tenant uuid, id text, key uuid)
    RETURNS TABLE (first bigint, blanked bigint, hashes bytea)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
#variable_conflict use_column
DECLARE
    next bigint;
BEGIN
    IF tenant IS DISTINCT FROM nullif(current_setting('app.tenant_id', true), '')::uuid THEN
        RAISE EXCEPTION 'it is the transaction''s tenant whose trail may be blanked'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    SELECT n + 1
      INTO next
      FROM public.audit_heads
     WHERE tenant_id = tenant
       FOR NO KEY UPDATE;
    IF EXISTS (SELECT FROM public.sessions s WHERE s.tenant_id = tenant AND s.id = audit_blank.id) THEN
        RAISE EXCEPTION 'the session is there: nothing that was done to it is forgotten'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN QUERY
    WITH rows AS (
        UPDATE public.audit_trail t
           SET object_id = CASE WHEN t.object = 'session' AND t.object_id = audit_blank.id
                                THEN audit_blank.key::text
                                WHEN t.object = 'session' -- a fork that is there
                                THEN coalesce((SELECT s.key::text
                                                 FROM public.sessions s
                                                WHERE s.tenant_id = tenant AND s.id = t.object_id), t.object_id)
                                ELSE t.object_id END,
               detail = NULL, before = NULL, after = NULL, blanked_by = next
         WHERE t.tenant_id = tenant
           AND t.blanked_by IS NULL
           AND (t.object_id = audit_blank.id AND t.object = 'session'
                OR t.action = 'session.fork' AND t.detail ->> 'from' = audit_blank.id
                OR t.action IN ('import.start', 'import.resume') AND t.detail ->> 'session' = audit_blank.id
                OR t.action IN ('recompaction.start', 'replay.start')
                   AND ((t.detail -> 'filter' -> 'sessions')::jsonb ? audit_blank.id
                        OR t.detail -> 'filter' ->> 'forked_from' = audit_blank.id))
        RETURNING t.n, public.audit_hash(t) AS hash
    )
    SELECT coalesce(min(n), 0), count(*), sha256(coalesce(string_agg(hash, '' ORDER BY n), ''))
      FROM rows;
END
$$;

-- Blanks the rows of campaigns that were for sessions with some metadata, which no session may have, as audit_blank does.
CREATE FUNCTION audit_blank_subject(tenant uuid, wanted jsonb)
    RETURNS TABLE (first bigint, blanked bigint, hashes bytea)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
#variable_conflict use_column
DECLARE
    next bigint;
BEGIN
    IF tenant IS DISTINCT FROM nullif(current_setting('app.tenant_id', true), '')::uuid THEN
        RAISE EXCEPTION 'it is the transaction''s tenant whose trail may be blanked'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    SELECT n + 1
      INTO next
      FROM public.audit_heads
     WHERE tenant_id = tenant
       FOR NO KEY UPDATE;
    IF EXISTS (SELECT FROM public.sessions s WHERE s.tenant_id = tenant AND s.metadata @> wanted) THEN
        RAISE EXCEPTION 'sessions with this metadata are there: nothing that was done to them is forgotten'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN QUERY
    WITH rows AS (
        UPDATE public.audit_trail t
           SET detail = NULL, before = NULL, after = NULL, blanked_by = next
         WHERE t.tenant_id = tenant
           AND t.blanked_by IS NULL
           AND t.action IN ('recompaction.start', 'replay.start')
           AND (t.detail -> 'filter' -> 'metadata')::jsonb @> wanted
        RETURNING t.n, public.audit_hash(t) AS hash
    )
    SELECT coalesce(min(n), 0), count(*), sha256(coalesce(string_agg(hash, '' ORDER BY n), ''))
      FROM rows;
END
$$;
