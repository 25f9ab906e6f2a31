-- Ends the runs of sessions whose attempt failed or was lost. Sessions that have used up their attempts have failed;
-- the others are queued again.
WITH back AS (
	UPDATE recompaction_sessions
	   SET state = CASE WHEN @failed AND failures + 1 >= @attempts THEN 'failed' ELSE 'queued' END,
	       finished_at = CASE WHEN @failed AND failures + 1 >= @attempts THEN clock_timestamp() END,
	       failures = failures + @failed::boolean::int,
	       error = CASE WHEN @failed THEN @reason ELSE error END
	 WHERE tenant_id = @tenant AND recompaction_id = @id AND session_key = ANY (@sessions) AND state = 'running'
	RETURNING state, run_id
), ended AS (
	UPDATE runs
	   SET state = CASE WHEN @failed THEN 'failed' ELSE 'superseded' END,
	       error = CASE WHEN @failed THEN @reason END,
	       finished_at = clock_timestamp()
	 WHERE tenant_id = @tenant AND id IN (SELECT run_id FROM back) AND state = 'running'
)
UPDATE recompactions
   SET failed = failed + (SELECT count(*) FROM back WHERE state = 'failed')
 WHERE tenant_id = @tenant AND id = @id
