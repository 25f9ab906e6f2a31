-- Takes the transaction's tenant out of campaigns that began longer ago than kept and whose recompaction it does not
-- have any more, at most so many; a campaign goes with its last tenant. It returns in how many the tenant was.
CREATE FUNCTION prune_campaigns(kept interval, most integer) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE
    tenant uuid := nullif(current_setting('app.tenant_id', true), '')::uuid;
    over   uuid[];
BEGIN
    SELECT coalesce(array_agg(l.id), '{}')
      INTO over
      FROM (SELECT c.id
              FROM public.campaigns c
             WHERE c.created_at < now() - kept
               AND tenant = ANY (c.tenants)
               AND NOT EXISTS (
                   SELECT
                     FROM public.recompactions r
                    WHERE r.tenant_id = tenant AND r.campaign_id = c.id)
             ORDER BY c.created_at, c.id
             LIMIT most
               FOR UPDATE) l;
    DELETE FROM public.campaigns WHERE id = ANY (over) AND tenants = ARRAY[tenant];
    UPDATE public.campaigns
       SET tenants = array_remove(tenants, tenant)
     WHERE id = ANY (over);
    RETURN cardinality(over);
END
$$;
