-- Grows a session and writes its messages and the idempotency record, or does nothing at all: the inserts select from
-- the row that the UPDATE returns. The first append gives the session its format; later ones may have another.
--
-- It returns no row if there is no such session, it is not what it was taken for or the session is full. Unless the caller
-- holds the session's lock, it returns none either if the append would make the session due or has a result to cap.
-- append_many.sql does this for several sessions. See appendForm for the lines that not every append has.
WITH grown AS (
	UPDATE sessions s
	   SET last_seq = s.last_seq + @count,
	       tail_bytes = s.tail_bytes + @bytes,
	       pinned = CASE WHEN s.pinned = s.last_seq THEN s.pinned + @pinned ELSE s.pinned END,
	       context_tokens = s.context_tokens + @tokens - @spared,
	       total_tokens = s.total_tokens + @tokens,
	       format = CASE WHEN s.format = 0 THEN @format ELSE s.format END,
-- if measured
	       {measured},
-- if any
	       last_append_at = now()
	  FROM policies p
	 WHERE s.tenant_id = @tenant
	   AND s.id = @session
	   AND p.tenant_id = @tenant
	   AND p.id = s.policy_id
	   AND (@expected_seq::bigint IS NULL OR s.last_seq = @expected_seq)
	   AND (@basis_format::smallint IS NULL OR s.format = @basis_format AND s.model = @basis_model::text
	        AND s.window_tokens = @basis_window::bigint)
	   AND s.last_seq + @count <= {max_messages}
	   AND s.tail_bytes + @bytes <= {max_bytes}
-- if free
	   AND NOT {outdated}
	   AND s.context_tokens + @tokens + s.overhead_tokens < {armed}
	   AND (@largest::int <= p.caps_over) IS NOT FALSE
-- if any
	RETURNING s.key, s.last_seq, s.context_tokens, s.total_tokens, s.calibration, s.unseen_tokens
), logged AS (
-- if one
	INSERT INTO messages (tenant_id, session_key, seq, role, format, tokens, client_id, calls, answers, starts_unit,
	                      flags, body, digest, shape, item_id)
	SELECT @tenant, g.key, g.last_seq, @one_role, @format, @tokens, @one_client_id,
	       @one_calls::text::text[], @one_answers::text::text[], @one_starts_unit,
	       @one_flags, @one_body, @one_digest, @one_shape, @one_item_id
	  FROM grown g
-- if more
	INSERT INTO messages (tenant_id, session_key, seq, role, format, tokens, client_id, calls, answers, starts_unit,
	                      flags, body, digest, shape, item_id, view_body, view_tokens)
	SELECT @tenant, g.key, g.last_seq - @count + m.n, m.role, @format, m.tokens, m.client_id,
	       m.calls::text[], m.answers::text[], m.starts_unit,
	       m.flags, m.body, m.digest, m.shape, m.item_id, m.view_body, m.view_tokens
	  FROM grown g,
	       unnest(@roles::text[], @message_tokens::int[], @client_ids::text[], @calls::text[], @answers::text[],
	              @starts_unit::bool[], @flags::int[], @bodies::bytea[], @digests::bytea[], @shapes::text[],
	              @item_ids::text[], @view_bodies::bytea[], @view_tokens::int[])
	           WITH ORDINALITY AS m (role, tokens, client_id, calls, answers, starts_unit, flags, body, digest, shape,
	                                 item_id, view_body, view_tokens, n)
-- if keyed
), remembered AS (
	INSERT INTO idempotency (tenant_id, route, key, session_key, digest, answer)
	SELECT @tenant, @route, @request, g.key, @digest,
	       json_build_object('first_seq', g.last_seq - @count + 1, 'last_seq', g.last_seq,
	                         'tokens', @tokens::bigint, 'context_tokens', g.context_tokens,
	                         'total_tokens', g.total_tokens, 'compaction', 'none')::text
	  FROM grown g
-- if any
)
SELECT last_seq, context_tokens, total_tokens, calibration, unseen_tokens
  FROM grown
