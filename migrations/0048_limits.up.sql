-- The quotas that the operator gives a tenant instead of the process's: see internal/quota.
ALTER TABLE tenants ADD COLUMN limits jsonb NOT NULL DEFAULT '{}';

-- Who waits for a run or an import is told its id when it has ended, however that came. A notification takes a lock of
-- the whole cluster when its transaction commits: nothing that happens with every append may send one.
CREATE FUNCTION notify_ended() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('varve_ended', NEW.id::text);
    RETURN NULL;
END
$$;

CREATE TRIGGER runs_ended AFTER UPDATE OF state ON runs
    FOR EACH ROW WHEN (OLD.state IN ('queued', 'running') AND NEW.state NOT IN ('queued', 'running'))
    EXECUTE FUNCTION notify_ended();

CREATE TRIGGER imports_ended AFTER UPDATE OF state ON imports
    FOR EACH ROW WHEN (OLD.state = 'running' AND NEW.state <> 'running')
    EXECUTE FUNCTION notify_ended();
