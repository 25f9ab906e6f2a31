-- What a session has before it is erased: messages, results, bodies that no fork has, checkpoints, the bytes of messages
-- and of these bodies, those of messages alone, and the SHA-256 of their digests as they are stored.
--
--   $1 tenant  $2 key of the session
SELECT m.n, r.n, b.n, c.n, m.bytes + b.bytes, m.bytes,
       sha256(coalesce(m.digests, '') || coalesce(p.digests, '') || coalesce(b.digests, ''))
  FROM (SELECT count(*) AS n, coalesce(sum({messageBytes}), 0)::bigint AS bytes,
               string_agg(coalesce(digest, sha256(body)), '' ORDER BY seq) AS digests
          FROM messages
         WHERE tenant_id = $1 AND session_key = $2) m,
       (SELECT string_agg(digest, '' ORDER BY first_seq) AS digests
          FROM message_packs
         WHERE tenant_id = $1 AND session_key = $2) p,
       (SELECT count(*) AS n
          FROM results
         WHERE tenant_id = $1 AND session_key = $2) r,
       (SELECT count(*) AS n, coalesce(sum(h.bytes), 0)::bigint AS bytes, string_agg(h.sha256, '' ORDER BY h.id) AS digests
          FROM result_bodies h
         WHERE h.tenant_id = $1 AND h.session_key = $2 AND h.held_in IS NULL
           AND NOT EXISTS (
               SELECT
                 FROM result_bodies f
                WHERE f.tenant_id = $1 AND f.held_in = $2 AND f.id = h.id)) b,
       (SELECT count(*) AS n
          FROM checkpoints
         WHERE tenant_id = $1 AND session_key = $2) c
