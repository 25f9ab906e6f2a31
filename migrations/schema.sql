-- The schema that the migrations make, as PostgreSQL 15 dumps it, without rights. Written by make schema; do not edit.

CREATE TYPE public.river_job_state AS ENUM (
    'available',
    'cancelled',
    'completed',
    'discarded',
    'pending',
    'retryable',
    'running',
    'scheduled'
);

CREATE FUNCTION public.audit_blank(tenant uuid, id text, key uuid) RETURNS TABLE(first bigint, blanked bigint)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    next bigint;
BEGIN
    IF tenant IS DISTINCT FROM nullif(current_setting('app.tenant_id', true), '')::pg_catalog.uuid THEN
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
                                THEN audit_blank.key::pg_catalog.text
                                WHEN t.object = 'session' -- a fork that is there
                                THEN coalesce((SELECT s.key::pg_catalog.text
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
                   AND ((t.detail -> 'filter' -> 'sessions')::pg_catalog.jsonb ? audit_blank.id
                        OR t.detail -> 'filter' ->> 'forked_from' = audit_blank.id))
        RETURNING t.n
    )
    SELECT coalesce(min(n), 0), count(*)
      FROM rows;
END
$$;

CREATE FUNCTION public.audit_blank_subject(tenant uuid, wanted jsonb) RETURNS TABLE(first bigint, blanked bigint)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    next bigint;
BEGIN
    IF tenant IS DISTINCT FROM nullif(current_setting('app.tenant_id', true), '')::pg_catalog.uuid THEN
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
           AND (t.detail -> 'filter' -> 'metadata')::pg_catalog.jsonb @> wanted
        RETURNING t.n
    )
    SELECT coalesce(min(n), 0), count(*)
      FROM rows;
END
$$;

CREATE FUNCTION public.audit_blank_tenant(tenant uuid) RETURNS TABLE(first bigint, blanked bigint)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
#variable_conflict use_column
DECLARE
    operators constant pg_catalog.uuid := '00000000-0000-0000-0000-000000000000';
    next bigint;
BEGIN
    IF operators IS DISTINCT FROM nullif(current_setting('app.tenant_id', true), '')::pg_catalog.uuid THEN
        RAISE EXCEPTION 'it is the transaction''s tenant whose trail may be blanked'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    SELECT n + 1
      INTO next
      FROM public.audit_heads
     WHERE tenant_id = operators
       FOR NO KEY UPDATE;
    IF EXISTS (SELECT FROM public.tenants t WHERE t.id = audit_blank_tenant.tenant) THEN
        RAISE EXCEPTION 'the tenant is there: nothing that was done to it is forgotten'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN QUERY
    WITH rows AS (
        UPDATE public.audit_trail t
           SET detail = NULL, before = NULL, after = NULL, blanked_by = next
         WHERE t.tenant_id = operators
           AND t.blanked_by IS NULL
           AND t.object_id = audit_blank_tenant.tenant::pg_catalog.text
           AND t.action = 'tenant.create'
        RETURNING t.n
    )
    SELECT coalesce(min(n), 0), count(*)
      FROM rows;
END
$$;

CREATE FUNCTION public.audit_blanks() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
BEGIN
    IF OLD.blanked_by IS NULL AND NEW.blanked_by > OLD.n
       AND NEW.detail IS NULL AND NEW.before IS NULL AND NEW.after IS NULL
       AND (NEW.tenant_id, NEW.n, NEW.at, NEW.login, NEW.actor, NEW.action, NEW.object, NEW.content, NEW.previous, NEW.hash)
         = (OLD.tenant_id, OLD.n, OLD.at, OLD.login, OLD.actor, OLD.action, OLD.object, OLD.content, OLD.previous, OLD.hash)
       AND (NEW.actor_id, NEW.request, NEW.address) IS NOT DISTINCT FROM (OLD.actor_id, OLD.request, OLD.address) THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'the audit trail only grows: its rows are never changed and never removed'
        USING ERRCODE = 'insufficient_privilege';
END
$$;

CREATE FUNCTION public.audit_chain() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
DECLARE
    head public.audit_heads;
BEGIN
    INSERT INTO public.audit_heads (tenant_id, n, at, hash)
    VALUES (NEW.tenant_id, 0, clock_timestamp(), decode(repeat('00', 32), 'hex'))
    ON CONFLICT DO NOTHING;
    SELECT *
      INTO STRICT head
      FROM public.audit_heads
     WHERE tenant_id = NEW.tenant_id
       FOR NO KEY UPDATE;
    NEW.n := head.n + 1;
    NEW.at := greatest(head.at, clock_timestamp());
    NEW.login := session_user;
    NEW.previous := head.hash;
    NEW.content := public.audit_content(NEW);
    NEW.hash := public.audit_hash(NEW);
    UPDATE public.audit_heads
       SET n = NEW.n, at = NEW.at, hash = NEW.hash
     WHERE tenant_id = NEW.tenant_id;
    RETURN NEW;
END
$$;

CREATE TABLE public.audit_trail (
    tenant_id uuid NOT NULL,
    n bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    login text NOT NULL,
    actor text NOT NULL,
    actor_id uuid,
    request text,
    address text,
    action text NOT NULL,
    object text NOT NULL,
    object_id text,
    detail json,
    before json,
    after json,
    content bytea NOT NULL,
    previous bytea NOT NULL,
    hash bytea NOT NULL,
    blanked_by bigint,
    CONSTRAINT audit_trail_action_check CHECK (((octet_length(action) >= 1) AND (octet_length(action) <= 64))),
    CONSTRAINT audit_trail_actor_check CHECK (((octet_length(actor) >= 1) AND (octet_length(actor) <= 64))),
    CONSTRAINT audit_trail_address_check CHECK ((octet_length(address) <= 255)),
    CONSTRAINT audit_trail_n_check CHECK ((n > 0)),
    CONSTRAINT audit_trail_object_check CHECK (((octet_length(object) >= 1) AND (octet_length(object) <= 64))),
    CONSTRAINT audit_trail_object_id_check CHECK ((octet_length(object_id) <= 1024)),
    CONSTRAINT audit_trail_request_check CHECK ((octet_length(request) <= 255))
);

ALTER TABLE ONLY public.audit_trail FORCE ROW LEVEL SECURITY;

CREATE FUNCTION public.audit_content(t public.audit_trail) RETURNS bytea
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
DECLARE
    field text;
    bytes bytea;
    sum   bytea := '';
BEGIN
    FOREACH field IN ARRAY ARRAY[t.object_id, t.detail::text, t.before::text, t.after::text] LOOP
        bytes := convert_to(field, 'UTF8');
        sum := sum || int4send(coalesce(octet_length(bytes), -1)) || coalesce(bytes, '');
    END LOOP;
    RETURN sha256(sum);
END
$$;

CREATE FUNCTION public.audit_hash(t public.audit_trail) RETURNS bytea
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
DECLARE
    field text;
    bytes bytea;
    sum   bytea := t.previous || t.content;
BEGIN
    FOREACH field IN ARRAY ARRAY[
        t.tenant_id::text, t.n::text, (extract(epoch FROM t.at) * 1000000)::bigint::text, t.login, t.actor,
        t.actor_id::text, t.request, t.address, t.action, t.object]
    LOOP
        bytes := convert_to(field, 'UTF8');
        sum := sum || int4send(coalesce(octet_length(bytes), -1)) || coalesce(bytes, '');
    END LOOP;
    RETURN sha256(sum);
END
$$;

CREATE FUNCTION public.audit_keep() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
BEGIN
    IF OLD.tenant_id <> '00000000-0000-0000-0000-000000000000'
       AND NOT EXISTS (SELECT FROM public.tenants WHERE id = OLD.tenant_id) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'the audit trail only grows: its rows are never changed and never removed'
        USING ERRCODE = 'insufficient_privilege';
END
$$;

CREATE FUNCTION public.audit_keep_row() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
BEGIN
    IF EXISTS (SELECT
                 FROM public.audit_trail
                WHERE tenant_id = OLD.tenant_id AND action = 'audit.prune' AND n > OLD.n
                  AND (detail ->> 'through')::pg_catalog.int8 >= OLD.n)
       OR OLD.tenant_id <> '00000000-0000-0000-0000-000000000000'
          AND NOT EXISTS (SELECT FROM public.tenants WHERE id = OLD.tenant_id) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'the audit trail only grows: its rows are never changed and never removed'
        USING ERRCODE = 'insufficient_privilege';
END
$$;

CREATE FUNCTION public.audit_prune(tenant uuid, kept interval, most integer) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
DECLARE
    through bigint;
    removed bigint;
    others  boolean;
    ended   pg_catalog.bytea;
BEGIN
    IF tenant IS DISTINCT FROM nullif(current_setting('app.tenant_id', true), '')::pg_catalog.uuid THEN
        RAISE EXCEPTION 'it is the transaction''s tenant whose trail may be shortened'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF kept IS NULL OR kept < interval '30 days' OR most IS NULL THEN
        RAISE EXCEPTION 'rows of the audit trail are kept for 30 days at least'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    PERFORM
       FROM (SELECT at
               FROM public.audit_trail
              WHERE tenant_id = tenant
              ORDER BY n
              LIMIT 1) oldest
      WHERE oldest.at < now() - kept - interval '1 day';
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    PERFORM
       FROM public.tenants
      WHERE id = tenant AND hold IS NULL
        FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    WITH oldest AS (
        SELECT (entry).n, (entry).action,
               CASE
               WHEN lag((entry).n) OVER by_n IS NOT NULL
               THEN (entry).n = lag((entry).n) OVER by_n + 1 AND (entry).previous = lag((entry).hash) OVER by_n
               WHEN (entry).n = 1
               THEN (entry).previous = decode(repeat('00', 32), 'hex')
               ELSE EXISTS (SELECT
                              FROM public.audit_trail p
                             WHERE p.tenant_id = tenant AND p.action = 'audit.prune'
                               AND p.detail ->> 'through' = ((entry).n - 1)::pg_catalog.text
                               AND p.detail ->> 'hash' = encode((entry).previous, 'hex'))
               END
               AND (entry).hash = public.audit_hash(entry)
               AND ((entry).blanked_by IS NOT NULL OR (entry).content = public.audit_content(entry))
               AND (entry).at < now() - kept AS removable
          FROM (SELECT t AS entry
                  FROM public.audit_trail t
                 WHERE t.tenant_id = tenant
                 ORDER BY t.n
                 LIMIT most) first
        WINDOW by_n AS (ORDER BY (entry).n)
    )
    SELECT max(n), count(*), bool_or(action <> 'audit.prune')
      INTO through, removed, others
      FROM oldest
     WHERE n < (SELECT coalesce(min(n) FILTER (WHERE NOT removable), max(n) + 1) FROM oldest);
    IF others IS NOT TRUE THEN
        RETURN 0;
    END IF;
    SELECT hash
      INTO STRICT ended
      FROM public.audit_trail
     WHERE tenant_id = tenant AND n = through;
    INSERT INTO public.audit_trail (tenant_id, actor, action, object, object_id, detail)
    VALUES (tenant, 'varve', 'audit.prune', 'tenant', tenant::pg_catalog.text,
            format('{"through":%s,"hash":"%s","removed":%s}', through, encode(ended, 'hex'), removed)::pg_catalog.json);
    DELETE FROM public.audit_trail WHERE tenant_id = tenant AND n <= through;
    RETURN removed;
END
$$;

CREATE FUNCTION public.audit_refuse() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION 'the audit trail only grows: its rows are never changed and never removed'
        USING ERRCODE = 'insufficient_privilege';
END
$$;

CREATE FUNCTION public.end_tenant(tenant uuid, erasure uuid) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
DECLARE
    found public.tenants;
BEGIN
    IF tenant IS DISTINCT FROM nullif(current_setting('app.tenant_id', true), '')::pg_catalog.uuid THEN
        RAISE EXCEPTION 'it is the transaction''s tenant that may be deleted'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    SELECT *
      INTO found
      FROM public.tenants
     WHERE id = tenant
       FOR UPDATE;
    IF found.erasure_id IS DISTINCT FROM erasure OR erasure IS NULL THEN
        RAISE EXCEPTION 'no operator has asked for the deletion of the tenant'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF found.hold IS NOT NULL THEN
        RAISE EXCEPTION 'the tenant is under a legal hold: nothing of it is erased'
            USING ERRCODE = 'restrict_violation', CONSTRAINT = 'tenants_hold';
    END IF;
    DELETE FROM public.api_keys WHERE tenant_id = tenant;
    DELETE FROM public.event_heads WHERE tenant_id = tenant;
    DELETE FROM public.erasure_sessions WHERE tenant_id = tenant;
    DELETE FROM public.erasures WHERE tenant_id = tenant;
    DELETE FROM public.tenants WHERE id = tenant;
    DELETE FROM public.audit_trail WHERE tenant_id = tenant;
    DELETE FROM public.audit_heads WHERE tenant_id = tenant;
END
$$;

CREATE FUNCTION public.event_number() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
DECLARE
    place  bigint;
    tenant pg_catalog.text := coalesce(current_setting('app.tenant_id', true), '');
BEGIN
    PERFORM set_config('app.tenant_id', NEW.tenant_id::pg_catalog.text, true);
    INSERT INTO public.event_heads AS h (tenant_id, n)
    VALUES (NEW.tenant_id, 1)
    ON CONFLICT (tenant_id) DO UPDATE
       SET n = h.n + 1
    RETURNING h.n INTO place;
    UPDATE public.events
       SET n = place
     WHERE tenant_id = NEW.tenant_id AND id = NEW.id;
    PERFORM set_config('app.tenant_id', tenant, true);
    RETURN NULL;
END
$$;

CREATE FUNCTION public.index_metadata() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
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

CREATE FUNCTION public.job_now() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    NEW.scheduled_at := least(NEW.scheduled_at, now());
    RETURN NEW;
END
$$;

CREATE FUNCTION public.job_place() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
DECLARE
    back   constant interval := interval '87600 hours';
    first  pg_catalog.timestamptz;
    own    pg_catalog.timestamptz;
    -- The last place that this transaction gave to the tenant: a statement does not see the rows that it changes, and
    -- River makes many jobs available at once. Tenants share 1024 of these.
    given  pg_catalog.text := format('app.place_%s_%s_%s', NEW.queue, NEW.priority,
                          hashtext(NEW.args ->> 'tenant') & 1023);
BEGIN
    IF TG_OP = 'UPDATE' AND NEW.scheduled_at > now()
       AND (OLD.state = 'running'
            OR NEW.scheduled_at = OLD.scheduled_at AND NEW.scheduled_at < now() + interval '10 seconds') THEN
        NEW.state := 'retryable';
        NEW.scheduled_at := least(NEW.scheduled_at, now() + interval '5 seconds');
        RETURN NEW;
    END IF;
    SELECT scheduled_at
      INTO first
      FROM public.river_job
     WHERE state = 'available' AND queue = NEW.queue AND priority = NEW.priority
     ORDER BY scheduled_at
     LIMIT 1;
    SELECT scheduled_at + interval '1 microsecond'
      INTO own
      FROM public.river_job
     WHERE args ->> 'tenant' = NEW.args ->> 'tenant' AND queue = NEW.queue AND priority = NEW.priority
       AND queue IN ('compaction', 'recompaction', 'summary') AND scheduled_at < now() - back
     ORDER BY scheduled_at DESC
     LIMIT 1;
    NEW.scheduled_at := greatest(coalesce(first, now() - back), own,
        nullif(current_setting(given, true), '')::pg_catalog.timestamptz + interval '1 microsecond');
    PERFORM set_config(given, NEW.scheduled_at::pg_catalog.text, true);
    RETURN NEW;
END
$$;

CREATE FUNCTION public.job_waits() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    NEW.state := 'retryable';
    RETURN NEW;
END
$$;

CREATE FUNCTION public.job_wakes() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    PERFORM pg_notify(TG_TABLE_SCHEMA || '.river_insert', json_build_object('queue', NEW.queue)::text);
    RETURN NULL;
END
$$;

CREATE FUNCTION public.metadata_pairs(metadata jsonb) RETURNS SETOF bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT DISTINCT hashtextextended(e.value #>> '{}', hashtextextended(e.key, 0))
      FROM jsonb_each(CASE WHEN jsonb_typeof(metadata) = 'object' THEN metadata ELSE '{}' END) e
     WHERE jsonb_typeof(e.value) = 'string'
$$;

CREATE FUNCTION public.notify_ended() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM pg_notify('varve_ended', NEW.id::text);
    RETURN NULL;
END
$$;

CREATE FUNCTION public.refuse_archived() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
DECLARE
    shown text := coalesce(current_setting('varve.frozen', true), '');
BEGIN
    PERFORM set_config('varve.frozen', 'all', true);
    IF EXISTS (SELECT
                 FROM public.session_archives a
                 JOIN public.sessions s ON s.tenant_id = a.tenant_id AND s.key = a.session_key
                WHERE a.tenant_id = NEW.tenant_id AND s.metadata @> OLD.metadata
                  AND NOT EXISTS (SELECT
                                    FROM public.erasure_sessions l
                                   WHERE l.tenant_id = s.tenant_id AND l.erasure_id = NEW.id
                                     AND l.session_key = s.key AND l.state = 'held')) THEN
        RAISE EXCEPTION 'an archived session of the subject is there: its erasure has not ended'
            USING ERRCODE = 'restrict_violation';
    END IF;
    PERFORM set_config('varve.frozen', shown, true);
    RETURN NEW;
END
$$;

CREATE FUNCTION public.refuse_early_end() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
BEGIN
    IF EXISTS (SELECT FROM public.tenants WHERE id = NEW.erased_tenant AND erasure_id = NEW.id) THEN
        RAISE EXCEPTION 'the tenant is there: its erasure has not ended'
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END
$$;

CREATE FUNCTION public.refuse_held() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
DECLARE
    held boolean;
BEGIN
    SELECT hold IS NOT NULL
      INTO held
      FROM public.tenants
     WHERE id = OLD.tenant_id
       FOR SHARE;
    IF held THEN
        RAISE EXCEPTION 'the tenant is under a legal hold: nothing of it is erased'
            USING ERRCODE = 'restrict_violation', CONSTRAINT = 'tenants_hold';
    END IF;
    RETURN OLD;
END
$$;

CREATE FUNCTION public.refuse_new_body() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF pg_has_role(current_user, (SELECT relowner FROM pg_class WHERE oid = TG_RELID), 'USAGE') THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'the bytes of a message are written once';
END
$$;

CREATE FUNCTION public.refuse_revival() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF pg_has_role(current_user, (SELECT relowner FROM pg_class WHERE oid = TG_RELID), 'USAGE') THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'a key may be ended, and not be given more time';
END
$$;

CREATE FUNCTION public.refuse_row() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION 'new row for relation "%" violates check constraint "%"', TG_TABLE_NAME, TG_NAME
        USING ERRCODE = 'check_violation', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME, CONSTRAINT = TG_NAME;
END
$$;

CREATE FUNCTION public.river_job_state_in_bitmask(bitmask bit, state public.river_job_state) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT CASE state
        WHEN 'available' THEN get_bit(bitmask, 7)
        WHEN 'cancelled' THEN get_bit(bitmask, 6)
        WHEN 'completed' THEN get_bit(bitmask, 5)
        WHEN 'discarded' THEN get_bit(bitmask, 4)
        WHEN 'pending'   THEN get_bit(bitmask, 3)
        WHEN 'retryable' THEN get_bit(bitmask, 2)
        WHEN 'running'   THEN get_bit(bitmask, 1)
        WHEN 'scheduled' THEN get_bit(bitmask, 0)
        ELSE 0
    END = 1;
$$;

CREATE FUNCTION public.search_candidates(wanted text[], most integer) RETURNS TABLE(id bigint, session_key uuid, first_seq bigint, n integer, seqs integer[])
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $_$
DECLARE
    any_of text := string_agg(format('t.words @> %L::integer[]', w), ' OR ') FROM unnest(wanted) w;
    how_many text := string_agg(format('(t.words @> %L::integer[])::integer', w), ' + ') FROM unnest(wanted) w;
BEGIN
    RETURN QUERY EXECUTE '
        SELECT t.id, t.session_key, t.first_seq, t.n, t.seqs
          FROM public.search_blocks t
         WHERE t.tenant_id::pg_catalog.text = $1 -- not by its key: the index of the words has the tenant
           AND (' || any_of || ')
         ORDER BY ' || CASE WHEN cardinality(wanted) > 1 THEN how_many || ' DESC, ' ELSE '' END || 't.id DESC
         LIMIT $2'
    USING current_setting('app.tenant_id', true), most;
END
$_$;

CREATE FUNCTION public.use_store(kind smallint) RETURNS void
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
    UPDATE public.installation
       SET stores = array_append(stores, kind)
     WHERE kind IN (1, 2) AND kind <> ALL (stores)
$$;

CREATE TABLE public.api_keys (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    name text DEFAULT ''::text NOT NULL,
    digest bytea NOT NULL,
    last4 text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone,
    revoked_at timestamp with time zone,
    scopes text[] DEFAULT ARRAY['sessions:read'::text, 'sessions:write'::text, 'results:read'::text, 'compact'::text, 'policy'::text, 'export'::text, 'erase'::text, 'admin'::text] NOT NULL,
    replaces uuid,
    last_used_at timestamp with time zone,
    CONSTRAINT api_keys_digest_check CHECK ((octet_length(digest) = 32)),
    CONSTRAINT api_keys_scopes_check CHECK (((cardinality(scopes) > 0) AND (scopes <@ ARRAY['sessions:read'::text, 'sessions:write'::text, 'results:read'::text, 'compact'::text, 'policy'::text, 'export'::text, 'erase'::text, 'admin'::text])))
);

ALTER TABLE ONLY public.api_keys FORCE ROW LEVEL SECURITY;

CREATE TABLE public.archive_parts (
    tenant_id uuid NOT NULL,
    session_key uuid NOT NULL,
    n integer NOT NULL,
    body bytea NOT NULL
);
ALTER TABLE ONLY public.archive_parts ALTER COLUMN body SET STORAGE EXTERNAL;

ALTER TABLE ONLY public.archive_parts FORCE ROW LEVEL SECURITY;

CREATE TABLE public.audit_heads (
    tenant_id uuid NOT NULL,
    n bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    hash bytea NOT NULL
);

ALTER TABLE ONLY public.audit_heads FORCE ROW LEVEL SECURITY;

CREATE TABLE public.checkpoints (
    tenant_id uuid NOT NULL,
    session_key uuid NOT NULL,
    n integer NOT NULL,
    base_n integer NOT NULL,
    through_seq bigint NOT NULL,
    tokens bigint NOT NULL,
    body bytea,
    body_size integer NOT NULL,
    state bytea,
    units jsonb NOT NULL,
    manifest jsonb NOT NULL,
    open_calls text[] DEFAULT '{}'::text[] NOT NULL,
    policy json NOT NULL,
    engine_version integer NOT NULL,
    run_id uuid NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    restored_from integer,
    validator_state bytea,
    body_digest bytea,
    state_digest bytea,
    forgotten boolean DEFAULT false NOT NULL,
    made_after bigint,
    CONSTRAINT checkpoints_body_digest_check CHECK ((octet_length(body_digest) = 32)),
    CONSTRAINT checkpoints_check CHECK ((restored_from < n)),
    CONSTRAINT checkpoints_n_check CHECK ((n > 0)),
    CONSTRAINT checkpoints_state_digest_check CHECK ((octet_length(state_digest) = 32))
);
ALTER TABLE ONLY public.checkpoints ALTER COLUMN body SET STORAGE EXTERNAL;
ALTER TABLE ONLY public.checkpoints ALTER COLUMN state SET STORAGE EXTERNAL;
ALTER TABLE ONLY public.checkpoints ALTER COLUMN units SET COMPRESSION lz4;
ALTER TABLE ONLY public.checkpoints ALTER COLUMN manifest SET COMPRESSION lz4;

ALTER TABLE ONLY public.checkpoints FORCE ROW LEVEL SECURITY;

CREATE TABLE public.due_sessions (
    tenant_id uuid NOT NULL,
    session_key uuid NOT NULL,
    level smallint NOT NULL,
    job_id bigint NOT NULL,
    since timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.erasure_sessions (
    tenant_id uuid NOT NULL,
    erasure_id uuid NOT NULL,
    session_key uuid NOT NULL,
    state text NOT NULL,
    prefixes uuid[] DEFAULT '{}'::uuid[] NOT NULL,
    CONSTRAINT erasure_sessions_state_check CHECK ((state = ANY (ARRAY['due'::text, 'held'::text, 'erased'::text, 'gone'::text])))
);

ALTER TABLE ONLY public.erasure_sessions FORCE ROW LEVEL SECURITY;

CREATE TABLE public.erasures (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    kind text NOT NULL,
    state text DEFAULT 'queued'::text NOT NULL,
    metadata jsonb,
    actor text NOT NULL,
    actor_id uuid,
    request text,
    address text,
    sessions bigint DEFAULT 0 NOT NULL,
    messages bigint DEFAULT 0 NOT NULL,
    results bigint DEFAULT 0 NOT NULL,
    bodies bigint DEFAULT 0 NOT NULL,
    checkpoints bigint DEFAULT 0 NOT NULL,
    bytes bigint DEFAULT 0 NOT NULL,
    objects bigint DEFAULT 0 NOT NULL,
    digest bytea,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    receipt json,
    erased_tenant uuid,
    CONSTRAINT erasures_check CHECK (((metadata IS NULL) OR (kind = 'subject'::text))),
    CONSTRAINT erasures_check1 CHECK (((state = 'done'::text) = (receipt IS NOT NULL))),
    CONSTRAINT erasures_check2 CHECK (((state = 'done'::text) = (finished_at IS NOT NULL))),
    CONSTRAINT erasures_erased_tenant_check CHECK (((kind = 'tenant'::text) = (erased_tenant IS NOT NULL))),
    CONSTRAINT erasures_kind_check CHECK ((kind = ANY (ARRAY['session'::text, 'subject'::text, 'tenant'::text, 'retention'::text]))),
    CONSTRAINT erasures_state_check CHECK ((state = ANY (ARRAY['queued'::text, 'running'::text, 'done'::text])))
);

ALTER TABLE ONLY public.erasures FORCE ROW LEVEL SECURITY;

CREATE TABLE public.event_heads (
    tenant_id uuid NOT NULL,
    n bigint NOT NULL
)
WITH (fillfactor='50');

ALTER TABLE ONLY public.event_heads FORCE ROW LEVEL SECURITY;

CREATE TABLE public.events (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    n bigint,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    type text NOT NULL,
    topic text NOT NULL,
    data json NOT NULL,
    once text,
    CONSTRAINT events_n_check CHECK ((n > 0)),
    CONSTRAINT events_topic_check CHECK (((octet_length(topic) >= 1) AND (octet_length(topic) <= 1024))),
    CONSTRAINT events_type_check CHECK (((octet_length(type) >= 1) AND (octet_length(type) <= 64)))
);

ALTER TABLE ONLY public.events FORCE ROW LEVEL SECURITY;

CREATE TABLE public.findings (
    tenant_id uuid NOT NULL,
    session_key uuid NOT NULL,
    n integer NOT NULL,
    kind text NOT NULL,
    finding jsonb NOT NULL,
    found_at timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE ONLY public.findings FORCE ROW LEVEL SECURITY;

CREATE TABLE public.idempotency (
    tenant_id uuid NOT NULL,
    route text NOT NULL,
    key text NOT NULL,
    session_key uuid NOT NULL,
    digest bytea NOT NULL,
    answer text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.05');

ALTER TABLE ONLY public.idempotency FORCE ROW LEVEL SECURITY;

CREATE TABLE public.import_lines (
    tenant_id uuid NOT NULL,
    import_id uuid NOT NULL,
    n bigint NOT NULL,
    lines integer NOT NULL,
    line bigint NOT NULL,
    outcome text NOT NULL,
    session_key uuid,
    seq bigint,
    detail text DEFAULT ''::text NOT NULL,
    CONSTRAINT import_lines_lines_check CHECK ((lines > 0)),
    CONSTRAINT import_lines_n_check CHECK ((n > 0)),
    CONSTRAINT import_lines_outcome_check CHECK ((outcome = ANY (ARRAY['created'::text, 'exists'::text, 'stored'::text, 'duplicate'::text, 'checked'::text, 'skipped'::text, 'rejected'::text])))
);
ALTER TABLE ONLY public.import_lines ALTER COLUMN import_id SET (n_distinct=-0.01);

ALTER TABLE ONLY public.import_lines FORCE ROW LEVEL SECURITY;

CREATE TABLE public.imports (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    state text DEFAULT 'queued'::text NOT NULL,
    key text,
    source text DEFAULT ''::text NOT NULL,
    wanted text DEFAULT ''::text NOT NULL,
    session text DEFAULT ''::text NOT NULL,
    attempt integer DEFAULT 0 NOT NULL,
    done bigint DEFAULT 0 NOT NULL,
    total bigint,
    bytes bigint DEFAULT 0 NOT NULL,
    digest bytea DEFAULT '\x'::bytea NOT NULL,
    sessions bigint DEFAULT 0 NOT NULL,
    messages bigint DEFAULT 0 NOT NULL,
    duplicates bigint DEFAULT 0 NOT NULL,
    rejected bigint DEFAULT 0 NOT NULL,
    report jsonb DEFAULT '{}'::jsonb NOT NULL,
    error text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    finished_at timestamp with time zone,
    CONSTRAINT imports_state_check CHECK ((state = ANY (ARRAY['queued'::text, 'running'::text, 'succeeded'::text, 'failed'::text])))
);

ALTER TABLE ONLY public.imports FORCE ROW LEVEL SECURITY;

CREATE TABLE public.installation (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    stores smallint[] DEFAULT '{}'::smallint[] NOT NULL,
    items_since timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    oldest_program integer DEFAULT 30 NOT NULL
);

CREATE TABLE public.message_packs (
    tenant_id uuid NOT NULL,
    session_key uuid NOT NULL,
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    raw bigint NOT NULL,
    results integer NOT NULL,
    digest bytea NOT NULL,
    body bytea NOT NULL,
    CONSTRAINT message_packs_check CHECK ((last_seq >= first_seq)),
    CONSTRAINT message_packs_digest_check CHECK ((octet_length(digest) = 32)),
    CONSTRAINT message_packs_first_seq_check CHECK ((first_seq > 0))
);
ALTER TABLE ONLY public.message_packs ALTER COLUMN body SET STORAGE EXTERNAL;

ALTER TABLE ONLY public.message_packs FORCE ROW LEVEL SECURITY;

CREATE TABLE public.messages (
    tenant_id uuid NOT NULL,
    session_key uuid NOT NULL,
    seq bigint NOT NULL,
    role text NOT NULL,
    format smallint NOT NULL,
    tokens integer NOT NULL,
    client_id text,
    calls text[] DEFAULT '{}'::text[],
    answers text[] DEFAULT '{}'::text[],
    starts_unit boolean NOT NULL,
    flags integer DEFAULT 0 NOT NULL,
    body bytea,
    view_body bytea,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    view_tokens integer,
    removed_at timestamp with time zone,
    removed_seq bigint,
    shape text NOT NULL,
    digest bytea,
    bytes integer,
    item_id text,
    superseded_by bigint
)
WITH (autovacuum_vacuum_insert_scale_factor='0.02', autovacuum_vacuum_scale_factor='0.05', autovacuum_analyze_scale_factor='0.02');
ALTER TABLE ONLY public.messages ALTER COLUMN body SET COMPRESSION lz4;
ALTER TABLE ONLY public.messages ALTER COLUMN view_body SET COMPRESSION lz4;

ALTER TABLE ONLY public.messages FORCE ROW LEVEL SECURITY;

CREATE TABLE public.model_answers (
    tenant_id uuid NOT NULL,
    key bytea NOT NULL,
    session_key uuid,
    provider text NOT NULL,
    model text NOT NULL,
    prompt_version text NOT NULL,
    digest bytea NOT NULL,
    answer bytea,
    answered_by text,
    input_tokens bigint DEFAULT 0 NOT NULL,
    cached_tokens bigint DEFAULT 0 NOT NULL,
    output_tokens bigint DEFAULT 0 NOT NULL,
    cost_micros bigint DEFAULT 0 NOT NULL,
    lease uuid,
    leased_until timestamp with time zone,
    reserved_day date NOT NULL,
    reserved_input bigint NOT NULL,
    reserved_output bigint NOT NULL,
    reserved_cost bigint NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT model_answers_check CHECK (((answer IS NULL) = (lease IS NOT NULL))),
    CONSTRAINT model_answers_check1 CHECK (((lease IS NULL) = (leased_until IS NULL))),
    CONSTRAINT model_answers_digest_check CHECK ((octet_length(digest) = 32)),
    CONSTRAINT model_answers_key_check CHECK ((octet_length(key) = 32))
);

ALTER TABLE ONLY public.model_answers FORCE ROW LEVEL SECURITY;

CREATE TABLE public.model_spending (
    tenant_id uuid NOT NULL,
    day date NOT NULL,
    model text NOT NULL,
    calls bigint NOT NULL,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cost_micros bigint NOT NULL
);

ALTER TABLE ONLY public.model_spending FORCE ROW LEVEL SECURITY;

CREATE TABLE public.operator_keys (
    id uuid NOT NULL,
    name text DEFAULT ''::text NOT NULL,
    digest bytea NOT NULL,
    last4 text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone,
    revoked_at timestamp with time zone,
    last_used_at timestamp with time zone,
    CONSTRAINT operator_keys_digest_check CHECK ((octet_length(digest) = 32))
);

CREATE TABLE public.policies (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    trigger_ratio double precision NOT NULL,
    hard_ratio double precision NOT NULL,
    cache_ttl interval DEFAULT '00:00:00'::interval NOT NULL,
    document json NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    calibrate boolean DEFAULT true NOT NULL,
    tokenizer text GENERATED ALWAYS AS (COALESCE((document #>> '{tokens,tokenizer}'::text[]), 'estimate'::text)) STORED NOT NULL,
    patch json DEFAULT '{}'::json NOT NULL,
    tenant_version integer DEFAULT 1 NOT NULL,
    session_version integer DEFAULT 0 NOT NULL,
    on_request boolean GENERATED ALWAYS AS (((NOT ((document #>> '{enabled}'::text[]) IS DISTINCT FROM 'false'::text)) OR (NOT ((document #>> '{auto}'::text[]) IS DISTINCT FROM 'false'::text)))) STORED NOT NULL,
    trigger_tokens bigint GENERATED ALWAYS AS (COALESCE(((document #>> '{trigger_tokens}'::text[]))::bigint, (0)::bigint)) STORED NOT NULL,
    trim_ratio double precision GENERATED ALWAYS AS (
CASE
    WHEN (((document #>> '{trim,enabled}'::text[]) = 'true'::text) AND ((document #>> '{trim,eager}'::text[]) = 'true'::text)) THEN GREATEST(((document #>> '{trim,floor_ratio}'::text[]))::double precision, (0.00001)::double precision)
    ELSE (0)::double precision
END) STORED NOT NULL,
    budget_ratio double precision GENERATED ALWAYS AS (
CASE
    WHEN (((document #>> '{budget,enabled}'::text[]) = 'true'::text) AND ((document #>> '{budget,eager}'::text[]) = 'true'::text) AND (((document #>> '{budget,tokens}'::text[]))::bigint = 0)) THEN ((document #>> '{budget,ratio}'::text[]))::double precision
    ELSE (0)::double precision
END) STORED NOT NULL,
    budget_min bigint GENERATED ALWAYS AS (
CASE
    WHEN (((document #>> '{budget,enabled}'::text[]) = 'true'::text) AND ((document #>> '{budget,eager}'::text[]) = 'true'::text)) THEN COALESCE(NULLIF(((document #>> '{budget,tokens}'::text[]))::bigint, 0), ((document #>> '{budget,min_tokens}'::text[]))::bigint)
    ELSE (0)::bigint
END) STORED NOT NULL,
    budget_max bigint GENERATED ALWAYS AS (
CASE
    WHEN (((document #>> '{budget,enabled}'::text[]) = 'true'::text) AND ((document #>> '{budget,eager}'::text[]) = 'true'::text)) THEN COALESCE(NULLIF(((document #>> '{budget,tokens}'::text[]))::bigint, 0), ((document #>> '{budget,max_tokens}'::text[]))::bigint)
    ELSE (0)::bigint
END) STORED NOT NULL,
    caps_over integer GENERATED ALWAYS AS (
CASE
    WHEN (((document #>> '{enabled}'::text[]) IS DISTINCT FROM 'false'::text) AND ((document #>> '{cap,enabled}'::text[]) = 'true'::text) AND ((document #>> '{cap,at_insertion}'::text[]) = 'true'::text)) THEN LEAST(NULLIF(((document #>> '{cap,max_tokens}'::text[]))::integer, 0), NULLIF(((document #>> '{cap,max_bytes}'::text[]))::integer, 0), NULLIF(((document #>> '{cap,max_chars}'::text[]))::integer, 0), NULLIF(((document #>> '{cap,max_lines}'::text[]))::integer, 0), NULLIF(((document #>> '{cap,max_line_chars}'::text[]))::integer, 0))
    ELSE NULL::integer
END) STORED,
    idle_ratio double precision GENERATED ALWAYS AS (
CASE
    WHEN (((document #>> '{idle,enabled}'::text[]) = 'true'::text) AND (GREATEST(((document #>> '{idle,after_seconds}'::text[]))::bigint, ((document #>> '{economy,ttl_seconds}'::text[]))::bigint) > 0)) THEN ((document #>> '{idle,from}'::text[]))::double precision
    ELSE (0)::double precision
END) STORED NOT NULL,
    idle_after bigint GENERATED ALWAYS AS (
CASE
    WHEN ((document #>> '{idle,enabled}'::text[]) = 'true'::text) THEN COALESCE(NULLIF(((document #>> '{idle,after_seconds}'::text[]))::bigint, 0), ((document #>> '{economy,ttl_seconds}'::text[]))::bigint)
    ELSE (0)::bigint
END) STORED NOT NULL,
    trigger_bytes bigint GENERATED ALWAYS AS (COALESCE(((document #>> '{trigger_bytes}'::text[]))::bigint, (16777216)::bigint)) STORED NOT NULL,
    CONSTRAINT policies_check CHECK (((hard_ratio >= trigger_ratio) AND (hard_ratio <= (1)::double precision))),
    CONSTRAINT policies_session_version_check CHECK ((session_version >= 0)),
    CONSTRAINT policies_tenant_version_check CHECK ((tenant_version > 0)),
    CONSTRAINT policies_trigger_ratio_check CHECK (((trigger_ratio > (0)::double precision) AND (trigger_ratio <= (1)::double precision)))
);

ALTER TABLE ONLY public.policies FORCE ROW LEVEL SECURITY;

CREATE TABLE public.policy_versions (
    tenant_id uuid NOT NULL,
    session_key uuid NOT NULL,
    version integer NOT NULL,
    tenant_version integer NOT NULL,
    patch json,
    document json,
    changed_by uuid,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT policy_versions_version_check CHECK ((version > 0))
);

ALTER TABLE ONLY public.policy_versions FORCE ROW LEVEL SECURITY;

CREATE TABLE public.recompaction_sessions (
    tenant_id uuid NOT NULL,
    recompaction_id uuid NOT NULL,
    session_key uuid NOT NULL,
    state text DEFAULT 'queued'::text NOT NULL,
    failures integer DEFAULT 0 NOT NULL,
    job_id bigint,
    run_id uuid,
    tokens_before bigint,
    tokens_after bigint,
    error text,
    finished_at timestamp with time zone,
    base_n integer,
    checkpoint_n integer,
    views_before bigint,
    served_before bigint,
    read_backs_before bigint,
    rollback text,
    reason text,
    CONSTRAINT recompaction_sessions_rollback_check CHECK ((rollback = ANY (ARRAY['rolled_back'::text, 'excepted'::text]))),
    CONSTRAINT recompaction_sessions_state_check CHECK ((state = ANY (ARRAY['queued'::text, 'running'::text, 'changed'::text, 'unchanged'::text, 'failed'::text])))
);
ALTER TABLE ONLY public.recompaction_sessions ALTER COLUMN recompaction_id SET (n_distinct=-0.01);

ALTER TABLE ONLY public.recompaction_sessions FORCE ROW LEVEL SECURITY;

CREATE TABLE public.recompactions (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    state text DEFAULT 'queued'::text NOT NULL,
    filter jsonb NOT NULL,
    policy json,
    max_running integer NOT NULL,
    cursor uuid DEFAULT '00000000-0000-0000-0000-000000000000'::uuid NOT NULL,
    total bigint DEFAULT 0 NOT NULL,
    changed bigint DEFAULT 0 NOT NULL,
    unchanged bigint DEFAULT 0 NOT NULL,
    failed bigint DEFAULT 0 NOT NULL,
    skipped bigint DEFAULT 0 NOT NULL,
    tokens_before bigint DEFAULT 0 NOT NULL,
    tokens_after bigint DEFAULT 0 NOT NULL,
    error text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    ask boolean DEFAULT false NOT NULL,
    group_id uuid,
    per_minute integer,
    start_at timestamp with time zone,
    hours jsonb,
    next_start_at timestamp with time zone,
    paused_at timestamp with time zone,
    rollback_at timestamp with time zone,
    rolled_back_at timestamp with time zone,
    rolled_back bigint DEFAULT 0 NOT NULL,
    excepted bigint DEFAULT 0 NOT NULL,
    told smallint DEFAULT 0 NOT NULL,
    views_base bigint,
    served_base bigint,
    read_backs_base bigint,
    CONSTRAINT recompactions_max_running_check CHECK (((max_running >= 1) AND (max_running <= 32))),
    CONSTRAINT recompactions_per_minute_check CHECK (((per_minute >= 1) AND (per_minute <= 6000))),
    CONSTRAINT recompactions_state_check CHECK ((state = ANY (ARRAY['queued'::text, 'running'::text, 'cancelling'::text, 'done'::text, 'failed'::text, 'cancelled'::text])))
);

ALTER TABLE ONLY public.recompactions FORCE ROW LEVEL SECURITY;

CREATE TABLE public.replay_outcomes (
    tenant_id uuid NOT NULL,
    replay_id uuid NOT NULL,
    session_key uuid NOT NULL,
    contender integer NOT NULL,
    window_tokens integer NOT NULL,
    outcome jsonb NOT NULL
);
ALTER TABLE ONLY public.replay_outcomes ALTER COLUMN replay_id SET (n_distinct=-0.01);

ALTER TABLE ONLY public.replay_outcomes FORCE ROW LEVEL SECURITY;

CREATE TABLE public.replay_sessions (
    tenant_id uuid NOT NULL,
    replay_id uuid NOT NULL,
    session_key uuid NOT NULL,
    place integer NOT NULL,
    last_seq bigint NOT NULL,
    window_tokens integer NOT NULL,
    state text DEFAULT 'queued'::text NOT NULL,
    reason text,
    attempts integer DEFAULT 0 NOT NULL,
    finished_at timestamp with time zone,
    CONSTRAINT replay_sessions_state_check CHECK ((state = ANY (ARRAY['queued'::text, 'measured'::text, 'skipped'::text, 'failed'::text])))
);
ALTER TABLE ONLY public.replay_sessions ALTER COLUMN replay_id SET (n_distinct=-0.01);

ALTER TABLE ONLY public.replay_sessions FORCE ROW LEVEL SECURITY;

CREATE TABLE public.replays (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    state text DEFAULT 'queued'::text NOT NULL,
    filter jsonb NOT NULL,
    contenders json NOT NULL,
    windows integer[] NOT NULL,
    sample integer NOT NULL,
    seed bigint NOT NULL,
    max_messages bigint NOT NULL,
    max_bytes bigint NOT NULL,
    matched bigint DEFAULT 0 NOT NULL,
    too_short bigint DEFAULT 0 NOT NULL,
    total bigint DEFAULT 0 NOT NULL,
    contender text,
    report json,
    error text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    progress jsonb,
    CONSTRAINT replays_sample_check CHECK (((sample >= 1) AND (sample <= 1000))),
    CONSTRAINT replays_state_check CHECK ((state = ANY (ARRAY['queued'::text, 'running'::text, 'cancelling'::text, 'done'::text, 'failed'::text, 'cancelled'::text])))
);

ALTER TABLE ONLY public.replays FORCE ROW LEVEL SECURITY;

CREATE TABLE public.result_bodies (
    tenant_id uuid NOT NULL,
    session_key uuid NOT NULL,
    id uuid NOT NULL,
    sha256 bytea,
    bytes bigint DEFAULT 0 NOT NULL,
    lines bigint DEFAULT 0 NOT NULL,
    store smallint DEFAULT 0 NOT NULL,
    writing bytea,
    touched_at timestamp with time zone DEFAULT now() NOT NULL,
    held_in uuid,
    objects_in uuid,
    CONSTRAINT result_bodies_sha256_check CHECK ((octet_length(sha256) = 32)),
    CONSTRAINT result_bodies_store_check CHECK ((store = ANY (ARRAY[0, 1, 2])))
);

ALTER TABLE ONLY public.result_bodies FORCE ROW LEVEL SECURITY;

CREATE TABLE public.result_chunks (
    tenant_id uuid NOT NULL,
    session_key uuid NOT NULL,
    body_id uuid NOT NULL,
    n integer NOT NULL,
    at bigint NOT NULL,
    line bigint NOT NULL,
    in_line boolean NOT NULL,
    size integer NOT NULL,
    codec smallint NOT NULL,
    digest bytea NOT NULL,
    body bytea,
    object uuid,
    object_at bigint,
    object_size integer,
    CONSTRAINT result_chunks_check CHECK (((body IS NULL) OR (object IS NULL))),
    CONSTRAINT result_chunks_check1 CHECK (((body IS NOT NULL) OR ((object IS NOT NULL) AND (object_at IS NOT NULL) AND (object_size IS NOT NULL)))),
    CONSTRAINT result_chunks_digest_check CHECK ((octet_length(digest) = 32)),
    CONSTRAINT result_chunks_n_check CHECK ((n >= 0))
);
ALTER TABLE ONLY public.result_chunks ALTER COLUMN body SET STORAGE EXTERNAL;

ALTER TABLE ONLY public.result_chunks FORCE ROW LEVEL SECURITY;

CREATE TABLE public.results (
    tenant_id uuid NOT NULL,
    session_key uuid NOT NULL,
    ref text NOT NULL,
    seq bigint NOT NULL,
    part integer NOT NULL,
    tool_name text NOT NULL,
    call_id text NOT NULL,
    category text NOT NULL,
    media_type text NOT NULL,
    bytes bigint NOT NULL,
    lines bigint NOT NULL,
    tokens bigint NOT NULL,
    sha256 bytea NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    body_id uuid,
    CONSTRAINT results_seq_check CHECK (((seq >= 0) AND ((seq = 0) = (ref ~~ 'u%'::text)))),
    CONSTRAINT results_sha256_check CHECK ((octet_length(sha256) = 32))
);

ALTER TABLE ONLY public.results FORCE ROW LEVEL SECURITY;

CREATE TABLE public.retention (
    tenant_id uuid NOT NULL,
    idle_seconds bigint,
    age_seconds bigint,
    looked_at timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    archives boolean DEFAULT false NOT NULL,
    archive_idle_seconds bigint,
    archive_age_seconds bigint,
    archive_kept_seconds bigint,
    CONSTRAINT retention_age_seconds_check CHECK ((age_seconds > 0)),
    CONSTRAINT retention_archive_age_seconds_check CHECK ((archive_age_seconds > 0)),
    CONSTRAINT retention_archive_idle_seconds_check CHECK ((archive_idle_seconds > 0)),
    CONSTRAINT retention_archive_kept_seconds_check CHECK ((archive_kept_seconds > 0)),
    CONSTRAINT retention_idle_seconds_check CHECK ((idle_seconds > 0))
);

ALTER TABLE ONLY public.retention FORCE ROW LEVEL SECURITY;

CREATE TABLE public.river_job (
    id bigint NOT NULL,
    state public.river_job_state DEFAULT 'available'::public.river_job_state NOT NULL,
    attempt smallint DEFAULT 0 NOT NULL,
    max_attempts smallint DEFAULT 25 NOT NULL,
    attempted_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    finalized_at timestamp with time zone,
    scheduled_at timestamp with time zone DEFAULT now() NOT NULL,
    priority smallint DEFAULT 1 NOT NULL,
    args jsonb NOT NULL,
    attempted_by text[],
    errors jsonb[],
    kind text NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    queue text DEFAULT 'default'::text NOT NULL,
    tags character varying(255)[] DEFAULT '{}'::character varying[] NOT NULL,
    unique_key bytea,
    unique_states bit(8),
    CONSTRAINT finalized_or_finalized_at_null CHECK ((((finalized_at IS NULL) AND (state <> ALL (ARRAY['cancelled'::public.river_job_state, 'completed'::public.river_job_state, 'discarded'::public.river_job_state]))) OR ((finalized_at IS NOT NULL) AND (state = ANY (ARRAY['cancelled'::public.river_job_state, 'completed'::public.river_job_state, 'discarded'::public.river_job_state]))))),
    CONSTRAINT kind_length CHECK (((char_length(kind) > 0) AND (char_length(kind) < 128))),
    CONSTRAINT max_attempts_is_positive CHECK ((max_attempts > 0)),
    CONSTRAINT priority_in_range CHECK (((priority >= 1) AND (priority <= 4))),
    CONSTRAINT queue_length CHECK (((char_length(queue) > 0) AND (char_length(queue) < 128)))
);

CREATE SEQUENCE public.river_job_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE public.river_job_id_seq OWNED BY public.river_job.id;

CREATE UNLOGGED TABLE public.river_leader (
    elected_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    leader_id text NOT NULL,
    name text DEFAULT 'default'::text NOT NULL,
    CONSTRAINT leader_id_length CHECK (((char_length(leader_id) > 0) AND (char_length(leader_id) < 128))),
    CONSTRAINT name_length CHECK ((name = 'default'::text))
);

CREATE TABLE public.river_migration (
    line text NOT NULL,
    version bigint NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT line_length CHECK (((char_length(line) > 0) AND (char_length(line) < 128))),
    CONSTRAINT version_gte_1 CHECK ((version >= 1))
);

CREATE TABLE public.river_notification (
    id bigint NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    payload text NOT NULL,
    topic text NOT NULL,
    CONSTRAINT topic_length CHECK (((length(topic) > 0) AND (length(topic) < 128)))
);

CREATE SEQUENCE public.river_notification_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE public.river_notification_id_seq OWNED BY public.river_notification.id;

CREATE TABLE public.river_queue (
    name text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    paused_at timestamp with time zone,
    updated_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL
);

CREATE TABLE public.rounds (
    kind text NOT NULL,
    tenant uuid DEFAULT '00000000-0000-0000-0000-000000000000'::uuid NOT NULL,
    session uuid DEFAULT '00000000-0000-0000-0000-000000000000'::uuid NOT NULL,
    finished_at timestamp with time zone
);

CREATE TABLE public.runs (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    session_key uuid NOT NULL,
    cause text NOT NULL,
    state text NOT NULL,
    job_id bigint NOT NULL,
    base_n integer,
    checkpoint_n integer,
    through_seq bigint,
    tokens_before bigint,
    tokens_after bigint,
    results_persisted integer,
    bytes_persisted bigint,
    stages jsonb DEFAULT '[]'::jsonb NOT NULL,
    timings jsonb DEFAULT '{}'::jsonb NOT NULL,
    error text,
    triggered_at timestamp with time zone DEFAULT now() NOT NULL,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    reason text DEFAULT ''::text NOT NULL,
    why jsonb DEFAULT '{}'::jsonb NOT NULL,
    report jsonb DEFAULT '{}'::jsonb NOT NULL,
    CONSTRAINT runs_cause_check CHECK ((cause = ANY (ARRAY['threshold'::text, 'hard'::text, 'idle'::text, 'manual'::text, 'sweep'::text, 'follow_up'::text, 'recompaction'::text, 'restore'::text, 'damage'::text, 'summary'::text]))),
    CONSTRAINT runs_state_check CHECK ((state = ANY (ARRAY['queued'::text, 'running'::text, 'done'::text, 'unchanged'::text, 'postponed'::text, 'superseded'::text, 'failed'::text])))
);

ALTER TABLE ONLY public.runs FORCE ROW LEVEL SECURITY;

CREATE TABLE public.schema_migrations (
    version bigint NOT NULL,
    dirty boolean NOT NULL
);

CREATE TABLE public.search_blocks (
    tenant_id uuid NOT NULL,
    session_key uuid NOT NULL,
    first_seq bigint NOT NULL,
    n integer NOT NULL,
    id bigint NOT NULL,
    bytes integer NOT NULL,
    seqs integer[] NOT NULL,
    words integer[] NOT NULL
);
ALTER TABLE ONLY public.search_blocks ALTER COLUMN words SET STORAGE EXTERNAL;

ALTER TABLE public.search_blocks ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.search_blocks_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.search_sessions (
    tenant_id uuid NOT NULL,
    session_key uuid NOT NULL,
    rules text DEFAULT 'simple'::text NOT NULL,
    indexed_seq bigint DEFAULT 0 NOT NULL,
    in_part integer DEFAULT 0 NOT NULL,
    due_since timestamp with time zone
);

ALTER TABLE ONLY public.search_sessions FORCE ROW LEVEL SECURITY;

CREATE TABLE public.search_settings (
    tenant_id uuid NOT NULL,
    language text NOT NULL,
    results boolean DEFAULT false NOT NULL
);

ALTER TABLE ONLY public.search_settings FORCE ROW LEVEL SECURITY;

CREATE TABLE public.session_archives (
    tenant_id uuid NOT NULL,
    session_key uuid NOT NULL,
    id uuid NOT NULL,
    state text DEFAULT 'archiving'::text NOT NULL,
    attempt uuid,
    archived_at timestamp with time zone,
    store smallint DEFAULT 0 NOT NULL,
    rows bigint DEFAULT 0 NOT NULL,
    messages bigint DEFAULT 0 NOT NULL,
    results bigint DEFAULT 0 NOT NULL,
    bodies bigint DEFAULT 0 NOT NULL,
    checkpoints bigint DEFAULT 0 NOT NULL,
    bytes bigint DEFAULT 0 NOT NULL,
    message_bytes bigint DEFAULT 0 NOT NULL,
    contents bytea,
    model_use jsonb DEFAULT '{}'::jsonb NOT NULL,
    parts integer DEFAULT 0 NOT NULL,
    stored bigint DEFAULT 0 NOT NULL,
    digest bytea,
    done bigint DEFAULT 0 NOT NULL,
    error text,
    failed_at timestamp with time zone,
    objects uuid[] DEFAULT '{}'::uuid[] NOT NULL,
    sizes integer[] DEFAULT '{}'::integer[] NOT NULL,
    view_end integer,
    CONSTRAINT session_archives_state_check CHECK ((state = ANY (ARRAY['archiving'::text, 'archived'::text, 'restoring'::text])))
);

ALTER TABLE ONLY public.session_archives FORCE ROW LEVEL SECURITY;

CREATE TABLE public.session_failures (
    tenant_id uuid NOT NULL,
    session_key uuid NOT NULL,
    run_id uuid NOT NULL,
    job_id bigint NOT NULL,
    failures integer DEFAULT 0 NOT NULL,
    deaths integer DEFAULT 0 NOT NULL,
    trials integer DEFAULT 0 NOT NULL,
    error text NOT NULL,
    since timestamp with time zone DEFAULT now() NOT NULL,
    failed_at timestamp with time zone DEFAULT now() NOT NULL,
    next_try_at timestamp with time zone NOT NULL,
    quarantined_at timestamp with time zone
);

ALTER TABLE ONLY public.session_failures FORCE ROW LEVEL SECURITY;

CREATE TABLE public.session_holds (
    tenant_id uuid NOT NULL,
    session_key uuid NOT NULL,
    reason text NOT NULL,
    placed_by uuid,
    placed_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT session_holds_reason_check CHECK (((octet_length(reason) >= 1) AND (octet_length(reason) <= 1024)))
);

ALTER TABLE ONLY public.session_holds FORCE ROW LEVEL SECURITY;

CREATE TABLE public.session_metadata (
    tenant_id uuid NOT NULL,
    session_key uuid NOT NULL,
    pair bigint NOT NULL,
    created_at timestamp with time zone NOT NULL
);

ALTER TABLE ONLY public.session_metadata FORCE ROW LEVEL SECURITY;

CREATE TABLE public.session_pins (
    tenant_id uuid NOT NULL,
    session_key uuid NOT NULL,
    ref text NOT NULL,
    seq bigint NOT NULL,
    part integer NOT NULL,
    text bytea NOT NULL,
    tokens integer NOT NULL,
    note text DEFAULT ''::text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT session_pins_part_check CHECK ((part >= '-1'::integer)),
    CONSTRAINT session_pins_ref_check CHECK (((octet_length(ref) >= 2) AND (octet_length(ref) <= 64))),
    CONSTRAINT session_pins_seq_check CHECK ((seq > 0)),
    CONSTRAINT session_pins_tokens_check CHECK ((tokens >= 0))
);

ALTER TABLE ONLY public.session_pins FORCE ROW LEVEL SECURITY;

CREATE TABLE public.session_retention (
    tenant_id uuid NOT NULL,
    session_key uuid NOT NULL,
    idle_seconds bigint,
    age_seconds bigint,
    look_at timestamp with time zone,
    archives boolean DEFAULT false NOT NULL,
    archive_idle_seconds bigint,
    archive_age_seconds bigint,
    archive_kept_seconds bigint,
    CONSTRAINT session_retention_age_seconds_check CHECK ((age_seconds > 0)),
    CONSTRAINT session_retention_archive_age_seconds_check CHECK ((archive_age_seconds > 0)),
    CONSTRAINT session_retention_archive_idle_seconds_check CHECK ((archive_idle_seconds > 0)),
    CONSTRAINT session_retention_archive_kept_seconds_check CHECK ((archive_kept_seconds > 0)),
    CONSTRAINT session_retention_idle_seconds_check CHECK ((idle_seconds > 0))
);

ALTER TABLE ONLY public.session_retention FORCE ROW LEVEL SECURITY;

CREATE TABLE public.session_tokens (
    tenant_id uuid NOT NULL,
    session_key uuid NOT NULL,
    id uuid NOT NULL,
    name text DEFAULT ''::text NOT NULL,
    digest bytea NOT NULL,
    last4 text NOT NULL,
    scopes text[] NOT NULL,
    made_by uuid NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    revoked_at timestamp with time zone,
    CONSTRAINT session_tokens_check CHECK ((expires_at <= (created_at + '24:00:00'::interval))),
    CONSTRAINT session_tokens_digest_check CHECK ((octet_length(digest) = 32)),
    CONSTRAINT session_tokens_scopes_check CHECK (((scopes @> ARRAY['read'::text]) AND (scopes <@ ARRAY['read'::text, 'compact'::text])))
);

ALTER TABLE ONLY public.session_tokens FORCE ROW LEVEL SECURITY;

CREATE TABLE public.sessions (
    tenant_id uuid NOT NULL,
    key uuid NOT NULL,
    id text NOT NULL,
    format smallint DEFAULT 0 NOT NULL,
    model text DEFAULT ''::text NOT NULL,
    window_tokens integer NOT NULL,
    overhead_tokens integer DEFAULT 0 NOT NULL,
    policy_id uuid NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    last_seq bigint DEFAULT 0 NOT NULL,
    pinned bigint DEFAULT 0 NOT NULL,
    tail_bytes bigint DEFAULT 0 NOT NULL,
    context_tokens bigint DEFAULT 0 NOT NULL,
    total_tokens bigint DEFAULT 0 NOT NULL,
    floor_tokens bigint DEFAULT 0 NOT NULL,
    armed_threshold smallint DEFAULT 1 NOT NULL,
    checkpoint_n integer DEFAULT 0 NOT NULL,
    through_seq bigint DEFAULT 0 NOT NULL,
    checkpoint_size integer DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    last_append_at timestamp with time zone,
    calibration real DEFAULT 1 NOT NULL,
    counted_tokens bigint DEFAULT 0 NOT NULL,
    exact_tokens bigint DEFAULT 0 NOT NULL,
    last_usage jsonb,
    window_source text DEFAULT 'request'::text NOT NULL,
    gap_seq bigint DEFAULT 0 NOT NULL,
    unseen_tokens bigint DEFAULT 0 NOT NULL,
    shrunk_tokens bigint DEFAULT 0 NOT NULL,
    idle_asked boolean DEFAULT false NOT NULL,
    floor_seq bigint DEFAULT 0 NOT NULL,
    floor_version integer DEFAULT 0 NOT NULL,
    damaged_n integer DEFAULT 0 NOT NULL,
    offloaded_n integer DEFAULT 0 NOT NULL,
    floor_hides smallint DEFAULT 0 NOT NULL,
    floor_engine integer DEFAULT 0 NOT NULL,
    engine_version integer,
    policy_version integer,
    unbound_seq bigint DEFAULT 0 NOT NULL,
    forked_from text,
    forked_seq bigint,
    forked_checkpoint integer,
    frozen_at timestamp with time zone,
    archived boolean DEFAULT false NOT NULL,
    restored_at timestamp with time zone
)
WITH (fillfactor='70', autovacuum_vacuum_scale_factor='0.05', autovacuum_analyze_scale_factor='0.05');

ALTER TABLE ONLY public.sessions FORCE ROW LEVEL SECURITY;

CREATE TABLE public.summaries (
    tenant_id uuid NOT NULL,
    session_key uuid NOT NULL,
    model text NOT NULL,
    digest bytea NOT NULL,
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    checkpoint_n integer NOT NULL,
    state text DEFAULT 'due'::text NOT NULL,
    request bytea,
    attempts integer DEFAULT 0 NOT NULL,
    retain bytea,
    summary bytea,
    flags text[] DEFAULT '{}'::text[] NOT NULL,
    provenance jsonb,
    answer_keys bytea[] DEFAULT '{}'::bytea[] NOT NULL,
    reason text,
    ask_after timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    asked_at timestamp with time zone,
    finished_at timestamp with time zone,
    offered boolean DEFAULT false NOT NULL,
    CONSTRAINT summaries_check1 CHECK (((summary IS NOT NULL) = (state = 'answered'::text))),
    CONSTRAINT summaries_digest_check CHECK ((octet_length(digest) = 32)),
    CONSTRAINT summaries_request_check CHECK (((state <> ALL (ARRAY['due'::text, 'asking'::text])) OR (request IS NOT NULL))),
    CONSTRAINT summaries_state_check CHECK ((state = ANY (ARRAY['due'::text, 'asking'::text, 'answered'::text, 'failed'::text, 'superseded'::text])))
);

ALTER TABLE ONLY public.summaries FORCE ROW LEVEL SECURITY;

CREATE TABLE public.tenant_tasks (
    tenant_id uuid NOT NULL,
    kind text NOT NULL,
    cursor uuid DEFAULT '00000000-0000-0000-0000-000000000000'::uuid NOT NULL,
    since timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT tenant_tasks_kind_check CHECK (((octet_length(kind) >= 1) AND (octet_length(kind) <= 64)))
);

CREATE TABLE public.tenants (
    id uuid NOT NULL,
    name text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    limits jsonb DEFAULT '{}'::jsonb NOT NULL,
    suspended text,
    suspended_at timestamp with time zone,
    hold text,
    held_by uuid,
    held_at timestamp with time zone,
    erasure_id uuid,
    most_idle_seconds bigint,
    most_age_seconds bigint,
    CONSTRAINT tenants_erasure_check CHECK (((erasure_id IS NULL) OR ((suspended = 'all'::text) AND (suspended IS NOT NULL)))),
    CONSTRAINT tenants_hold_check CHECK (((octet_length(hold) >= 1) AND (octet_length(hold) <= 1024))),
    CONSTRAINT tenants_most_age_seconds_check CHECK ((most_age_seconds > 0)),
    CONSTRAINT tenants_most_idle_seconds_check CHECK ((most_idle_seconds > 0)),
    CONSTRAINT tenants_name_check CHECK (((octet_length(name) >= 1) AND (octet_length(name) <= 255))),
    CONSTRAINT tenants_suspended_check CHECK ((suspended = ANY (ARRAY['reads'::text, 'writes'::text, 'all'::text])))
);

CREATE TABLE public.uploads (
    tenant_id uuid NOT NULL,
    session_key uuid NOT NULL,
    id uuid NOT NULL,
    n integer NOT NULL,
    body_id uuid NOT NULL,
    key text,
    tool text NOT NULL,
    call_id text NOT NULL,
    media_type text NOT NULL,
    expected bytea,
    ref text,
    shown bytea,
    shown_sha256 bytea,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    finished_at timestamp with time zone,
    searched_in text,
    searched_in_part boolean DEFAULT false NOT NULL,
    CONSTRAINT uploads_check CHECK (((ref IS NULL) = (finished_at IS NULL))),
    CONSTRAINT uploads_check1 CHECK (((shown IS NULL) = (finished_at IS NULL))),
    CONSTRAINT uploads_expected_check CHECK ((octet_length(expected) = 32)),
    CONSTRAINT uploads_n_check CHECK ((n > 0)),
    CONSTRAINT uploads_shown_sha256_check CHECK ((octet_length(shown_sha256) = 32))
);

ALTER TABLE ONLY public.uploads FORCE ROW LEVEL SECURITY;

CREATE TABLE public.usage_days (
    tenant_id uuid NOT NULL,
    day date NOT NULL,
    messages bigint DEFAULT 0 NOT NULL,
    bytes bigint DEFAULT 0 NOT NULL,
    tokens bigint DEFAULT 0 NOT NULL,
    views bigint DEFAULT 0 NOT NULL,
    tokens_served bigint DEFAULT 0 NOT NULL,
    tokens_saved bigint DEFAULT 0 NOT NULL,
    read_backs bigint DEFAULT 0 NOT NULL,
    compactions bigint DEFAULT 0 NOT NULL
);

ALTER TABLE ONLY public.usage_days FORCE ROW LEVEL SECURITY;

CREATE TABLE public.usage_sessions (
    tenant_id uuid NOT NULL,
    session_key uuid NOT NULL,
    counted_seq bigint DEFAULT 0 NOT NULL,
    counted_n integer DEFAULT 0 NOT NULL,
    messages bigint DEFAULT 0 NOT NULL,
    bytes bigint DEFAULT 0 NOT NULL,
    tokens bigint DEFAULT 0 NOT NULL,
    views bigint DEFAULT 0 NOT NULL,
    tokens_served bigint DEFAULT 0 NOT NULL,
    tokens_saved bigint DEFAULT 0 NOT NULL,
    read_backs bigint DEFAULT 0 NOT NULL,
    compactions bigint DEFAULT 0 NOT NULL,
    appended_at timestamp with time zone,
    over_window boolean DEFAULT false NOT NULL,
    read_at timestamp with time zone DEFAULT '1970-01-01 00:00:00+00'::timestamp with time zone NOT NULL,
    away boolean DEFAULT false NOT NULL,
    thawed_at timestamp with time zone,
    back_at timestamp with time zone,
    read_on date GENERATED ALWAYS AS (((read_at AT TIME ZONE 'UTC'::text))::date) STORED NOT NULL
)
WITH (fillfactor='85');

ALTER TABLE ONLY public.usage_sessions FORCE ROW LEVEL SECURITY;

CREATE TABLE public.verifications (
    tenant_id uuid NOT NULL,
    cursor uuid DEFAULT '00000000-0000-0000-0000-000000000000'::uuid NOT NULL,
    started_at timestamp with time zone DEFAULT now() NOT NULL,
    sessions bigint DEFAULT 0 NOT NULL,
    bytes bigint DEFAULT 0 NOT NULL,
    finished_at timestamp with time zone,
    last_sessions bigint DEFAULT 0 NOT NULL,
    last_bytes bigint DEFAULT 0 NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE ONLY public.verifications FORCE ROW LEVEL SECURITY;

CREATE TABLE public.webhook_deliveries (
    tenant_id uuid NOT NULL,
    webhook_id uuid NOT NULL,
    n bigint NOT NULL,
    topic text NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    next_try_at timestamp with time zone DEFAULT now() NOT NULL,
    error text
);

ALTER TABLE ONLY public.webhook_deliveries FORCE ROW LEVEL SECURITY;

CREATE TABLE public.webhook_secrets (
    tenant_id uuid NOT NULL,
    webhook_id uuid NOT NULL,
    id uuid NOT NULL,
    secret bytea NOT NULL,
    expires_at timestamp with time zone,
    CONSTRAINT webhook_secrets_secret_check CHECK ((octet_length(secret) = 32))
);

ALTER TABLE ONLY public.webhook_secrets FORCE ROW LEVEL SECURITY;

CREATE TABLE public.webhook_turns (
    tenant_id uuid NOT NULL,
    webhook_id uuid NOT NULL,
    enabled boolean DEFAULT true NOT NULL,
    through_n bigint NOT NULL,
    resume_at timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    retry_at timestamp with time zone,
    taken_at timestamp with time zone,
    failing boolean DEFAULT false NOT NULL
);

ALTER TABLE ONLY public.webhook_turns FORCE ROW LEVEL SECURITY;

CREATE TABLE public.webhooks (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    name text NOT NULL,
    url text NOT NULL,
    types text[] NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    disabled_at timestamp with time zone,
    disabled_reason text,
    failures integer DEFAULT 0 NOT NULL,
    failing_since timestamp with time zone,
    last_error text,
    last_failed_at timestamp with time zone,
    last_delivered_at timestamp with time zone,
    delivered bigint DEFAULT 0 NOT NULL,
    dropped bigint DEFAULT 0 NOT NULL,
    CONSTRAINT webhooks_url_check CHECK (((octet_length(url) >= 1) AND (octet_length(url) <= 2048)))
);

ALTER TABLE ONLY public.webhooks FORCE ROW LEVEL SECURITY;

CREATE TABLE public.workers (
    id text NOT NULL,
    started_at timestamp with time zone DEFAULT now() NOT NULL,
    unbroken timestamp with time zone DEFAULT now() NOT NULL,
    renewed_at timestamp with time zone DEFAULT now() NOT NULL,
    dead_at timestamp with time zone
);

ALTER TABLE ONLY public.river_job ALTER COLUMN id SET DEFAULT nextval('public.river_job_id_seq'::regclass);

ALTER TABLE ONLY public.river_notification ALTER COLUMN id SET DEFAULT nextval('public.river_notification_id_seq'::regclass);

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (tenant_id, id);

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_tenant_id_digest_key UNIQUE (tenant_id, digest);

ALTER TABLE ONLY public.archive_parts
    ADD CONSTRAINT archive_parts_pkey PRIMARY KEY (tenant_id, session_key, n);

ALTER TABLE ONLY public.audit_heads
    ADD CONSTRAINT audit_heads_pkey PRIMARY KEY (tenant_id);

ALTER TABLE ONLY public.audit_trail
    ADD CONSTRAINT audit_trail_pkey PRIMARY KEY (tenant_id, n);

ALTER TABLE ONLY public.checkpoints
    ADD CONSTRAINT checkpoints_pkey PRIMARY KEY (tenant_id, session_key, n);

ALTER TABLE ONLY public.due_sessions
    ADD CONSTRAINT due_sessions_pkey PRIMARY KEY (tenant_id, session_key);

ALTER TABLE ONLY public.erasure_sessions
    ADD CONSTRAINT erasure_sessions_pkey PRIMARY KEY (tenant_id, erasure_id, session_key);

ALTER TABLE ONLY public.erasures
    ADD CONSTRAINT erasures_pkey PRIMARY KEY (tenant_id, id);

ALTER TABLE ONLY public.event_heads
    ADD CONSTRAINT event_heads_pkey PRIMARY KEY (tenant_id);

ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (tenant_id, id);

ALTER TABLE ONLY public.findings
    ADD CONSTRAINT findings_pkey PRIMARY KEY (tenant_id, session_key, n);

ALTER TABLE ONLY public.idempotency
    ADD CONSTRAINT idempotency_pkey PRIMARY KEY (tenant_id, route, key);

ALTER TABLE ONLY public.import_lines
    ADD CONSTRAINT import_lines_pkey PRIMARY KEY (tenant_id, import_id, n);

ALTER TABLE ONLY public.imports
    ADD CONSTRAINT imports_pkey PRIMARY KEY (tenant_id, id);

ALTER TABLE ONLY public.installation
    ADD CONSTRAINT installation_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.message_packs
    ADD CONSTRAINT message_packs_pkey PRIMARY KEY (tenant_id, session_key, first_seq);

ALTER TABLE ONLY public.messages
    ADD CONSTRAINT messages_pkey PRIMARY KEY (tenant_id, session_key, seq);

ALTER TABLE ONLY public.model_answers
    ADD CONSTRAINT model_answers_pkey PRIMARY KEY (tenant_id, key);

ALTER TABLE ONLY public.model_spending
    ADD CONSTRAINT model_spending_pkey PRIMARY KEY (tenant_id, day, model);

ALTER TABLE ONLY public.operator_keys
    ADD CONSTRAINT operator_keys_digest_key UNIQUE (digest);

ALTER TABLE ONLY public.operator_keys
    ADD CONSTRAINT operator_keys_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.policies
    ADD CONSTRAINT policies_pkey PRIMARY KEY (tenant_id, id);

ALTER TABLE ONLY public.policy_versions
    ADD CONSTRAINT policy_versions_pkey PRIMARY KEY (tenant_id, session_key, version);

ALTER TABLE ONLY public.recompaction_sessions
    ADD CONSTRAINT recompaction_sessions_pkey PRIMARY KEY (tenant_id, recompaction_id, session_key);

ALTER TABLE ONLY public.recompactions
    ADD CONSTRAINT recompactions_pkey PRIMARY KEY (tenant_id, id);

ALTER TABLE ONLY public.replay_outcomes
    ADD CONSTRAINT replay_outcomes_pkey PRIMARY KEY (tenant_id, replay_id, session_key, contender, window_tokens);

ALTER TABLE ONLY public.replay_sessions
    ADD CONSTRAINT replay_sessions_pkey PRIMARY KEY (tenant_id, replay_id, session_key);

ALTER TABLE ONLY public.replays
    ADD CONSTRAINT replays_pkey PRIMARY KEY (tenant_id, id);

ALTER TABLE ONLY public.result_bodies
    ADD CONSTRAINT result_bodies_pkey PRIMARY KEY (tenant_id, session_key, id);

ALTER TABLE ONLY public.result_chunks
    ADD CONSTRAINT result_chunks_pkey PRIMARY KEY (tenant_id, session_key, body_id, n);

ALTER TABLE ONLY public.results
    ADD CONSTRAINT results_pkey PRIMARY KEY (tenant_id, session_key, ref);

ALTER TABLE ONLY public.retention
    ADD CONSTRAINT retention_pkey PRIMARY KEY (tenant_id);

ALTER TABLE ONLY public.river_job
    ADD CONSTRAINT river_job_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.river_leader
    ADD CONSTRAINT river_leader_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.river_migration
    ADD CONSTRAINT river_migration_pkey1 PRIMARY KEY (line, version);

ALTER TABLE ONLY public.river_notification
    ADD CONSTRAINT river_notification_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.river_queue
    ADD CONSTRAINT river_queue_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.rounds
    ADD CONSTRAINT rounds_pkey PRIMARY KEY (kind);

ALTER TABLE ONLY public.runs
    ADD CONSTRAINT runs_pkey PRIMARY KEY (tenant_id, id);

ALTER TABLE ONLY public.schema_migrations
    ADD CONSTRAINT schema_migrations_pkey PRIMARY KEY (version);

ALTER TABLE ONLY public.search_blocks
    ADD CONSTRAINT search_blocks_pkey PRIMARY KEY (tenant_id, session_key, first_seq, n);

ALTER TABLE ONLY public.search_sessions
    ADD CONSTRAINT search_sessions_pkey PRIMARY KEY (tenant_id, session_key);

ALTER TABLE ONLY public.search_settings
    ADD CONSTRAINT search_settings_pkey PRIMARY KEY (tenant_id);

ALTER TABLE ONLY public.session_archives
    ADD CONSTRAINT session_archives_pkey PRIMARY KEY (tenant_id, session_key);

ALTER TABLE ONLY public.session_failures
    ADD CONSTRAINT session_failures_pkey PRIMARY KEY (tenant_id, session_key);

ALTER TABLE ONLY public.session_holds
    ADD CONSTRAINT session_holds_pkey PRIMARY KEY (tenant_id, session_key);

ALTER TABLE ONLY public.session_metadata
    ADD CONSTRAINT session_metadata_pkey PRIMARY KEY (tenant_id, session_key, pair);

ALTER TABLE ONLY public.session_pins
    ADD CONSTRAINT session_pins_pkey PRIMARY KEY (tenant_id, session_key, ref);

ALTER TABLE ONLY public.session_retention
    ADD CONSTRAINT session_retention_pkey PRIMARY KEY (tenant_id, session_key);

ALTER TABLE ONLY public.session_tokens
    ADD CONSTRAINT session_tokens_pkey PRIMARY KEY (tenant_id, session_key, id);

ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (tenant_id, key);

ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_tenant_id_id_key UNIQUE (tenant_id, id);

ALTER TABLE ONLY public.summaries
    ADD CONSTRAINT summaries_pkey PRIMARY KEY (tenant_id, session_key, model, digest);

ALTER TABLE ONLY public.tenant_tasks
    ADD CONSTRAINT tenant_tasks_pkey PRIMARY KEY (tenant_id, kind);

ALTER TABLE ONLY public.tenants
    ADD CONSTRAINT tenants_name_key UNIQUE (name);

ALTER TABLE ONLY public.tenants
    ADD CONSTRAINT tenants_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.uploads
    ADD CONSTRAINT uploads_pkey PRIMARY KEY (tenant_id, session_key, id);

ALTER TABLE ONLY public.usage_days
    ADD CONSTRAINT usage_days_pkey PRIMARY KEY (tenant_id, day);

ALTER TABLE ONLY public.usage_sessions
    ADD CONSTRAINT usage_sessions_pkey PRIMARY KEY (tenant_id, session_key);

ALTER TABLE ONLY public.verifications
    ADD CONSTRAINT verifications_pkey PRIMARY KEY (tenant_id);

ALTER TABLE ONLY public.webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (tenant_id, webhook_id, n);

ALTER TABLE ONLY public.webhook_secrets
    ADD CONSTRAINT webhook_secrets_pkey PRIMARY KEY (tenant_id, webhook_id, id);

ALTER TABLE ONLY public.webhook_turns
    ADD CONSTRAINT webhook_turns_pkey PRIMARY KEY (tenant_id, webhook_id);

ALTER TABLE ONLY public.webhooks
    ADD CONSTRAINT webhooks_pkey PRIMARY KEY (tenant_id, id);

ALTER TABLE ONLY public.workers
    ADD CONSTRAINT workers_pkey PRIMARY KEY (id);

CREATE INDEX api_keys_newest ON public.api_keys USING btree (tenant_id, created_at DESC, id DESC);

CREATE INDEX audit_trail_action ON public.audit_trail USING btree (tenant_id, action, n);

CREATE INDEX audit_trail_actor ON public.audit_trail USING btree (tenant_id, actor_id, n);

CREATE INDEX audit_trail_at ON public.audit_trail USING btree (tenant_id, at, n);

CREATE INDEX audit_trail_object ON public.audit_trail USING btree (tenant_id, object_id, n);

CREATE INDEX checkpoints_created ON public.checkpoints USING btree (tenant_id, created_at);

CREATE INDEX due_sessions_since ON public.due_sessions USING btree (since);

CREATE INDEX erasure_sessions_live ON public.erasure_sessions USING btree (tenant_id, erasure_id, state) WHERE (state <> 'gone'::text);

CREATE INDEX erasures_live ON public.erasures USING btree (tenant_id) WHERE (state <> 'done'::text);

CREATE INDEX erasures_newest ON public.erasures USING btree (tenant_id, created_at DESC, id DESC);

CREATE UNIQUE INDEX erasures_of_expired ON public.erasures USING btree (tenant_id) WHERE ((kind = 'retention'::text) AND (state <> 'done'::text));

CREATE UNIQUE INDEX events_n ON public.events USING btree (tenant_id, n);

CREATE UNIQUE INDEX events_once ON public.events USING btree (tenant_id, once) WHERE (once IS NOT NULL);

CREATE INDEX events_topic ON public.events USING btree (tenant_id, topic, n);

CREATE INDEX findings_newest ON public.findings USING btree (tenant_id, found_at DESC, session_key, n);

CREATE INDEX idempotency_age ON public.idempotency USING btree (tenant_id, created_at);

CREATE INDEX idempotency_session ON public.idempotency USING btree (tenant_id, session_key);

CREATE INDEX import_lines_outcome ON public.import_lines USING btree (tenant_id, import_id, outcome, n);

CREATE UNIQUE INDEX imports_key ON public.imports USING btree (tenant_id, key) WHERE (key IS NOT NULL);

CREATE INDEX imports_newest ON public.imports USING btree (tenant_id, created_at DESC, id DESC);

CREATE INDEX job_places ON public.river_job USING btree (((args ->> 'tenant'::text)), queue, priority, scheduled_at) WHERE (queue = ANY (ARRAY['compaction'::text, 'recompaction'::text, 'summary'::text]));

CREATE UNIQUE INDEX messages_client_id ON public.messages USING btree (tenant_id, session_key, client_id) WHERE ((client_id IS NOT NULL) AND ((superseded_by IS NULL) OR (superseded_by = removed_seq)));

CREATE INDEX messages_item ON public.messages USING btree (tenant_id, session_key, item_id) WHERE (item_id IS NOT NULL);

CREATE INDEX messages_state ON public.messages USING btree (tenant_id, session_key, seq) WHERE ((flags & 57344) = 57344);

CREATE INDEX messages_superseded ON public.messages USING btree (tenant_id, session_key, client_id) WHERE ((client_id IS NOT NULL) AND (superseded_by > removed_seq));

CREATE INDEX model_answers_session ON public.model_answers USING btree (tenant_id, session_key);

CREATE INDEX model_answers_unbound ON public.model_answers USING btree (tenant_id, created_at) WHERE (session_key IS NULL);

CREATE INDEX model_spending_day ON public.model_spending USING btree (day) WHERE (model = ''::text);

CREATE INDEX policies_exact ON public.policies USING btree (tenant_id) WHERE (tokenizer <> 'estimate'::text);

CREATE INDEX recompaction_sessions_failed ON public.recompaction_sessions USING btree (tenant_id, recompaction_id, finished_at DESC) WHERE (state = 'failed'::text);

CREATE INDEX recompaction_sessions_left ON public.recompaction_sessions USING btree (tenant_id, recompaction_id, state, failures, session_key) WHERE (finished_at IS NULL);

CREATE INDEX recompaction_sessions_session ON public.recompaction_sessions USING btree (tenant_id, session_key);

CREATE UNIQUE INDEX recompactions_group ON public.recompactions USING btree (group_id, tenant_id) WHERE (group_id IS NOT NULL);

CREATE INDEX recompactions_groups ON public.recompactions USING btree (created_at, group_id) WHERE (group_id IS NOT NULL);

CREATE INDEX recompactions_live ON public.recompactions USING btree (tenant_id, id) WHERE (finished_at IS NULL);

CREATE INDEX recompactions_newest ON public.recompactions USING btree (tenant_id, created_at DESC, id DESC);

CREATE INDEX replay_outcomes_session ON public.replay_outcomes USING btree (tenant_id, session_key);

CREATE INDEX replay_sessions_left ON public.replay_sessions USING btree (tenant_id, replay_id, place) WHERE (finished_at IS NULL);

CREATE UNIQUE INDEX replay_sessions_order ON public.replay_sessions USING btree (tenant_id, replay_id, place);

CREATE INDEX replay_sessions_session ON public.replay_sessions USING btree (tenant_id, session_key);

CREATE UNIQUE INDEX replays_live ON public.replays USING btree (tenant_id) WHERE (finished_at IS NULL);

CREATE INDEX replays_newest ON public.replays USING btree (tenant_id, created_at DESC, id DESC);

CREATE UNIQUE INDEX result_bodies_content ON public.result_bodies USING btree (tenant_id, session_key, sha256);

CREATE INDEX result_bodies_held ON public.result_bodies USING btree (tenant_id, held_in, id) WHERE (held_in IS NOT NULL);

CREATE INDEX result_bodies_touched ON public.result_bodies USING btree (tenant_id, touched_at);

CREATE INDEX result_chunks_object ON public.result_chunks USING btree (tenant_id, object) WHERE (object IS NOT NULL);

CREATE INDEX results_body ON public.results USING btree (tenant_id, session_key, body_id) WHERE (body_id IS NOT NULL);

CREATE INDEX results_category ON public.results USING btree (tenant_id, session_key, category, seq, part);

CREATE INDEX results_place ON public.results USING btree (tenant_id, session_key, seq, part);

CREATE INDEX results_tool ON public.results USING btree (tenant_id, session_key, tool_name, seq, part);

CREATE INDEX retention_looked_at ON public.retention USING btree (looked_at);

CREATE INDEX river_job_args_index ON public.river_job USING gin (args);

CREATE INDEX river_job_kind ON public.river_job USING btree (kind);

CREATE INDEX river_job_metadata_index ON public.river_job USING gin (metadata);

CREATE INDEX river_job_prioritized_fetching_index ON public.river_job USING btree (state, queue, priority, scheduled_at, id);

CREATE INDEX river_job_state_and_finalized_at_index ON public.river_job USING btree (state, finalized_at) WHERE (finalized_at IS NOT NULL);

CREATE UNIQUE INDEX river_job_unique_idx ON public.river_job USING btree (unique_key) WHERE ((unique_key IS NOT NULL) AND (unique_states IS NOT NULL) AND public.river_job_state_in_bitmask(unique_states, state));

CREATE INDEX river_notification_created_at_idx ON public.river_notification USING btree (created_at);

CREATE INDEX river_notification_topic_id_idx ON public.river_notification USING btree (topic, id);

CREATE INDEX runs_newest ON public.runs USING btree (tenant_id, session_key, triggered_at DESC, id DESC);

CREATE INDEX runs_unfinished ON public.runs USING btree (tenant_id) WHERE (state = ANY (ARRAY['queued'::text, 'running'::text]));

CREATE INDEX search_blocks_words ON public.search_blocks USING gin (words) WITH (gin_pending_list_limit='1024');

CREATE INDEX search_sessions_due ON public.search_sessions USING btree (tenant_id, due_since, session_key) WHERE (due_since IS NOT NULL);

CREATE INDEX search_sessions_in_part ON public.search_sessions USING btree (tenant_id) WHERE (in_part > 0);

CREATE INDEX session_failures_newest ON public.session_failures USING btree (tenant_id, since DESC, session_key DESC);

CREATE INDEX session_failures_oldest ON public.session_failures USING btree (since, session_key);

CREATE INDEX session_failures_quarantined ON public.session_failures USING btree (quarantined_at, session_key) WHERE (quarantined_at IS NOT NULL);

CREATE INDEX session_holds_newest ON public.session_holds USING btree (tenant_id, placed_at DESC, session_key DESC);

CREATE INDEX session_metadata_pair ON public.session_metadata USING btree (tenant_id, pair, created_at DESC, session_key DESC);

CREATE INDEX session_retention_look_at ON public.session_retention USING btree (tenant_id, look_at) WHERE (look_at IS NOT NULL);

CREATE UNIQUE INDEX session_tokens_digest ON public.session_tokens USING btree (tenant_id, digest);

CREATE INDEX session_tokens_newest ON public.session_tokens USING btree (tenant_id, session_key, created_at DESC, id DESC);

CREATE INDEX sessions_archived ON public.sessions USING btree (tenant_id, frozen_at DESC, key DESC) WHERE archived;

CREATE INDEX sessions_forked ON public.sessions USING btree (tenant_id, forked_from, created_at DESC, key DESC) WHERE (forked_from IS NOT NULL);

CREATE INDEX sessions_newest ON public.sessions USING btree (tenant_id, created_at DESC, key DESC);

CREATE INDEX sessions_offload ON public.sessions USING btree (tenant_id, key) WHERE (checkpoint_n > offloaded_n);

CREATE INDEX sessions_policy ON public.sessions USING btree (tenant_id, policy_id);

CREATE INDEX sessions_shown ON public.sessions USING btree (tenant_id, frozen_at, archived);

CREATE INDEX summaries_pending ON public.summaries USING btree (tenant_id, session_key) WHERE ((NOT offered) AND (state = ANY (ARRAY['answered'::text, 'failed'::text])));

CREATE INDEX tenants_newest ON public.tenants USING btree (created_at DESC, id DESC);

CREATE INDEX uploads_body ON public.uploads USING btree (tenant_id, session_key, body_id);

CREATE UNIQUE INDEX uploads_key ON public.uploads USING btree (tenant_id, session_key, key) WHERE (key IS NOT NULL);

CREATE UNIQUE INDEX uploads_n ON public.uploads USING btree (tenant_id, session_key, n);

CREATE INDEX uploads_searched_in_part ON public.uploads USING btree (tenant_id) WHERE searched_in_part;

CREATE INDEX uploads_unfinished ON public.uploads USING btree (tenant_id, created_at) WHERE (finished_at IS NULL);

CREATE INDEX usage_days_day ON public.usage_days USING btree (day);

CREATE INDEX usage_sessions_appended ON public.usage_sessions USING btree (tenant_id, appended_at DESC, session_key DESC) WHERE (appended_at IS NOT NULL);

CREATE INDEX usage_sessions_asleep ON public.usage_sessions USING btree (tenant_id, GREATEST(appended_at, thawed_at)) WHERE (NOT away);

CREATE INDEX usage_sessions_bytes ON public.usage_sessions USING btree (bytes DESC, session_key DESC);

CREATE INDEX usage_sessions_empty ON public.usage_sessions USING btree (tenant_id, session_key) WHERE (appended_at IS NULL);

CREATE INDEX usage_sessions_idle ON public.usage_sessions USING btree (appended_at, session_key) WHERE (appended_at IS NOT NULL);

CREATE INDEX usage_sessions_over ON public.usage_sessions USING btree (tokens DESC, session_key DESC) WHERE over_window;

CREATE INDEX usage_sessions_tokens ON public.usage_sessions USING btree (tokens DESC, session_key DESC);

CREATE INDEX usage_sessions_unread ON public.usage_sessions USING btree (read_on, session_key);

CREATE INDEX webhook_deliveries_first ON public.webhook_deliveries USING btree (tenant_id, webhook_id, topic, n);

CREATE INDEX webhook_deliveries_topic ON public.webhook_deliveries USING btree (tenant_id, topic);

CREATE INDEX webhooks_newest ON public.webhooks USING btree (tenant_id, created_at DESC, id DESC);

CREATE TRIGGER api_keys_end BEFORE UPDATE OF revoked_at, expires_at ON public.api_keys FOR EACH ROW WHEN ((((old.revoked_at IS NOT NULL) AND (new.revoked_at IS DISTINCT FROM old.revoked_at)) OR ((old.expires_at IS NOT NULL) AND ((new.expires_at > old.expires_at) IS NOT FALSE)))) EXECUTE FUNCTION public.refuse_revival();

CREATE TRIGGER audit_heads_grow BEFORE UPDATE ON public.audit_heads FOR EACH ROW WHEN ((new.n <> (old.n + 1))) EXECUTE FUNCTION public.audit_refuse();

CREATE TRIGGER audit_heads_kept BEFORE DELETE ON public.audit_heads FOR EACH ROW EXECUTE FUNCTION public.audit_keep();

CREATE TRIGGER audit_heads_not_emptied BEFORE TRUNCATE ON public.audit_heads FOR EACH STATEMENT EXECUTE FUNCTION public.audit_refuse();

CREATE TRIGGER audit_trail_blanks BEFORE UPDATE ON public.audit_trail FOR EACH ROW EXECUTE FUNCTION public.audit_blanks();

CREATE TRIGGER audit_trail_chain BEFORE INSERT ON public.audit_trail FOR EACH ROW EXECUTE FUNCTION public.audit_chain();

CREATE TRIGGER audit_trail_kept BEFORE DELETE ON public.audit_trail FOR EACH ROW EXECUTE FUNCTION public.audit_keep_row();

CREATE TRIGGER audit_trail_not_emptied BEFORE TRUNCATE ON public.audit_trail FOR EACH STATEMENT EXECUTE FUNCTION public.audit_refuse();

CREATE TRIGGER erasures_archived BEFORE UPDATE OF state ON public.erasures FOR EACH ROW WHEN (((new.kind = 'subject'::text) AND (new.state = 'done'::text) AND (old.state <> 'done'::text) AND (old.metadata IS NOT NULL))) EXECUTE FUNCTION public.refuse_archived();

CREATE TRIGGER erasures_end BEFORE UPDATE OF state ON public.erasures FOR EACH ROW WHEN (((new.kind = 'tenant'::text) AND (new.state = 'done'::text))) EXECUTE FUNCTION public.refuse_early_end();

CREATE CONSTRAINT TRIGGER events_number AFTER INSERT ON public.events DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN ((new.n IS NULL)) EXECUTE FUNCTION public.event_number();

CREATE TRIGGER imports_ended AFTER UPDATE OF state ON public.imports FOR EACH ROW WHEN (((old.state = 'running'::text) AND (new.state <> 'running'::text))) EXECUTE FUNCTION public.notify_ended();

CREATE TRIGGER job_awake AFTER UPDATE OF state ON public.river_job FOR EACH ROW WHEN (((new.state = 'available'::public.river_job_state) AND (old.state <> 'available'::public.river_job_state))) EXECUTE FUNCTION public.job_wakes();

CREATE TRIGGER job_inserted AFTER INSERT ON public.river_job FOR EACH ROW WHEN ((new.state = 'available'::public.river_job_state)) EXECUTE FUNCTION public.job_wakes();

CREATE TRIGGER job_now BEFORE INSERT ON public.river_job FOR EACH ROW WHEN (((new.state = 'available'::public.river_job_state) AND (new.queue <> ALL (ARRAY['compaction'::text, 'recompaction'::text, 'summary'::text])))) EXECUTE FUNCTION public.job_now();

CREATE TRIGGER job_place_inserted BEFORE INSERT ON public.river_job FOR EACH ROW WHEN (((new.state = 'available'::public.river_job_state) AND (new.queue = ANY (ARRAY['compaction'::text, 'recompaction'::text, 'summary'::text])))) EXECUTE FUNCTION public.job_place();

CREATE TRIGGER job_place_updated BEFORE UPDATE OF state, priority ON public.river_job FOR EACH ROW WHEN (((new.state = 'available'::public.river_job_state) AND (new.queue = ANY (ARRAY['compaction'::text, 'recompaction'::text, 'summary'::text])) AND ((old.state <> new.state) OR (old.priority <> new.priority)))) EXECUTE FUNCTION public.job_place();

CREATE TRIGGER job_waits BEFORE UPDATE OF state ON public.river_job FOR EACH ROW WHEN (((new.state = 'available'::public.river_job_state) AND (new.queue <> ALL (ARRAY['compaction'::text, 'recompaction'::text, 'summary'::text])) AND (new.scheduled_at > clock_timestamp()))) EXECUTE FUNCTION public.job_waits();

CREATE TRIGGER messages_body AFTER UPDATE OF body, view_body, bytes ON public.messages FOR EACH ROW WHEN ((new.body IS NOT NULL)) EXECUTE FUNCTION public.refuse_new_body();

CREATE TRIGGER messages_packed_check AFTER UPDATE OF body, shape, bytes ON public.messages FOR EACH ROW WHEN ((((new.body IS NULL) <> (new.shape = ''::text)) OR ((new.body IS NULL) <> (new.bytes IS NOT NULL)))) EXECUTE FUNCTION public.refuse_row();

CREATE TRIGGER messages_removed_check AFTER UPDATE OF removed_at, removed_seq ON public.messages FOR EACH ROW WHEN (((new.removed_seq <= new.seq) OR ((new.removed_at IS NULL) <> (new.removed_seq IS NULL)))) EXECUTE FUNCTION public.refuse_row();

CREATE TRIGGER messages_seq_check AFTER UPDATE OF seq ON public.messages FOR EACH ROW WHEN ((new.seq <= 0)) EXECUTE FUNCTION public.refuse_row();

CREATE TRIGGER messages_superseded_check AFTER UPDATE OF superseded_by, removed_seq ON public.messages FOR EACH ROW WHEN (((new.superseded_by IS NOT NULL) AND ((new.superseded_by >= new.removed_seq) IS NOT TRUE))) EXECUTE FUNCTION public.refuse_row();

CREATE TRIGGER messages_tokens_check AFTER UPDATE OF tokens ON public.messages FOR EACH ROW WHEN ((new.tokens < 0)) EXECUTE FUNCTION public.refuse_row();

CREATE TRIGGER messages_view_check AFTER UPDATE OF body, view_body, view_tokens ON public.messages FOR EACH ROW WHEN (((new.view_tokens < 0) OR (((new.view_body IS NULL) <> (new.view_tokens IS NULL)) AND (new.body IS NOT NULL)))) EXECUTE FUNCTION public.refuse_row();

CREATE TRIGGER operator_keys_end BEFORE UPDATE OF revoked_at, expires_at ON public.operator_keys FOR EACH ROW WHEN ((((old.revoked_at IS NOT NULL) AND (new.revoked_at IS DISTINCT FROM old.revoked_at)) OR ((old.expires_at IS NOT NULL) AND ((new.expires_at > old.expires_at) IS NOT FALSE)))) EXECUTE FUNCTION public.refuse_revival();

CREATE TRIGGER runs_ended AFTER UPDATE OF state ON public.runs FOR EACH ROW WHEN (((old.state = ANY (ARRAY['queued'::text, 'running'::text])) AND (new.state <> ALL (ARRAY['queued'::text, 'running'::text])))) EXECUTE FUNCTION public.notify_ended();

CREATE TRIGGER sessions_archived_check AFTER INSERT OR UPDATE OF frozen_at, archived ON public.sessions FOR EACH ROW WHEN ((new.archived AND (new.frozen_at IS NULL))) EXECUTE FUNCTION public.refuse_row();

CREATE TRIGGER sessions_armed_threshold_check AFTER INSERT OR UPDATE OF armed_threshold ON public.sessions FOR EACH ROW WHEN (((new.armed_threshold < 1) OR (new.armed_threshold > 3))) EXECUTE FUNCTION public.refuse_row();

CREATE TRIGGER sessions_calibration_check AFTER INSERT OR UPDATE OF calibration ON public.sessions FOR EACH ROW WHEN (((new.calibration < (0.5)::double precision) OR (new.calibration > (20)::double precision))) EXECUTE FUNCTION public.refuse_row();

CREATE TRIGGER sessions_held BEFORE DELETE ON public.sessions FOR EACH ROW EXECUTE FUNCTION public.refuse_held();

CREATE TRIGGER sessions_id_check AFTER INSERT OR UPDATE OF id ON public.sessions FOR EACH ROW WHEN (((octet_length(new.id) < 1) OR (octet_length(new.id) > 255))) EXECUTE FUNCTION public.refuse_row();

CREATE TRIGGER sessions_metadata_changed AFTER UPDATE OF metadata ON public.sessions FOR EACH ROW WHEN ((new.metadata IS DISTINCT FROM old.metadata)) EXECUTE FUNCTION public.index_metadata();

CREATE TRIGGER sessions_metadata_gone BEFORE DELETE ON public.sessions FOR EACH ROW EXECUTE FUNCTION public.index_metadata();

CREATE TRIGGER sessions_metadata_made AFTER INSERT ON public.sessions FOR EACH ROW WHEN ((new.metadata <> '{}'::jsonb)) EXECUTE FUNCTION public.index_metadata();

CREATE TRIGGER sessions_overhead_tokens_check AFTER INSERT OR UPDATE OF overhead_tokens ON public.sessions FOR EACH ROW WHEN ((new.overhead_tokens < 0)) EXECUTE FUNCTION public.refuse_row();

CREATE TRIGGER sessions_window_source_check AFTER INSERT OR UPDATE OF window_source ON public.sessions FOR EACH ROW WHEN ((new.window_source <> ALL (ARRAY['request'::text, 'model'::text, 'default'::text]))) EXECUTE FUNCTION public.refuse_row();

CREATE TRIGGER sessions_window_tokens_check AFTER INSERT OR UPDATE OF window_tokens ON public.sessions FOR EACH ROW WHEN ((new.window_tokens <= 0)) EXECUTE FUNCTION public.refuse_row();

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(id);

ALTER TABLE ONLY public.archive_parts
    ADD CONSTRAINT archive_parts_tenant_id_session_key_fkey FOREIGN KEY (tenant_id, session_key) REFERENCES public.session_archives(tenant_id, session_key);

ALTER TABLE ONLY public.checkpoints
    ADD CONSTRAINT checkpoints_tenant_id_session_key_fkey FOREIGN KEY (tenant_id, session_key) REFERENCES public.sessions(tenant_id, key);

ALTER TABLE ONLY public.erasure_sessions
    ADD CONSTRAINT erasure_sessions_tenant_id_erasure_id_fkey FOREIGN KEY (tenant_id, erasure_id) REFERENCES public.erasures(tenant_id, id);

ALTER TABLE ONLY public.findings
    ADD CONSTRAINT findings_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(id);

ALTER TABLE ONLY public.import_lines
    ADD CONSTRAINT import_lines_tenant_id_import_id_fkey FOREIGN KEY (tenant_id, import_id) REFERENCES public.imports(tenant_id, id);

ALTER TABLE ONLY public.imports
    ADD CONSTRAINT imports_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(id);

ALTER TABLE ONLY public.message_packs
    ADD CONSTRAINT message_packs_tenant_id_session_key_fkey FOREIGN KEY (tenant_id, session_key) REFERENCES public.sessions(tenant_id, key);

ALTER TABLE ONLY public.model_answers
    ADD CONSTRAINT model_answers_tenant_id_session_key_fkey FOREIGN KEY (tenant_id, session_key) REFERENCES public.sessions(tenant_id, key);

ALTER TABLE ONLY public.policies
    ADD CONSTRAINT policies_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(id);

ALTER TABLE ONLY public.policy_versions
    ADD CONSTRAINT policy_versions_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(id);

ALTER TABLE ONLY public.recompaction_sessions
    ADD CONSTRAINT recompaction_sessions_tenant_id_recompaction_id_fkey FOREIGN KEY (tenant_id, recompaction_id) REFERENCES public.recompactions(tenant_id, id);

ALTER TABLE ONLY public.recompactions
    ADD CONSTRAINT recompactions_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(id);

ALTER TABLE ONLY public.replay_outcomes
    ADD CONSTRAINT replay_outcomes_tenant_id_replay_id_session_key_fkey FOREIGN KEY (tenant_id, replay_id, session_key) REFERENCES public.replay_sessions(tenant_id, replay_id, session_key);

ALTER TABLE ONLY public.replay_sessions
    ADD CONSTRAINT replay_sessions_tenant_id_replay_id_fkey FOREIGN KEY (tenant_id, replay_id) REFERENCES public.replays(tenant_id, id);

ALTER TABLE ONLY public.replays
    ADD CONSTRAINT replays_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(id);

ALTER TABLE ONLY public.result_bodies
    ADD CONSTRAINT result_bodies_tenant_id_held_in_id_fkey FOREIGN KEY (tenant_id, held_in, id) REFERENCES public.result_bodies(tenant_id, session_key, id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.result_bodies
    ADD CONSTRAINT result_bodies_tenant_id_session_key_fkey FOREIGN KEY (tenant_id, session_key) REFERENCES public.sessions(tenant_id, key);

ALTER TABLE ONLY public.result_chunks
    ADD CONSTRAINT result_chunks_tenant_id_session_key_body_id_fkey FOREIGN KEY (tenant_id, session_key, body_id) REFERENCES public.result_bodies(tenant_id, session_key, id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.results
    ADD CONSTRAINT results_tenant_id_session_key_body_id_fkey FOREIGN KEY (tenant_id, session_key, body_id) REFERENCES public.result_bodies(tenant_id, session_key, id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.results
    ADD CONSTRAINT results_tenant_id_session_key_fkey FOREIGN KEY (tenant_id, session_key) REFERENCES public.sessions(tenant_id, key);

ALTER TABLE ONLY public.retention
    ADD CONSTRAINT retention_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(id);

ALTER TABLE ONLY public.runs
    ADD CONSTRAINT runs_tenant_id_session_key_fkey FOREIGN KEY (tenant_id, session_key) REFERENCES public.sessions(tenant_id, key);

ALTER TABLE ONLY public.search_blocks
    ADD CONSTRAINT search_blocks_tenant_id_session_key_fkey FOREIGN KEY (tenant_id, session_key) REFERENCES public.sessions(tenant_id, key);

ALTER TABLE ONLY public.search_sessions
    ADD CONSTRAINT search_sessions_tenant_id_session_key_fkey FOREIGN KEY (tenant_id, session_key) REFERENCES public.sessions(tenant_id, key);

ALTER TABLE ONLY public.search_settings
    ADD CONSTRAINT search_settings_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(id);

ALTER TABLE ONLY public.session_archives
    ADD CONSTRAINT session_archives_tenant_id_session_key_fkey FOREIGN KEY (tenant_id, session_key) REFERENCES public.sessions(tenant_id, key);

ALTER TABLE ONLY public.session_failures
    ADD CONSTRAINT session_failures_tenant_id_session_key_fkey FOREIGN KEY (tenant_id, session_key) REFERENCES public.sessions(tenant_id, key);

ALTER TABLE ONLY public.session_holds
    ADD CONSTRAINT session_holds_session FOREIGN KEY (tenant_id, session_key) REFERENCES public.sessions(tenant_id, key);

ALTER TABLE ONLY public.session_metadata
    ADD CONSTRAINT session_metadata_tenant_id_session_key_fkey FOREIGN KEY (tenant_id, session_key) REFERENCES public.sessions(tenant_id, key);

ALTER TABLE ONLY public.session_pins
    ADD CONSTRAINT session_pins_tenant_id_session_key_fkey FOREIGN KEY (tenant_id, session_key) REFERENCES public.sessions(tenant_id, key);

ALTER TABLE ONLY public.session_retention
    ADD CONSTRAINT session_retention_tenant_id_session_key_fkey FOREIGN KEY (tenant_id, session_key) REFERENCES public.sessions(tenant_id, key);

ALTER TABLE ONLY public.session_tokens
    ADD CONSTRAINT session_tokens_tenant_id_made_by_fkey FOREIGN KEY (tenant_id, made_by) REFERENCES public.api_keys(tenant_id, id);

ALTER TABLE ONLY public.session_tokens
    ADD CONSTRAINT session_tokens_tenant_id_session_key_fkey FOREIGN KEY (tenant_id, session_key) REFERENCES public.sessions(tenant_id, key);

ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(id);

ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_tenant_id_policy_id_fkey FOREIGN KEY (tenant_id, policy_id) REFERENCES public.policies(tenant_id, id);

ALTER TABLE ONLY public.summaries
    ADD CONSTRAINT summaries_tenant_id_session_key_fkey FOREIGN KEY (tenant_id, session_key) REFERENCES public.sessions(tenant_id, key);

ALTER TABLE ONLY public.uploads
    ADD CONSTRAINT uploads_tenant_id_session_key_body_id_fkey FOREIGN KEY (tenant_id, session_key, body_id) REFERENCES public.result_bodies(tenant_id, session_key, id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.uploads
    ADD CONSTRAINT uploads_tenant_id_session_key_fkey FOREIGN KEY (tenant_id, session_key) REFERENCES public.sessions(tenant_id, key);

ALTER TABLE ONLY public.usage_days
    ADD CONSTRAINT usage_days_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(id);

ALTER TABLE ONLY public.usage_sessions
    ADD CONSTRAINT usage_sessions_tenant_id_session_key_fkey FOREIGN KEY (tenant_id, session_key) REFERENCES public.sessions(tenant_id, key);

ALTER TABLE ONLY public.verifications
    ADD CONSTRAINT verifications_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(id);

ALTER TABLE ONLY public.webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_tenant_id_webhook_id_fkey FOREIGN KEY (tenant_id, webhook_id) REFERENCES public.webhooks(tenant_id, id);

ALTER TABLE ONLY public.webhook_secrets
    ADD CONSTRAINT webhook_secrets_tenant_id_webhook_id_fkey FOREIGN KEY (tenant_id, webhook_id) REFERENCES public.webhooks(tenant_id, id);

ALTER TABLE ONLY public.webhooks
    ADD CONSTRAINT webhooks_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(id);

ALTER TABLE public.api_keys ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.archive_parts ENABLE ROW LEVEL SECURITY;

CREATE POLICY as_appended ON public.messages AS RESTRICTIVE FOR INSERT WITH CHECK (((seq > 0) AND (tokens >= 0) AND ((body IS NULL) = (shape = ''::text)) AND ((body IS NULL) = (bytes IS NOT NULL)) AND ((removed_at IS NULL) = (removed_seq IS NULL)) AND ((removed_seq > seq) IS NOT FALSE) AND ((superseded_by IS NULL) OR ((superseded_by >= removed_seq) IS TRUE)) AND (((view_body IS NULL) = (view_tokens IS NULL)) OR (body IS NULL)) AND ((view_tokens >= 0) IS NOT FALSE)));

ALTER TABLE public.audit_heads ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.audit_trail ENABLE ROW LEVEL SECURITY;

CREATE POLICY backup ON public.api_keys FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.archive_parts FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.audit_heads FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.audit_trail FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.checkpoints FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.due_sessions FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.erasure_sessions FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.erasures FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.event_heads FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.events FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.findings FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.idempotency FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.import_lines FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.imports FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.message_packs FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.messages FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.model_answers FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.model_spending FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.policies FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.policy_versions FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.recompaction_sessions FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.recompactions FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.replay_outcomes FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.replay_sessions FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.replays FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.result_bodies FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.result_chunks FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.results FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.retention FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.river_job FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.rounds FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.runs FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.search_blocks FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.search_sessions FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.search_settings FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.session_archives FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.session_failures FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.session_holds FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.session_metadata FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.session_pins FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.session_retention FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.session_tokens FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.sessions FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.summaries FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.tenant_tasks FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.tenants FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.uploads FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.usage_days FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.usage_sessions FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.verifications FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.webhook_deliveries FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.webhook_secrets FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.webhook_turns FOR SELECT TO varve_backup USING (true);

CREATE POLICY backup ON public.webhooks FOR SELECT TO varve_backup USING (true);

ALTER TABLE public.checkpoints ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.due_sessions ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.erasure_sessions ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.erasures ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.event_heads ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.events ENABLE ROW LEVEL SECURITY;

CREATE POLICY every_job ON public.river_job TO varve_worker USING (true) WITH CHECK (true);

CREATE POLICY every_tenant ON public.due_sessions TO varve_worker USING (true) WITH CHECK (true);

CREATE POLICY every_tenant ON public.tenant_tasks TO varve_worker USING (true) WITH CHECK (true);

CREATE POLICY every_tenant ON public.tenants TO varve_worker USING (true) WITH CHECK (true);

ALTER TABLE public.findings ENABLE ROW LEVEL SECURITY;

CREATE POLICY frozen ON public.sessions AS RESTRICTIVE TO varve_app USING (((frozen_at IS NULL) OR (current_setting('varve.frozen'::text, true) = 'all'::text) OR ((NOT archived) AND (current_setting('varve.frozen'::text, true) = 'cold'::text))));

ALTER TABLE public.idempotency ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.import_lines ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.imports ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.message_packs ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.messages ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.model_answers ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.model_spending ENABLE ROW LEVEL SECURITY;

CREATE POLICY operators ON public.model_spending FOR SELECT TO varve_admin USING (true);

CREATE POLICY operators ON public.recompactions FOR SELECT TO varve_admin USING (true);

CREATE POLICY operators ON public.session_failures FOR SELECT TO varve_admin USING (true);

CREATE POLICY operators ON public.usage_days FOR SELECT TO varve_admin USING (true);

CREATE POLICY operators ON public.usage_sessions FOR SELECT TO varve_admin USING (true);

ALTER TABLE public.policies ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.policy_versions ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.recompaction_sessions ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.recompactions ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.replay_outcomes ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.replay_sessions ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.replays ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.result_bodies ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.result_chunks ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.results ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.retention ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.river_job ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.rounds ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.runs ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.search_blocks ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.search_sessions ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.search_settings ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.session_archives ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.session_failures ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.session_holds ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.session_metadata ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.session_pins ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.session_retention ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.session_tokens ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.sessions ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.summaries ENABLE ROW LEVEL SECURITY;

CREATE POLICY tenant ON public.api_keys USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.archive_parts USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.audit_heads USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.audit_trail USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.checkpoints USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.due_sessions USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.erasure_sessions USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.erasures USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.event_heads USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.events USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.findings USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.idempotency USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.import_lines USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.imports USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.message_packs USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.messages USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.model_answers USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.model_spending USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.policies USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.policy_versions USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.recompaction_sessions USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.recompactions USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.replay_outcomes USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.replay_sessions USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.replays USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.result_bodies USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.result_chunks USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.results USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.retention USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.river_job USING (((args ->> 'tenant'::text) = NULLIF(current_setting('app.tenant_id'::text, true), ''::text))) WITH CHECK (((args ->> 'tenant'::text) = NULLIF(current_setting('app.tenant_id'::text, true), ''::text)));

CREATE POLICY tenant ON public.runs USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.search_blocks USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.search_sessions USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.search_settings USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.session_archives USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.session_failures USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.session_holds USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.session_metadata USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.session_pins USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.session_retention USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.session_tokens USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.sessions USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.summaries USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.tenant_tasks USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.tenants USING ((id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.uploads USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.usage_days USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.usage_sessions USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.verifications USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.webhook_deliveries USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.webhook_secrets USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.webhook_turns USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

CREATE POLICY tenant ON public.webhooks USING ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid)) WITH CHECK ((tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid));

ALTER TABLE public.tenant_tasks ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.tenants ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.uploads ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.usage_days ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.usage_sessions ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.verifications ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.webhook_deliveries ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.webhook_secrets ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.webhook_turns ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.webhooks ENABLE ROW LEVEL SECURITY;

CREATE POLICY worker ON public.event_heads TO varve_worker USING (true) WITH CHECK (true);

CREATE POLICY worker ON public.retention TO varve_worker USING (true) WITH CHECK (true);

CREATE POLICY worker ON public.webhook_turns TO varve_worker USING (true) WITH CHECK (true);

CREATE POLICY workers ON public.rounds TO varve_worker USING (true) WITH CHECK (true);
