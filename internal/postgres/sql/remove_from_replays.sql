-- Removes a session that is being erased from its replays, whose progress must be counted anew.
WITH gone AS (
	DELETE FROM replay_sessions
	 WHERE tenant_id = @tenant AND session_key = @session
	RETURNING replay_id
)
UPDATE replays r
   SET progress = NULL,
       filter = CASE WHEN r.filter ->> 'forked_from' = s.id
                     THEN r.filter - 'forked_from' || '{"sessions": []}'
                     WHEN r.filter ? 'sessions'
                     THEN jsonb_set(r.filter, '{sessions}', (r.filter -> 'sessions') - s.id)
                     ELSE r.filter END
  FROM sessions s
 WHERE s.tenant_id = @tenant
   AND s.key = @session
   AND r.tenant_id = @tenant
   AND (r.id IN (SELECT replay_id FROM gone) OR r.filter -> 'sessions' ? s.id OR r.filter ->> 'forked_from' = s.id)
