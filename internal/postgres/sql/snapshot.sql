-- A session without its messages: what it is, its policy, its separate system prompt, and its newest checkpoint.
--
--   $1 tenant  $2 session key
SELECT s.id, s.model, s.format, s.window_tokens, s.overhead_tokens, s.context_tokens,
       s.tail_bytes + s.checkpoint_size, {images}, s.last_seq,
       coalesce(greatest(extract(epoch FROM now() - s.last_append_at), 0), 0)::float8, s.calibration, s.unseen_tokens,
       p.trigger_ratio, p.hard_ratio, p.cache_ttl, p.document, p.tenant_version, p.session_version,
       {layers},
       {pinned}, {separate_tokens},
       s.checkpoint_n, s.through_seq, coalesce(c.tokens, 0), c.body, coalesce(c.body_size, 0), c.state, c.units,
       c.policy, coalesce(c.engine_version, 0), coalesce(c.forgotten, false),
       coalesce(c.whole AND c.through_seq = s.through_seq AND c.body_size = s.checkpoint_size, false),
       coalesce(c.state_whole, false)
  FROM sessions s
  JOIN policies p ON p.tenant_id = $1 AND p.id = s.policy_id
  {checkpoint}
 WHERE s.tenant_id = $1 AND s.key = $2
