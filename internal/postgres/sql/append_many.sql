-- Does what append.sql does for several appends of a tenant, each to another session, of which none holds a lock or has
-- what views show of capped messages. It returns a row for each append that was done, with its number. See appendForm.
--
-- found looks the sessions up, one by one. For a join PostgreSQL would read all sessions of a tenant that it thinks
-- has few, and the conditions that are always true make it think that there is one append, so that what follows looks
-- by ctid, in this order. Those whose client ids or Idempotency-Key are known are left out, for they would fail all the
-- others; a scalar sub-select looks up what is asked for, where for EXISTS all of a tenant's may be read and hashed.
WITH found AS MATERIALIZED (
	SELECT a.*, s.ctid AS place
	  FROM unnest(
-- if keyed
	       @each_route::text[], @each_request::text[], @each_digest::bytea[], @each_named::bool[],
-- if measured
	       @each_used::bigint[], @each_counted::bigint[], @each_usage::jsonb[],
	       @each_exact_tokens::bigint[],
-- if any
	       @each_session::text[], @each_format::smallint[], @each_count::bigint[], @each_tokens::bigint[],
	       @each_expected_seq::bigint[], @each_basis_format::smallint[], @each_basis_model::text[],
	       @each_basis_window::bigint[], @each_pinned::bigint[], @each_bytes::bigint[], @each_largest::int[])
	       WITH ORDINALITY AS a (
-- if keyed
	       route, request, digest, named,
-- if measured
	       used, counted, usage, exact_tokens,
-- if any
	       session, format, count, tokens, expected_seq, basis_format, basis_model, basis_window, pinned, bytes,
	       largest, n)
	 CROSS JOIN LATERAL (
	       SELECT ctid, key
	         FROM sessions
	        WHERE tenant_id = @tenant AND id = a.session
	        LIMIT 1) s
	 WHERE a.n > 0 AND a.count > 0 AND a.bytes >= 0
-- if keyed
	   AND (a.route IS NULL OR (
	           SELECT i.session_key
	             FROM idempotency i
	            WHERE i.tenant_id = @tenant AND i.route = a.route AND i.key = a.request) IS NULL)
	   AND (NOT a.named OR (
	           SELECT count((SELECT k.seq
	                           FROM messages k
	                          WHERE k.tenant_id = @tenant AND k.session_key = s.key AND k.client_id = c.id
	                            AND {named}))
	             FROM unnest(@client_ids::text[], @owners::bigint[]) c (id, owner)
	            WHERE c.owner = a.n) = 0)
-- if any
), grown AS (
	UPDATE sessions s
	   SET last_seq = s.last_seq + a.count,
	       tail_bytes = s.tail_bytes + a.bytes,
	       pinned = CASE WHEN s.pinned = s.last_seq THEN s.pinned + a.pinned ELSE s.pinned END,
	       context_tokens = s.context_tokens + a.tokens,
	       total_tokens = s.total_tokens + a.tokens,
	       format = CASE WHEN s.format = 0 THEN a.format ELSE s.format END,
-- if measured
	       {measured},
-- if any
	       last_append_at = now()
	  FROM found a, policies p
	 WHERE s.tenant_id = @tenant
	   AND s.id = a.session
	   AND p.tenant_id = @tenant
	   AND p.id = s.policy_id
	   AND (a.expected_seq IS NULL OR s.last_seq = a.expected_seq)
	   AND (a.basis_format IS NULL OR s.format = a.basis_format AND s.model = a.basis_model
	        AND s.window_tokens = a.basis_window)
	   AND s.last_seq + a.count <= {max_messages}
	   AND s.tail_bytes + a.bytes <= {max_bytes}
	   AND NOT {outdated}
	   AND s.context_tokens + a.tokens + s.overhead_tokens < {armed}
	   AND (a.largest <= p.caps_over) IS NOT FALSE
	   AND s.ctid = a.place
	RETURNING s.key, s.last_seq, s.context_tokens, s.total_tokens, s.calibration, s.unseen_tokens,
-- if keyed
	          a.route, a.request, a.digest,
-- if any
	          a.n, a.count, a.format, a.tokens
), logged AS (
	INSERT INTO messages (tenant_id, session_key, seq, role, format, tokens, client_id, calls, answers, starts_unit,
	                      flags, body, digest, shape, item_id)
	SELECT @tenant, g.key, g.last_seq - g.count + m.n, m.role, g.format, m.tokens, m.client_id,
	       m.calls::text[], m.answers::text[], m.starts_unit,
	       m.flags, m.body, m.digest, m.shape, m.item_id
	  FROM grown g,
	       unnest(@roles::text[], @message_tokens::int[], @client_ids::text[], @calls::text[], @answers::text[],
	              @starts_unit::bool[], @flags::int[], @bodies::bytea[], @digests::bytea[], @shapes::text[],
	              @item_ids::text[], @numbers::bigint[], @owners::bigint[])
	           AS m (role, tokens, client_id, calls, answers, starts_unit, flags, body, digest, shape,
	                 item_id, n, owner)
	 WHERE m.owner = g.n
-- if keyed
), remembered AS (
	INSERT INTO idempotency (tenant_id, route, key, session_key, digest, answer)
	SELECT @tenant, g.route, g.request, g.key, g.digest,
	       json_build_object('first_seq', g.last_seq - g.count + 1, 'last_seq', g.last_seq,
	                         'tokens', g.tokens, 'context_tokens', g.context_tokens,
	                         'total_tokens', g.total_tokens, 'compaction', 'none')::text
	  FROM grown g
	 WHERE g.route IS NOT NULL
-- if any
)
SELECT last_seq, context_tokens, total_tokens, calibration, unseen_tokens, n
  FROM grown
