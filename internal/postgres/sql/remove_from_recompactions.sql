-- Removes a session that is being erased from its recompactions.
WITH gone AS (
	DELETE FROM recompaction_sessions
	 WHERE tenant_id = @tenant AND session_key = @session
	RETURNING recompaction_id, finished_at
)
UPDATE recompactions r
   SET skipped = r.skipped + (g.finished_at IS NULL)::int,
       filter = CASE WHEN r.filter ? 'sessions'
                     THEN jsonb_set(r.filter, '{sessions}', (r.filter -> 'sessions') - s.id)
                     ELSE r.filter END
  FROM gone g, sessions s
 WHERE r.tenant_id = @tenant AND r.id = g.recompaction_id AND s.tenant_id = @tenant AND s.key = @session
