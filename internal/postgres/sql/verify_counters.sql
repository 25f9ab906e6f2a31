-- Counts a session's numbers again from its log and its newest checkpoint. A gap of an import is known from gap_seq
-- alone, which is never lowered.
--
--   $1 tenant  $2 session key
WITH newest AS (
	SELECT n, through_seq, tokens, body_size, engine_version
	  FROM checkpoints
	 WHERE tenant_id = $1 AND session_key = $2
	 ORDER BY n DESC
	 LIMIT 1
), counted AS (
	SELECT coalesce(sum(m.tokens) FILTER (WHERE m.removed_at IS NULL), 0) AS total,
	       max(m.removed_seq) AS removed,
	       min(m.seq) FILTER (WHERE m.flags & $3 = 0 AND m.superseded_by IS NULL) AS unpinned
	  FROM messages m
	 WHERE m.tenant_id = $1 AND m.session_key = $2
), headed AS (
	SELECT s.key, coalesce(c.unpinned - 1, s.last_seq) AS pinned, c.total,
	       greatest(s.gap_seq, least(c.removed, s.last_seq)) AS gap, coalesce(n.n, 0) AS n,
	       coalesce(n.through_seq, 0) AS through, coalesce(n.tokens, 0) AS tokens, coalesce(n.body_size, 0) AS size,
	       n.engine_version
	  FROM sessions s
	 CROSS JOIN counted c
	  LEFT JOIN newest n ON true
	 WHERE s.tenant_id = $1 AND s.key = $2
), numbers AS (
	SELECT h.*, {pinned} AS separate
	  FROM headed h
	  JOIN (SELECT s.key, s.format, h.pinned
	          FROM sessions s
	          JOIN headed h ON h.key = s.key
	         WHERE s.tenant_id = $1 AND s.key = $2) s ON s.key = h.key
)
UPDATE sessions s
   SET checkpoint_n = n.n, through_seq = n.through, checkpoint_size = n.size, total_tokens = n.total,
       pinned = n.pinned, gap_seq = n.gap, engine_version = n.engine_version,
       context_tokens = n.tokens
           + (SELECT coalesce(sum(CASE WHEN m.seq <= n.separate THEN m.tokens
                                       ELSE coalesce(m.view_tokens, m.tokens) END), 0)
                FROM messages m
               WHERE m.tenant_id = $1 AND m.session_key = $2 AND m.removed_at IS NULL AND m.seq <= s.last_seq
                 AND (m.seq <= n.separate OR m.seq > n.through)),
       tail_bytes = (SELECT coalesce(sum(coalesce(m.bytes, octet_length(m.body))), 0)
                       FROM messages m
                      WHERE m.tenant_id = $1 AND m.session_key = $2 AND m.removed_at IS NULL
                        AND m.seq > n.through AND m.seq <= s.last_seq)
  FROM numbers n
 WHERE s.tenant_id = $1 AND s.key = $2
