-- Locks the rows that sessions $2 of the tenant $1 have in the ledger, in the order of the sessions' keys, and makes those
-- that are missing. Nothing is written to a row that is there. A session that is being erased is waited for, and has no
-- row then.
--
-- Each session is looked up by itself: a plan for tenants of average size reads all sessions of a large one instead.
WITH named AS MATERIALIZED (
	SELECT DISTINCT s.key
	  FROM unnest($2::text[]) AS w (session)
	 CROSS JOIN LATERAL (
	       SELECT key
	         FROM sessions
	        WHERE tenant_id = $1 AND id = w.session
	       OFFSET 0) s
	 ORDER BY s.key
), locked AS (
	SELECT s.key
	  FROM named n
	 CROSS JOIN LATERAL (
	       SELECT key
	         FROM sessions
	        WHERE tenant_id = $1 AND key = n.key
	          FOR KEY SHARE) s
)
INSERT INTO usage_sessions AS u (tenant_id, session_key)
SELECT $1, l.key
  FROM locked l
 ORDER BY l.key
ON CONFLICT (tenant_id, session_key) DO UPDATE -- which locks the row
   SET views = u.views
 WHERE false
