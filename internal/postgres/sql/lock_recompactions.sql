-- Locks the recompactions of a session, and those whose filter names it, as every change of their sessions does.
SELECT
  FROM recompactions r
 WHERE tenant_id = @tenant
   AND (id IN (
           SELECT recompaction_id
             FROM recompaction_sessions
            WHERE tenant_id = @tenant AND session_key = @session)
        OR EXISTS (
           SELECT
             FROM sessions s
            WHERE s.tenant_id = @tenant
              AND s.key = @session
              AND (r.filter -> 'sessions' ? s.id OR r.filter ->> 'forked_from' = s.id)))
 ORDER BY id
   FOR NO KEY UPDATE OF r
