-- Locks the recompactions of a session, as every change of their sessions does.
SELECT
  FROM recompactions
 WHERE tenant_id = @tenant
   AND id IN (SELECT recompaction_id
                FROM recompaction_sessions
               WHERE tenant_id = @tenant AND session_key = @session)
 ORDER BY id
   FOR NO KEY UPDATE
