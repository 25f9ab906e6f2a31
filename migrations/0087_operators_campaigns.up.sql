-- Campaigns of operators: a recompaction for each of some tenants. Only varve_admin may read them.
CREATE TABLE campaigns (
    id         uuid        PRIMARY KEY,
    tenants    uuid[]      NOT NULL CHECK (cardinality(tenants) BETWEEN 1 AND 1000),
    filter     jsonb       NOT NULL,
    policy     json,
    pace       jsonb       NOT NULL,
    ask        boolean     NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now()
);

-- Takes out of the filters of campaigns what names a data subject or a session of the transaction's tenant, which is
-- erased. The recompactions of the campaigns have filters of their own.
CREATE FUNCTION forget_in_campaigns(wanted jsonb, id text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE
    tenant uuid := nullif(current_setting('app.tenant_id', true), '')::uuid;
BEGIN
    UPDATE public.campaigns c
       SET filter = c.filter - 'metadata' || '{"sessions": []}'
     WHERE tenant = ANY (c.tenants) AND c.filter -> 'metadata' @> wanted;
    UPDATE public.campaigns c
       SET filter = c.filter - 'forked_from' || '{"sessions": []}'
     WHERE tenant = ANY (c.tenants) AND c.filter ->> 'forked_from' = forget_in_campaigns.id;
    UPDATE public.campaigns c
       SET filter = jsonb_set(c.filter, '{sessions}', (c.filter -> 'sessions') - forget_in_campaigns.id)
     WHERE tenant = ANY (c.tenants) AND c.filter -> 'sessions' ? forget_in_campaigns.id;
END
$$;

CREATE INDEX campaigns_newest ON campaigns (created_at DESC, id DESC);
