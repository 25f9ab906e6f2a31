-- Forgets the answers that were kept of requests for recompactions and replays that name a session, which is being
-- erased: in their filters, or among the sessions that failed.
--
--   $1 tenant  $2 id of the session  $3 its key
DELETE FROM idempotency i
 USING (SELECT id, true AS filtered
          FROM recompactions
         WHERE tenant_id = $1 AND (filter -> 'sessions' ? $2 OR filter ->> 'forked_from' = $2)
        UNION ALL
        SELECT id, true
          FROM replays
         WHERE tenant_id = $1 AND (filter -> 'sessions' ? $2 OR filter ->> 'forked_from' = $2)
        UNION ALL
        SELECT recompaction_id, false
          FROM recompaction_sessions
         WHERE tenant_id = $1 AND session_key = $3) n
 WHERE i.tenant_id = $1
   AND i.session_key = n.id
   AND (n.filtered OR i.answer::jsonb -> 'Errors' @> jsonb_build_array(jsonb_build_object('session', $2::text)))
