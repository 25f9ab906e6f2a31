-- Takes the id of a session that is being erased out of its forks, which become those of the session that it was a fork
-- of.
--
--   $1 tenant  $2 key of the session
WITH forks AS (
	UPDATE sessions f
	   SET forked_from = CASE WHEN f.created_at >= s.created_at THEN s.forked_from END,
	       forked_seq = CASE WHEN f.created_at >= s.created_at THEN least(f.forked_seq, s.forked_seq) END
	  FROM sessions s
	 WHERE s.tenant_id = $1 AND s.key = $2 AND f.tenant_id = $1 AND f.forked_from = s.id
	RETURNING f.key
)
DELETE FROM idempotency
 WHERE tenant_id = $1 AND route LIKE '%/fork' AND session_key IN (SELECT key FROM forks)
