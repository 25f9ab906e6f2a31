-- Finds what the query $3 finds in the tenant $1, at most $4 passages, by the rules of the language $2, and returns those
-- behind the rank $5 and id $6, at most $7. The last row has only how many were found. The sub-selects with a LIMIT are
-- looked up passage by passage, in the order of the function, until there are enough.
WITH found AS MATERIALIZED (
	SELECT *
	  FROM search_passages($1, $2::text::regconfig, $3, $4)
), page AS (
	SELECT f.id, f.rank, s.id AS session, f.session_key, f.seq, f.piece, f.at, f.bytes, m.created_at, m.upload
	  FROM found f
	 CROSS JOIN LATERAL (
	       SELECT m.created_at, '' AS upload
	         FROM messages m
	        WHERE m.tenant_id = $1 AND m.session_key = f.session_key AND m.seq = f.seq AND m.removed_at IS NULL
	        UNION ALL
	       SELECT u.finished_at, u.ref
	         FROM uploads u
	        WHERE u.tenant_id = $1 AND u.session_key = f.session_key AND f.seq = 0 AND u.n = f.piece
	        LIMIT 1) m
	 CROSS JOIN LATERAL (
	       SELECT s.id, s.forked_from, s.forked_seq, s.created_at
	         FROM sessions s
	        WHERE s.tenant_id = $1 AND s.key = f.session_key
	        LIMIT 1) s
	 WHERE (f.rank, f.id) < ($5::real, $6::bigint)
	   AND (f.seq <= s.forked_seq AND EXISTS (
	        SELECT
	          FROM sessions o
	          JOIN messages om ON om.tenant_id = o.tenant_id AND om.session_key = o.key
	         WHERE o.tenant_id = $1
	           AND o.id = s.forked_from
	           AND o.created_at < s.created_at
	           AND om.seq = f.seq
	           AND om.removed_at IS NULL)) IS NOT TRUE
	 ORDER BY f.rank DESC, f.id DESC
	 LIMIT $7
)
SELECT (SELECT count(*) FROM found), p.*
  FROM (SELECT *
          FROM page
        UNION ALL
        SELECT 0, -1::real, '', $1, 0, 0, 0, 0, to_timestamp(0), '') p
 ORDER BY p.rank DESC, p.id DESC
