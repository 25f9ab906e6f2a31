-- The order in which compactions and recompactions start. Workers take the available jobs of a queue by priority and
-- then by scheduled_at. Whenever one becomes available, whoever makes it so, its scheduled_at becomes its place: that of
-- the first job in the queue, or the one after the last of its own tenant if that is later. So a tenant with 300
-- waiting jobs takes turns with one that has one, and one tenant alone uses all workers. (This is start-time fair
-- queueing, with a microsecond as the length of every job.)
--
-- Places lie ten years back: in an empty queue the next place is that of now, which is later than any that was taken, as
-- jobs do not come at a million a second. Nothing is locked: jobs that come at the same moment may share a place.
CREATE INDEX job_places ON river_job ((args ->> 'tenant'), queue, priority, scheduled_at)
    WHERE queue IN ('compaction', 'recompaction');

-- It reads the jobs of all tenants, which the role that inserts one need not see.
CREATE FUNCTION job_place() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
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

CREATE TRIGGER job_place_inserted BEFORE INSERT ON river_job FOR EACH ROW
    WHEN (NEW.state = 'available' AND NEW.queue IN ('compaction', 'recompaction'))
    EXECUTE FUNCTION job_place();

CREATE TRIGGER job_place_updated BEFORE UPDATE OF state, priority ON river_job FOR EACH ROW
    WHEN (NEW.state = 'available' AND NEW.queue IN ('compaction', 'recompaction')
          AND (OLD.state <> NEW.state OR OLD.priority <> NEW.priority))
    EXECUTE FUNCTION job_place();

-- All other jobs that start now are due by the database's clock, which workers go by, not by that of the process that
-- inserts them.
CREATE FUNCTION job_now() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    NEW.scheduled_at := least(NEW.scheduled_at, now());
    RETURN NEW;
END
$$;

CREATE TRIGGER job_now BEFORE INSERT ON river_job FOR EACH ROW
    WHEN (NEW.state = 'available' AND NEW.queue NOT IN ('compaction', 'recompaction'))
    EXECUTE FUNCTION job_now();
