-- A compaction or recompaction that failed, or that came too early, waits for its time before it gets a place. River
-- makes such a job available ahead of a time that is at most five seconds away; its place, which lies in the past, would
-- have it start at once, again and again. It is retryable meanwhile. Workers make it available when its time has come.
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
    IF TG_OP = 'UPDATE' AND OLD.state = 'running' AND NEW.scheduled_at > now() THEN
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
       AND queue IN ('compaction', 'recompaction') AND scheduled_at < now() - back
     ORDER BY scheduled_at DESC
     LIMIT 1;
    NEW.scheduled_at := greatest(coalesce(first, now() - back), own,
        nullif(current_setting(given, true), '')::timestamptz + interval '1 microsecond');
    PERFORM set_config(given, NEW.scheduled_at::text, true);
    RETURN NEW;
END
$$;
