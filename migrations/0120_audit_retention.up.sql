-- Where the audit trail of a tenant begins whose older rows were removed when their time was over: the last row that was
-- removed, which with all before it is gone, and the row that says so. The chain verifies from there.
CREATE TABLE audit_anchors (
    tenant_id  uuid   PRIMARY KEY,
    n          bigint NOT NULL CHECK (n > 0),
    hash       bytea  NOT NULL,
    removed_by bigint NOT NULL CHECK (removed_by > n)
);

-- Of each row that was removed blanked, its hash as it was then: the row that blanked it, which is still there, has a
-- digest of all of them (see audit_blank).
CREATE TABLE audit_stubs (
    tenant_id  uuid   NOT NULL,
    n          bigint NOT NULL,
    blanked_by bigint NOT NULL,
    sum        bytea  NOT NULL,
    PRIMARY KEY (tenant_id, n)
);

CREATE INDEX audit_stubs_blanked_by ON audit_stubs (tenant_id, blanked_by);

ALTER TABLE audit_anchors ENABLE ROW LEVEL SECURITY;
ALTER TABLE audit_anchors FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON audit_anchors
    USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);

ALTER TABLE audit_stubs ENABLE ROW LEVEL SECURITY;
ALTER TABLE audit_stubs FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON audit_stubs
    USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);

-- A row is kept as long as its tenant is there, unless the anchor says that it was removed.
CREATE FUNCTION audit_keep_row() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public AS $$
BEGIN
    IF EXISTS (SELECT FROM public.audit_anchors WHERE tenant_id = OLD.tenant_id AND n >= OLD.n)
       OR OLD.tenant_id <> '00000000-0000-0000-0000-000000000000'
          AND NOT EXISTS (SELECT FROM public.tenants WHERE id = OLD.tenant_id) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'the audit trail only grows: its rows are never changed and never removed'
        USING ERRCODE = 'insufficient_privilege';
END
$$;

DROP TRIGGER audit_trail_kept ON audit_trail;
CREATE TRIGGER audit_trail_kept BEFORE DELETE ON audit_trail
    FOR EACH ROW EXECUTE FUNCTION audit_keep_row();

CREATE TRIGGER audit_anchors_grow BEFORE UPDATE ON audit_anchors
    FOR EACH ROW WHEN (NEW.n <= OLD.n OR NEW.tenant_id <> OLD.tenant_id) EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_anchors_kept BEFORE DELETE ON audit_anchors
    FOR EACH ROW EXECUTE FUNCTION audit_keep();
CREATE TRIGGER audit_anchors_not_emptied BEFORE TRUNCATE ON audit_anchors
    FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse();

-- What is left of a blanked row is kept as long as the row that blanked it.
CREATE FUNCTION audit_keep_stub() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public AS $$
BEGIN
    IF EXISTS (SELECT FROM public.audit_anchors WHERE tenant_id = OLD.tenant_id AND n >= OLD.blanked_by)
       OR NOT EXISTS (SELECT FROM public.tenants WHERE id = OLD.tenant_id) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'the audit trail only grows: its rows are never changed and never removed'
        USING ERRCODE = 'insufficient_privilege';
END
$$;

CREATE TRIGGER audit_stubs_never_change BEFORE UPDATE ON audit_stubs
    FOR EACH ROW EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_stubs_kept BEFORE DELETE ON audit_stubs
    FOR EACH ROW EXECUTE FUNCTION audit_keep_stub();
CREATE TRIGGER audit_stubs_not_emptied BEFORE TRUNCATE ON audit_stubs
    FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse();

-- Removes the oldest rows of a tenant's trail, at most some of them, that are older than they are to be kept, writes
-- the row that says so, and returns how many it has removed. It begins when the oldest is a day older than that, so that
-- there are not as many rows that say so as rows that were removed, and for no such rows alone. It stops before a row
-- that is not as it was written: what shows that somebody changed it stays. A legal hold of the tenant keeps all rows.
-- The lock of the tenant's row lets one of two calls wait; that of the chain's head, which the new row takes, keeps rows
-- from being blanked meanwhile.
CREATE FUNCTION audit_prune(tenant uuid, kept interval, most integer) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE
    anchor  public.audit_anchors;
    through bigint;
    removed bigint;
    others  boolean;
    ended   bytea;
    said_by bigint;
BEGIN
    IF tenant IS DISTINCT FROM nullif(current_setting('app.tenant_id', true), '')::uuid THEN
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
    SELECT *
      INTO anchor
      FROM public.audit_anchors
     WHERE tenant_id = tenant;
    WITH oldest AS (
        SELECT (entry).n, (entry).action,
               (entry).previous = lag((entry).hash, 1, coalesce(anchor.hash, decode(repeat('00', 32), 'hex'))) OVER by_n
               AND ((entry).blanked_by IS NOT NULL OR (entry).hash = public.audit_hash(entry))
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
    VALUES (tenant, 'varve', 'audit.prune', 'tenant', tenant::text,
            format('{"through":%s,"hash":"%s","removed":%s}', through, encode(ended, 'hex'), removed)::json)
    RETURNING n INTO said_by;
    INSERT INTO public.audit_anchors AS a (tenant_id, n, hash, removed_by)
    VALUES (tenant, through, ended, said_by)
        ON CONFLICT (tenant_id) DO UPDATE
       SET n = excluded.n, hash = excluded.hash, removed_by = excluded.removed_by;
    INSERT INTO public.audit_stubs (tenant_id, n, blanked_by, sum)
    SELECT t.tenant_id, t.n, t.blanked_by, public.audit_hash(t)
      FROM public.audit_trail t
     WHERE t.tenant_id = tenant AND t.n <= through AND t.blanked_by > through;
    DELETE FROM public.audit_stubs WHERE tenant_id = tenant AND blanked_by <= through;
    DELETE FROM public.audit_trail WHERE tenant_id = tenant AND n <= through;
    RETURN removed;
END
$$;

REVOKE EXECUTE ON FUNCTION audit_prune FROM PUBLIC;

-- The deletion of a tenant takes along where its trail begins.
CREATE OR REPLACE FUNCTION end_tenant(tenant uuid, erasure uuid) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE
    found public.tenants;
BEGIN
    IF tenant IS DISTINCT FROM nullif(current_setting('app.tenant_id', true), '')::uuid THEN
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
    DELETE FROM public.audit_stubs WHERE tenant_id = tenant;
    DELETE FROM public.audit_anchors WHERE tenant_id = tenant;
    PERFORM FROM public.campaigns WHERE tenant = ANY (tenants) ORDER BY id FOR UPDATE; -- others may shorten the list
    DELETE FROM public.campaigns WHERE tenants = ARRAY[tenant];
    UPDATE public.campaigns
       SET tenants = array_remove(tenants, tenant)
     WHERE tenant = ANY (tenants);
END
$$;
