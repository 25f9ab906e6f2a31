-- What became of the sessions of replay r. Those that were erased have no row any more.
(SELECT jsonb_build_object(
            'measured', coalesce(sum(k.sessions) FILTER (WHERE k.state = 'measured'), 0),
            'failed', coalesce(sum(k.sessions) FILTER (WHERE k.state = 'failed'), 0),
            'outcomes', (SELECT count(*)
                           FROM replay_outcomes o
                          WHERE o.tenant_id = $1 AND o.replay_id = r.id),
            'skipped', coalesce(jsonb_agg(jsonb_build_object('reason', k.reason, 'sessions', k.sessions)
                                          ORDER BY k.reason)
                                FILTER (WHERE k.state = 'skipped' AND k.sessions > 0), '[]'))
   FROM (SELECT state, reason, count(*) AS sessions
           FROM replay_sessions
          WHERE tenant_id = $1 AND replay_id = r.id
          GROUP BY state, reason
          UNION ALL
         SELECT 'skipped', 'erased', r.total - (SELECT count(*)
                                                  FROM replay_sessions
                                                 WHERE tenant_id = $1 AND replay_id = r.id)) k)
