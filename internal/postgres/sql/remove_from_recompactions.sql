-- Removes a session that is being erased from its recompactions, and its id from those that name it and have not come to
-- it.
WITH gone AS (
	DELETE FROM recompaction_sessions
	 WHERE tenant_id = @tenant AND session_key = @session
	RETURNING recompaction_id, finished_at
)
UPDATE recompactions r
   SET skipped = r.skipped + (
           SELECT count(*)
             FROM gone
            WHERE recompaction_id = r.id AND finished_at IS NULL),
       filter = CASE WHEN r.filter ->> 'forked_from' = s.id
                     THEN r.filter - 'forked_from' || '{"sessions": []}'
                     WHEN r.filter ? 'sessions'
                     THEN jsonb_set(r.filter, '{sessions}', (r.filter -> 'sessions') - s.id)
                     ELSE r.filter END
  FROM sessions s
 WHERE s.tenant_id = @tenant
   AND s.key = @session
   AND r.tenant_id = @tenant
   AND (r.id IN (SELECT recompaction_id FROM gone) OR r.filter -> 'sessions' ? s.id OR r.filter ->> 'forked_from' = s.id)
