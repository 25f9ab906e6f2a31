-- Copies a session's log through @seq, as it was then, to the session @fork, with its packs, its results and the
-- checkpoints through @checkpoint. Bodies of results are shared: their rows name the session that holds them.
-- It is one statement, so that all of it is of one moment. Messages of the pack that goes beyond @seq come from the
-- arrays. Checkpoints that go beyond @seq are left out, and the others are numbered without a gap.
--
-- It returns the tokens of the log, the first seq of the pack that goes beyond @seq, whether @checkpoint has a body,
-- and the number of the fork's newest checkpoint.
WITH numbered AS MATERIALIZED (
	SELECT n, row_number() OVER (ORDER BY n)::int AS own
	  FROM checkpoints
	 WHERE tenant_id = @tenant AND session_key = @session AND n <= @checkpoint AND through_seq <= @seq
), logged AS (
	INSERT INTO messages (tenant_id, session_key, seq, role, format, tokens, client_id, starts_unit, flags, created_at,
	                      view_tokens, item_id, removed_at, removed_seq, superseded_by,
	                      body, view_body, shape, digest, bytes, calls, answers)
	SELECT m.tenant_id, @fork, m.seq, m.role, m.format, m.tokens, m.client_id, m.starts_unit, m.flags, m.created_at,
	       m.view_tokens, m.item_id,
	       CASE WHEN m.removed_seq <= @seq THEN m.removed_at END,
	       CASE WHEN m.removed_seq <= @seq THEN m.removed_seq END,
	       CASE WHEN m.removed_seq <= @seq AND m.superseded_by <= @seq THEN m.superseded_by
	            WHEN m.removed_seq <= @seq AND m.superseded_by > @seq THEN m.removed_seq END,
	       coalesce(m.body, u.body), coalesce(m.view_body, u.view_body), coalesce(u.shape, m.shape),
	       coalesce(m.digest, sha256(u.body)), CASE WHEN u.seq IS NULL THEN m.bytes END,
	       coalesce(m.calls, u.calls::text[]),
	       coalesce(m.answers, u.answers::text[])
	  FROM messages m
	  LEFT JOIN unnest(@seqs::bigint[], @bodies::bytea[], @views::bytea[], @shapes::text[], @calls::text[],
	                   @answers::text[]) AS u (seq, body, view_body, shape, calls, answers) ON u.seq = m.seq
	 WHERE m.tenant_id = @tenant AND m.session_key = @session AND m.seq <= @seq
	RETURNING tokens, removed_at
), packed AS (
	INSERT INTO message_packs (tenant_id, session_key, first_seq, last_seq, raw, results, digest, body)
	SELECT tenant_id, @fork, first_seq, last_seq, raw, results, digest, body
	  FROM message_packs
	 WHERE tenant_id = @tenant AND session_key = @session AND last_seq <= @seq
), shared AS (
	INSERT INTO result_bodies (tenant_id, session_key, id, sha256, bytes, lines, store, held_in)
	SELECT b.tenant_id, @fork, b.id, b.sha256, b.bytes, b.lines, b.store, coalesce(b.held_in, b.session_key)
	  FROM result_bodies b
	 WHERE b.tenant_id = @tenant AND b.session_key = @session AND b.sha256 IS NOT NULL
	   AND b.id IN (SELECT r.body_id
	                  FROM results r
	                 WHERE r.tenant_id = @tenant AND r.session_key = @session AND r.seq <= @seq)
), persisted AS (
	INSERT INTO results (tenant_id, session_key, ref, seq, part, tool_name, call_id, category, media_type, bytes, lines,
	                     tokens, sha256, created_at, body_id)
	SELECT tenant_id, @fork, ref, seq, part, tool_name, call_id, category, media_type, bytes, lines,
	       tokens, sha256, created_at, body_id
	  FROM results
	 WHERE tenant_id = @tenant AND session_key = @session AND seq <= @seq
), kept AS (
	INSERT INTO checkpoints (tenant_id, session_key, n, base_n, restored_from, through_seq, tokens, body, body_size, state,
	                         units, manifest, open_calls, policy, engine_version, run_id, created_at, validator_state,
	                         body_digest, state_digest, forgotten, made_after)
	SELECT c.tenant_id, @fork, k.own, coalesce(b.own, 0), r.own, c.through_seq, c.tokens, c.body, c.body_size, c.state,
	       c.units, c.manifest, c.open_calls, c.policy, c.engine_version, c.run_id, c.created_at, c.validator_state,
	       c.body_digest, c.state_digest, c.forgotten, c.made_after
	  FROM checkpoints c
	  JOIN numbered k ON k.n = c.n
	  LEFT JOIN numbered b ON b.n = c.base_n
	  LEFT JOIN numbered r ON r.n = c.restored_from
	 WHERE c.tenant_id = @tenant AND c.session_key = @session
	RETURNING n, body IS NOT NULL AS whole
), pinned AS (
	INSERT INTO session_pins (tenant_id, session_key, ref, seq, part, text, tokens, note, created_at)
	SELECT tenant_id, @fork, ref, seq, part, text, tokens, note, created_at
	  FROM session_pins
	 WHERE tenant_id = @tenant AND session_key = @session AND seq <= @seq
), summarised AS (
	INSERT INTO summaries (tenant_id, session_key, model, digest, first_seq, last_seq, checkpoint_n, state, attempts,
	                       retain, summary, flags, provenance, answer_keys, created_at, asked_at, finished_at, offered)
	SELECT tenant_id, @fork, model, digest, first_seq, last_seq,
	       (SELECT count(*)
	          FROM numbered
	         WHERE n <= checkpoint_n), state, attempts,
	       retain, summary, flags, provenance, answer_keys, created_at, asked_at, finished_at, offered
	  FROM summaries
	 WHERE tenant_id = @tenant AND session_key = @session AND state = 'answered'
	   AND last_seq <= @seq AND checkpoint_n <= @checkpoint
)
SELECT coalesce((SELECT sum(tokens) FROM logged WHERE removed_at IS NULL), 0)::bigint,
       coalesce((SELECT first_seq
                   FROM message_packs
                  WHERE tenant_id = @tenant AND session_key = @session AND first_seq <= @seq AND last_seq > @seq), 0),
       @checkpoint = 0 OR EXISTS (SELECT
                                    FROM kept
                                    JOIN numbered ON own = kept.n
                                   WHERE numbered.n = @checkpoint AND whole),
       (SELECT count(*) FROM numbered)
