-- How many estimated tokens, overhead included, make a session s under a policy p ask for a compaction. The methods of
-- Session are the same in Go: a test holds them to each other. least and greatest pass over NULL, and a comparison with
-- NULL is none. OFFSET 0 keeps the planner from writing c and e out in each of their places, which an append would pay
-- for: PostgreSQL prepares every term of a statement anew each time that it runs.
(SELECT CASE
        WHEN p.on_request THEN 'infinity'::float8
        WHEN {armed} = 1
            THEN least(CASE WHEN e.floor IS NULL THEN e.first
                            WHEN s.floor_hides >= 1 AND e.floor >= e.trigger THEN e.regrown
                            ELSE least(e.trigger, greatest(e.first, e.regrown)) END,
                       CASE WHEN p.trigger_bytes > 0 AND {bytes} >= p.trigger_bytes
                            THEN coalesce(e.regrown, '-infinity') END,
                       CASE WHEN s.floor_hides >= 2 AND e.floor >= e.hard THEN e.regrown ELSE e.hard END,
                       CASE WHEN p.idle_ratio > 0 AND NOT {idle_asked} THEN greatest(e.idle, e.regrown) END)
        WHEN {armed} = 2
            THEN CASE WHEN s.floor_hides >= 2 AND e.floor >= e.hard THEN e.regrown ELSE e.hard END
        ELSE 'infinity'::float8
        END
   FROM (SELECT r.*, least(r.trigger, r.trim, r.budget) AS first,
                r.floor + {regrowth}::float8 * s.window_tokens / r.calibration AS regrown
           FROM (SELECT c.calibration,
                        ((CASE WHEN p.trigger_tokens > 0 THEN p.trigger_tokens::float8
                               ELSE p.trigger_ratio * s.window_tokens END) - c.unseen) / c.calibration AS trigger,
                        (p.hard_ratio * s.window_tokens - c.unseen) / c.calibration AS hard,
                        (p.idle_ratio * s.window_tokens - c.unseen) / c.calibration AS idle,
                        CASE WHEN p.trim_ratio > 0
                             THEN (p.trim_ratio * s.window_tokens - c.unseen) / c.calibration END AS trim,
                        CASE WHEN p.budget_max > 0
                             THEN greatest(least(p.budget_ratio * s.window_tokens / c.calibration, p.budget_max),
                                           p.budget_min) END AS budget,
                        CASE WHEN s.floor_tokens > 0 AND s.floor_version = p.tenant_version
                                  AND s.floor_engine = {engine} AND (s.floor_seq = 0 OR {seq} < s.floor_seq)
                             THEN s.floor_tokens END AS floor
                   FROM (SELECT (CASE WHEN p.calibrate THEN {calibration} ELSE 1 END)::float8 AS calibration,
                                (CASE WHEN p.calibrate THEN {unseen} ELSE 0 END)::float8 AS unseen
                         OFFSET 0) c
                 OFFSET 0) r
         OFFSET 0) e)
