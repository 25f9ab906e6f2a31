-- A run of cause summary puts a model's answer in the place of the summary that stood in for it.
ALTER TABLE runs
    DROP CONSTRAINT runs_cause_check,
    ADD CONSTRAINT runs_cause_check CHECK (cause IN ('threshold', 'hard', 'idle', 'manual', 'sweep', 'follow_up', 'recompaction', 'restore', 'damage', 'summary'));

-- The jobs that ask models take turns by tenant, as compactions do: see 0052_places and 0062_retries.
DROP TRIGGER job_now ON river_job;
DROP TRIGGER job_place_updated ON river_job;
DROP TRIGGER job_place_inserted ON river_job;
DROP INDEX job_places;

CREATE INDEX job_places ON river_job ((args ->> 'tenant'), queue, priority, scheduled_at)
    WHERE queue IN ('compaction', 'recompaction', 'summary');

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
       AND queue IN ('compaction', 'recompaction', 'summary') AND scheduled_at < now() - back
     ORDER BY scheduled_at DESC
     LIMIT 1;
    NEW.scheduled_at := greatest(coalesce(first, now() - back), own,
        nullif(current_setting(given, true), '')::timestamptz + interval '1 microsecond');
    PERFORM set_config(given, NEW.scheduled_at::text, true);
    RETURN NEW;
END
$$;

CREATE TRIGGER job_place_inserted BEFORE INSERT ON river_job FOR EACH ROW
    WHEN (NEW.state = 'available' AND NEW.queue IN ('compaction', 'recompaction', 'summary'))
    EXECUTE FUNCTION job_place();

CREATE TRIGGER job_place_updated BEFORE UPDATE OF state, priority ON river_job FOR EACH ROW
    WHEN (NEW.state = 'available' AND NEW.queue IN ('compaction', 'recompaction', 'summary')
          AND (OLD.state <> NEW.state OR OLD.priority <> NEW.priority))
    EXECUTE FUNCTION job_place();

CREATE TRIGGER job_now BEFORE INSERT ON river_job FOR EACH ROW
    WHEN (NEW.state = 'available' AND NEW.queue NOT IN ('compaction', 'recompaction', 'summary'))
    EXECUTE FUNCTION job_now();

-- Whether a compaction has had a summary's answer, or its failure, and could take it in. A failed summary keeps its
-- request: it is asked again.
ALTER TABLE summaries
    ADD COLUMN offered boolean NOT NULL DEFAULT false,
    DROP CONSTRAINT summaries_check,
    ADD CONSTRAINT summaries_request_check CHECK (state NOT IN ('due', 'asking') OR request IS NOT NULL);
CREATE INDEX summaries_pending ON summaries (tenant_id, session_key) WHERE NOT offered AND state IN ('answered', 'failed');

-- A checkpoint whose summaries are to be made anew: nothing begins with it any more, and its body goes with the next.
ALTER TABLE checkpoints
    ADD COLUMN forgotten boolean NOT NULL DEFAULT false;
