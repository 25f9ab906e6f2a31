CREATE OR REPLACE FUNCTION job_place() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, public AS $$
DECLARE
    back   constant interval := interval '87600 hours';
    first  timestamptz;
    own    timestamptz;
    -- The last place that this transaction gave to the tenant: a statement does not see the rows that it changes, and
    -- River makes many jobs available at once. Tenants share 1024 of these.
    given  text := format('app.place_%s_%s_%s', NEW.queue, NEW.priority,
                          hashtext(NEW.args ->> 'tenant') & 1023);
BEGIN
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
       AND queue IN ('compaction', 'recompaction') AND scheduled_at < now() - back
     ORDER BY scheduled_at DESC
     LIMIT 1;
    NEW.scheduled_at := greatest(coalesce(first, now() - back), own,
        nullif(current_setting(given, true), '')::timestamptz + interval '1 microsecond');
    PERFORM set_config(given, NEW.scheduled_at::text, true);
    RETURN NEW;
END
$$;
