-- Removes a session that is being erased from its replays.
WITH gone AS (
	DELETE FROM replay_sessions
	 WHERE tenant_id = @tenant AND session_key = @session
)
UPDATE replays r
   SET filter = jsonb_set(r.filter, '{sessions}', (r.filter -> 'sessions') - s.id)
  FROM sessions s
 WHERE s.tenant_id = @tenant AND s.key = @session AND r.tenant_id = @tenant AND r.filter -> 'sessions' ? s.id
