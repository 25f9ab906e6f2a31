-- Locks the rows that sessions $2 of the tenant $1 have in the ledger, in the order of the sessions' keys, and makes those
-- that are missing. Nothing is written to a row that is there. A session that is being erased is waited for, and has no
-- row then.
WITH locked AS (
	SELECT s.key
	  FROM sessions s
	 WHERE s.tenant_id = $1
	   AND s.id = ANY ($2)
	 ORDER BY s.key
	   FOR KEY SHARE
)
INSERT INTO usage_sessions AS u (tenant_id, session_key)
SELECT $1, l.key
  FROM locked l
 ORDER BY l.key
ON CONFLICT (tenant_id, session_key) DO UPDATE -- which locks the row
   SET views = u.views
 WHERE false
