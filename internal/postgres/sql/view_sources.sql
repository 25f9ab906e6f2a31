-- A checkpoint of a session, and the seq from which ViewWithSources has messages as they are.
--
--   $1 tenant  $2 session key  $3 number of the checkpoint, 0 for none
SELECT coalesce(c.sealed, false), coalesce(c.whole, $3 = 0), coalesce(c.through_seq, 0), c.body, coalesce(c.body_size, 0), c.units,
       least((SELECT seq
                FROM messages
               WHERE tenant_id = $1 AND session_key = s.key AND seq > 0 AND role = 'user' AND removed_at IS NULL
               ORDER BY seq DESC
               LIMIT 1),
             (SELECT seq
                FROM messages
               WHERE tenant_id = $1 AND session_key = s.key AND seq > 0 AND removed_at IS NULL
               ORDER BY seq DESC
              OFFSET 3
               LIMIT 1),
             s.last_seq + 1)
  FROM sessions s
  {checkpoint}
 WHERE s.tenant_id = $1 AND s.key = $2
