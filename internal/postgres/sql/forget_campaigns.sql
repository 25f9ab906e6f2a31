-- Takes a session that is being erased out of the filters of campaigns that name it, and forgets the answers that were
-- kept of the requests for them.
--
--   $1 tenant  $2 id of the session
WITH recompacted AS (
	UPDATE recompactions
	   SET filter = jsonb_set(filter, '{sessions}', (filter -> 'sessions') - $2::text)
	 WHERE tenant_id = $1 AND filter -> 'sessions' ? $2
	RETURNING id
), replayed AS (
	UPDATE replays
	   SET filter = jsonb_set(filter, '{sessions}', (filter -> 'sessions') - $2::text)
	 WHERE tenant_id = $1 AND filter -> 'sessions' ? $2
	RETURNING id
)
DELETE FROM idempotency
 WHERE tenant_id = $1
   AND session_key IN (SELECT id FROM recompacted UNION ALL SELECT id FROM replayed)
