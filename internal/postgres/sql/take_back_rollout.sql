-- Adds to a recompaction the sessions that compactions under version @version of the tenant's policy changed, as ones
-- that it has changed: from the newest checkpoint before them, 0 for none, to the last of theirs. Returns how many.
WITH made AS (
	SELECT r.session_key, max(r.checkpoint_n) AS n,
	       (array_agg(r.tokens_before ORDER BY r.checkpoint_n))[1] AS before,
	       (array_agg(r.tokens_after ORDER BY r.checkpoint_n DESC))[1] AS after
	  FROM runs r
	 WHERE r.tenant_id = @tenant AND r.tenant_version = @version AND r.session_version = 0 AND r.state = 'done'
	   AND r.checkpoint_n IS NOT NULL
	 GROUP BY r.session_key
), changed AS (
	INSERT INTO recompaction_sessions (tenant_id, recompaction_id, session_key, state, base_n, checkpoint_n,
	                                   tokens_before, tokens_after, views_before, served_before, read_backs_before,
	                                   finished_at)
	SELECT @tenant, @recompaction, m.session_key, 'changed',
	       (SELECT coalesce(max(c.n), 0)
	          FROM checkpoints c
	          LEFT JOIN runs r ON r.tenant_id = @tenant AND r.id = c.run_id
	         WHERE c.tenant_id = @tenant AND c.session_key = m.session_key AND c.n < m.n
	           AND (r.tenant_version IS DISTINCT FROM @version OR r.session_version IS DISTINCT FROM 0)),
	       m.n, m.before, m.after, coalesce(u.views, 0), coalesce(u.tokens_served, 0), coalesce(u.read_backs, 0), now()
	  FROM made m
	  LEFT JOIN usage_sessions u ON u.tenant_id = @tenant AND u.session_key = m.session_key
	RETURNING tokens_before, tokens_after
)
UPDATE recompactions
   SET total = c.sessions, changed = c.sessions, tokens_before = c.before, tokens_after = c.after
  FROM (SELECT count(*) AS sessions, coalesce(sum(tokens_before), 0) AS before, coalesce(sum(tokens_after), 0) AS after
          FROM changed) c
 WHERE tenant_id = @tenant AND id = @recompaction
RETURNING changed
