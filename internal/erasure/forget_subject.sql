-- Takes metadata of a data subject out of the filters of recompactions and replays, which then are for no session, and
-- forgets the answers that were kept of the requests for them.
--
--   $1 tenant  $2 the metadata
WITH recompacted AS (
	UPDATE recompactions
	   SET filter = filter - 'metadata' || '{"sessions": []}'
	 WHERE tenant_id = $1 AND filter -> 'metadata' @> $2
	RETURNING id
), replayed AS (
	UPDATE replays
	   SET filter = filter - 'metadata' || '{"sessions": []}'
	 WHERE tenant_id = $1 AND filter -> 'metadata' @> $2
	RETURNING id
)
DELETE FROM idempotency
 WHERE tenant_id = $1
   AND session_key IN (SELECT id FROM recompacted UNION ALL SELECT id FROM replayed)
