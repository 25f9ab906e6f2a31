-- Records how a session of a recompaction ended, and what the ledger has counted of it until now. It changes nothing if
-- another worker of the job did so before.
WITH counted AS (
	SELECT views, tokens_served, read_backs
	  FROM usage_sessions
	 WHERE tenant_id = @tenant AND session_key = @session
), ended AS (
	UPDATE recompaction_sessions
	   SET base_n = @base, checkpoint_n = @made,
	       views_before = coalesce((SELECT views FROM counted), 0),
	       served_before = coalesce((SELECT tokens_served FROM counted), 0),
	       read_backs_before = coalesce((SELECT read_backs FROM counted), 0),
	       state = CASE WHEN @changed THEN 'changed' ELSE 'unchanged' END, tokens_before = @before,
	       tokens_after = @after, error = NULL, finished_at = clock_timestamp()
	 WHERE tenant_id = @tenant AND recompaction_id = @recompaction AND session_key = @session AND state = 'running'
	RETURNING state
)
UPDATE recompactions r
   SET changed = r.changed + @changed::boolean::int, unchanged = r.unchanged + 1 - @changed::boolean::int,
       tokens_before = r.tokens_before + @before, tokens_after = r.tokens_after + @after
  FROM ended
 WHERE r.tenant_id = @tenant AND r.id = @recompaction
