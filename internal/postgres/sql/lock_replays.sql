-- Locks the replays that measure or name a session, as every change of their outcomes does.
SELECT
  FROM replays
 WHERE tenant_id = @tenant
   AND (id IN (SELECT replay_id
                 FROM replay_sessions
                WHERE tenant_id = @tenant AND session_key = @session)
        OR filter -> 'sessions' ? (SELECT id FROM sessions WHERE tenant_id = @tenant AND key = @session))
 ORDER BY id
   FOR NO KEY UPDATE
