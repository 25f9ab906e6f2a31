-- The counters of a session, and the last seq of its separate system prompt. What was said in a frozen session lies in
-- its archive. A policy hides those from the logins that serve, but not from the owner.
--
--   $1 tenant  $2 session key
SELECT s.id, s.format, {pinned} AS separate, s.last_seq, s.pinned, s.gap_seq, s.tail_bytes, s.context_tokens,
       s.total_tokens, s.checkpoint_n AS checkpoint, s.through_seq AS through, s.checkpoint_size
  FROM sessions s
 WHERE s.tenant_id = $1 AND s.key = $2 AND s.frozen_at IS NULL
