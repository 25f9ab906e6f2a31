-- A page of a session's messages with all that was extracted from them. Those in packs have no bytes.
--
--   $1 tenant  $2 session key  $3 after which seq  $4 most rows  $5 most bytes of bodies, 0 for no bound
--   $6 the last seq, 0 for no bound
SELECT m.seq, m.role, m.format, m.tokens, m.calls, m.answers, m.starts_unit, m.flags, m.body, m.digest,
       m.view_body, coalesce(m.view_tokens, m.tokens)::bigint AS view_tokens, m.removed_at IS NOT NULL AS removed,
       coalesce(m.removed_seq, 0) AS removed_seq, m.superseded_by IS NOT NULL AS superseded, m.shape, m.body IS NULL AS packed, m.size
  FROM (SELECT l.*, row_number() OVER before AS place, sum(l.held) OVER before - l.held AS bytes_before
          FROM (SELECT seq, role, format, tokens, calls, answers, starts_unit, flags, body, digest, view_body,
                       view_tokens, removed_at, removed_seq, superseded_by, shape, {size}::bigint AS size,
                       coalesce(octet_length(body), 0) AS held
                  FROM messages
                 WHERE tenant_id = $1 AND session_key = $2 AND seq > $3 AND ($6::bigint = 0 OR seq <= $6)
                 ORDER BY seq
                 LIMIT $4) l
        WINDOW before AS (ORDER BY seq)) m
 WHERE $5::bigint = 0 OR bytes_before <= $5 OR place = 1
 ORDER BY seq
