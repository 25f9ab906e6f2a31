-- Returns which of some passages of the tenant $1 have what the query $3 wants, by the rules of the language $2: their
-- sessions $4, seqs $5, numbers of the uploaded result $6 and texts $7. Those of messages that were removed, and those
-- that a fork shares with the session that it was made of, are left out.
WITH found AS MATERIALIZED (
	SELECT t.n, t.session_key, t.seq, t.upload, ts_rank(t.words, t.query, 1) AS rank
	  FROM (SELECT p.n, p.session_key, p.seq, p.upload, to_tsvector($2::text::regconfig, p.text) AS words,
	               websearch_to_tsquery($2::text::regconfig, $3) AS query
	          FROM unnest($4::uuid[], $5::bigint[], $6::bigint[], $7::text[]) WITH ORDINALITY
	               AS p (session_key, seq, upload, text, n)
	        OFFSET 0) t
	 WHERE t.words @@ t.query
)
SELECT f.n, f.rank, s.id, m.created_at, m.upload
  FROM found f
 CROSS JOIN LATERAL (
       SELECT m.created_at, '' AS upload
         FROM messages m
        WHERE m.tenant_id = $1 AND m.session_key = f.session_key AND m.seq = f.seq AND m.removed_at IS NULL
        UNION ALL
       SELECT u.finished_at, u.ref
         FROM uploads u
        WHERE u.tenant_id = $1 AND u.session_key = f.session_key AND f.seq = 0 AND u.n = f.upload
        LIMIT 1) m
 CROSS JOIN LATERAL (
       SELECT s.id, s.forked_from, s.forked_seq, s.created_at
         FROM sessions s
        WHERE s.tenant_id = $1 AND s.key = f.session_key
        LIMIT 1) s
 WHERE (f.seq <= s.forked_seq AND EXISTS (
        SELECT
          FROM sessions o
          JOIN messages om ON om.tenant_id = o.tenant_id AND om.session_key = o.key
         WHERE o.tenant_id = $1
           AND o.id = s.forked_from
           AND o.created_at < s.created_at
           AND om.seq = f.seq
           AND om.removed_at IS NULL)) IS NOT TRUE
