-- The size of a session's log up to a message, without its separate system prompt and what was removed.
--
--   $1 tenant  $2 session key  $3 last seq
SELECT s.format, {pinned}, count(m.seq), coalesce(sum(coalesce(m.bytes, octet_length(m.body))), 0),
       coalesce(bool_or(m.format <> s.format), false)
  FROM sessions s
  LEFT JOIN messages m
    ON m.tenant_id = $1 AND m.session_key = s.key AND m.seq > {pinned} AND m.seq <= $3 AND m.removed_at IS NULL
 WHERE s.tenant_id = $1 AND s.key = $2
 GROUP BY s.key, s.format, s.pinned
