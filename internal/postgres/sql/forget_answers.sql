-- Forgets the answers that were kept of requests for recompactions and replays that name a session, which is being erased.
--
--   $1 tenant  $2 id of the session
DELETE FROM idempotency
 WHERE tenant_id = $1
   AND session_key IN (
       SELECT id
         FROM recompactions
        WHERE tenant_id = $1 AND (filter -> 'sessions' ? $2 OR filter ->> 'forked_from' = $2)
       UNION ALL
       SELECT id
         FROM replays
        WHERE tenant_id = $1 AND (filter -> 'sessions' ? $2 OR filter ->> 'forked_from' = $2))
