-- Records how a session of a recompaction ended. It changes nothing if another worker of the job did so before.
WITH ended AS (
	UPDATE recompaction_sessions
	   SET state = CASE WHEN @changed THEN 'changed' ELSE 'unchanged' END, tokens_before = @before,
	       tokens_after = @after, error = NULL, finished_at = clock_timestamp()
	 WHERE tenant_id = @tenant AND recompaction_id = @recompaction AND session_key = @session AND state = 'running'
	RETURNING state
)
UPDATE recompactions r
   SET changed = r.changed + @changed::boolean::int, unchanged = r.unchanged + 1 - @changed::boolean::int,
       tokens_before = r.tokens_before + @before, tokens_after = r.tokens_after + @after
  FROM ended
 WHERE r.tenant_id = @tenant AND r.id = @recompaction
