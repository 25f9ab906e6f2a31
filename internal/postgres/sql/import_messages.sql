-- Appends messages of another log, with their times and removals, and returns the tokens of the session's view.
--
--   $1 tenant  $2 session key  $3 first seq  $4 format
--   $5 number of messages at the beginning that are the system's or superseded
--   $6... arrays with one entry a message: roles, tokens, client ids, calls, answers, starts_unit, flags, bodies,
--   their digests, shapes, bodies in views, their tokens, created_at, removed_at, removed_seq,
--   item ids, superseded_by
WITH logged AS (
	INSERT INTO messages (tenant_id, session_key, seq, role, format, tokens, client_id, calls, answers, starts_unit,
	                      flags, body, digest, view_body, view_tokens, created_at, removed_at,
	                      removed_seq, shape, item_id, superseded_by)
	SELECT $1, $2, $3 + m.n - 1, m.role, $4, m.tokens, m.client_id,
	       m.calls::text[], m.answers::text[], m.starts_unit,
	       m.flags, m.body, m.digest, m.view_body, m.view_tokens, coalesce(m.created_at, now()), m.removed_at,
	       m.removed_seq, m.shape, m.item_id, m.superseded_by
	  FROM unnest($6::text[], $7::int[], $8::text[], $9::text[], $10::text[], $11::bool[], $12::int[], $13::bytea[],
	              $14::bytea[], $15::text[], $16::bytea[], $17::int[], $18::timestamptz[], $19::timestamptz[],
	              $20::bigint[], $21::text[], $22::bigint[])
	       WITH ORDINALITY AS m (role, tokens, client_id, calls, answers, starts_unit, flags, body,
	                             digest, shape, view_body, view_tokens, created_at, removed_at, removed_seq, item_id,
	                             superseded_by, n)
	RETURNING seq, tokens, view_tokens, octet_length(body) AS bytes, created_at, removed_at,
	          removed_seq
), grown AS (
	SELECT max(seq) AS last_seq, max(created_at) AS at,
	       coalesce(sum(tokens) FILTER (WHERE removed_at IS NULL), 0) AS tokens,
	       coalesce(sum(coalesce(view_tokens, tokens)) FILTER (WHERE removed_at IS NULL), 0) AS shown,
	       coalesce(sum(bytes) FILTER (WHERE removed_at IS NULL), 0) AS bytes,
	       max(removed_seq) AS removed_seq
	  FROM logged
)
UPDATE sessions s
   SET last_seq = g.last_seq,
       gap_seq = greatest(s.gap_seq, g.removed_seq, CASE WHEN $3 > s.last_seq + 1 THEN $3 - 1 END),
       unbound_seq = g.last_seq, -- thinking is bound to what stood before it where it was made
       pinned = CASE WHEN s.pinned = s.last_seq AND $5 > 0 THEN $3 + $5 - 1 ELSE s.pinned END,
       tail_bytes = s.tail_bytes + g.bytes,
       context_tokens = s.context_tokens + g.shown,
       total_tokens = s.total_tokens + g.tokens,
       format = CASE WHEN s.format = 0 THEN $4 ELSE s.format END,
       last_append_at = greatest(s.last_append_at, g.at)
  FROM grown g
 WHERE s.tenant_id = $1 AND s.key = $2
RETURNING s.context_tokens
