-- Begins an attempt at the next session of a running replay. Returns it with what was measured of it.
--
--   $1 tenant  $2 replay
UPDATE replay_sessions l
   SET attempts = l.attempts + 1
  FROM replays r
 WHERE r.tenant_id = $1 AND r.id = $2 AND r.state = 'running'
   AND l.tenant_id = $1 AND l.replay_id = $2
   AND l.place = (SELECT min(place)
                    FROM replay_sessions
                   WHERE tenant_id = $1 AND replay_id = $2 AND finished_at IS NULL)
RETURNING l.session_key, l.last_seq, l.window_tokens, l.attempts,
          (SELECT coalesce(array_agg(o.contender ORDER BY o.contender, o.window_tokens), '{}')
             FROM replay_outcomes o
            WHERE o.tenant_id = $1 AND o.replay_id = $2 AND o.session_key = l.session_key),
          (SELECT coalesce(array_agg(o.window_tokens ORDER BY o.contender, o.window_tokens), '{}')
             FROM replay_outcomes o
            WHERE o.tenant_id = $1 AND o.replay_id = $2 AND o.session_key = l.session_key)
