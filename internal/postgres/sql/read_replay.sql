-- A replay's row with what became of its sessions. Those that were erased have no row any more.
SELECT r.id, r.state, r.filter, r.contenders, r.windows, r.sample, r.seed, r.max_messages, r.max_bytes,
       r.matched, r.too_short, r.total, r.contender, r.error, r.created_at, r.started_at, r.finished_at,
       coalesce(l.measured, 0) AS measured, coalesce(l.failed, 0) AS failed,
       o.outcomes,
       coalesce((SELECT jsonb_agg(jsonb_build_object('reason', k.reason, 'sessions', k.sessions) ORDER BY k.reason)
                   FROM (SELECT reason, sum(n) AS sessions
                           FROM (SELECT reason, 1 AS n
                                   FROM replay_sessions
                                  WHERE tenant_id = $1 AND replay_id = r.id AND state = 'skipped'
                                 UNION ALL
                                 SELECT 'erased', r.total - coalesce(l.sessions, 0)) e
                          GROUP BY reason) k
                  WHERE k.sessions > 0), '[]') AS skipped
  FROM replays r
  LEFT JOIN LATERAL (
       SELECT count(*) AS sessions, count(*) FILTER (WHERE state = 'measured') AS measured,
              count(*) FILTER (WHERE state = 'failed') AS failed
         FROM replay_sessions
        WHERE tenant_id = $1 AND replay_id = r.id) l ON true
  LEFT JOIN LATERAL (
       SELECT count(*) AS outcomes
         FROM replay_outcomes
        WHERE tenant_id = $1 AND replay_id = r.id) o ON true
 WHERE r.tenant_id = $1
