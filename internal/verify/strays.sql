-- The sessions that rows of a table name and that do not exist, at most $2 of them. It leaps from one session to the
-- next in the table's key.
--
--   $1 tenant  $2 limit
WITH RECURSIVE named AS (
	(SELECT session_key
	   FROM {table}
	  WHERE tenant_id = $1
	  ORDER BY session_key
	  LIMIT 1)
	UNION ALL
	SELECT (SELECT t.session_key
	          FROM {table} t
	         WHERE t.tenant_id = $1 AND t.session_key > n.session_key
	         ORDER BY t.session_key
	         LIMIT 1)
	  FROM named n
	 WHERE n.session_key IS NOT NULL
)
SELECT n.session_key
  FROM named n
 WHERE n.session_key IS NOT NULL
   AND NOT EXISTS (
       SELECT
         FROM sessions s
        WHERE s.tenant_id = $1 AND s.key = n.session_key)
 LIMIT $2
