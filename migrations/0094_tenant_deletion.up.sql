-- The deletion of a tenant is an erasure of the operators, whose rows have the nil tenant: it outlives the tenant.
ALTER TABLE erasures
    DROP CONSTRAINT erasures_kind_check,
    ADD CONSTRAINT erasures_kind_check CHECK (kind IN ('session', 'subject', 'tenant')),
    ADD COLUMN erased_tenant uuid,
    ADD CONSTRAINT erasures_erased_tenant_check CHECK ((kind = 'tenant') = (erased_tenant IS NOT NULL));

-- The erasure that deletes the tenant. Nothing of the tenant is served from then on.
ALTER TABLE tenants
    ADD COLUMN erasure_id uuid,
    ADD CONSTRAINT tenants_erasure_check CHECK (erasure_id IS NULL OR suspended = 'all' AND suspended IS NOT NULL);

-- Such an erasure has not ended before its tenant is gone: a worker that does not know the kind finds no sessions of it.
CREATE FUNCTION refuse_early_end() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, public AS $$
BEGIN
    IF EXISTS (SELECT FROM public.tenants WHERE id = NEW.erased_tenant AND erasure_id = NEW.id) THEN
        RAISE EXCEPTION 'the tenant is there: its erasure has not ended'
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END
$$;

CREATE TRIGGER erasures_end BEFORE UPDATE OF state ON erasures
    FOR EACH ROW WHEN (NEW.kind = 'tenant' AND NEW.state = 'done')
    EXECUTE FUNCTION refuse_early_end();

-- The sweep looks after erasures whose job was lost.
ALTER TABLE chores
    DROP CONSTRAINT chores_kind_check,
    ADD CONSTRAINT chores_kind_check CHECK (kind IN ('policy', 'recompaction', 'replay', 'index', 'erasure'));

ALTER TABLE erasures NO FORCE ROW LEVEL SECURITY;
INSERT INTO chores (tenant_id, kind)
SELECT DISTINCT tenant_id, 'erasure'
  FROM erasures
 WHERE state <> 'done';
ALTER TABLE erasures FORCE ROW LEVEL SECURITY;

CREATE INDEX erasures_live ON erasures (tenant_id) WHERE state <> 'done';

-- A chain is kept as long as its tenant is there; that of the operators always.
CREATE FUNCTION audit_keep() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public AS $$
BEGIN
    IF OLD.tenant_id <> '00000000-0000-0000-0000-000000000000'
       AND NOT EXISTS (SELECT FROM public.tenants WHERE id = OLD.tenant_id) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'the audit trail only grows: its rows are never changed and never removed'
        USING ERRCODE = 'insufficient_privilege';
END
$$;

DROP TRIGGER audit_trail_kept ON audit_trail;
CREATE TRIGGER audit_trail_kept BEFORE DELETE ON audit_trail
    FOR EACH ROW EXECUTE FUNCTION audit_keep();
DROP TRIGGER audit_heads_kept ON audit_heads;
CREATE TRIGGER audit_heads_kept BEFORE DELETE ON audit_heads
    FOR EACH ROW EXECUTE FUNCTION audit_keep();

-- Deletes the row of a tenant that an erasure deletes, and what no login may delete otherwise: its keys, its receipts,
-- its audit trail. All else must be gone. The trail of the operators must say so next, see audit_blank_tenant.
CREATE FUNCTION end_tenant(tenant uuid, erasure uuid) RETURNS void
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
    DELETE FROM public.campaigns WHERE tenants = ARRAY[tenant];
    UPDATE public.campaigns
       SET tenants = array_remove(tenants, tenant)
     WHERE tenant = ANY (tenants);
END
$$;

REVOKE EXECUTE ON FUNCTION end_tenant FROM PUBLIC;

-- Blanks the rows of the operators' trail that have the name of a tenant that is gone, as audit_blank does.
CREATE FUNCTION audit_blank_tenant(tenant uuid)
    RETURNS TABLE (first bigint, blanked bigint, hashes bytea)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
#variable_conflict use_column
DECLARE
    operators constant uuid := '00000000-0000-0000-0000-000000000000';
    next bigint;
BEGIN
    IF operators IS DISTINCT FROM nullif(current_setting('app.tenant_id', true), '')::uuid THEN
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
           AND t.object_id = audit_blank_tenant.tenant::text
           AND t.action = 'tenant.create'
        RETURNING t.n, public.audit_hash(t) AS hash
    )
    SELECT coalesce(min(n), 0), count(*), sha256(coalesce(string_agg(hash, '' ORDER BY n), ''))
      FROM rows;
END
$$;
