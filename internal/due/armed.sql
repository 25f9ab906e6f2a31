-- How many estimated tokens, overhead included, make a session s under a policy p ask for a compaction. The methods of
-- Session are the same in Go: a test holds them to each other. least and greatest pass over NULL, and a comparison with
-- NULL is none. OFFSET 0 keeps the planner from writing c out in each of its places, which an append would pay for.
(SELECT CASE
        WHEN p.on_request THEN 'infinity'::float8
        WHEN {armed} = 1
            THEN least(r.by_tokens, r.by_bytes, r.hard,
                       CASE WHEN p.idle_ratio > 0 AND NOT {idle_asked} THEN greatest(e.idle, g.regrown) END)
        WHEN {armed} = 2 THEN r.hard
        ELSE 'infinity'::float8
        END
   FROM (SELECT (CASE WHEN p.calibrate THEN {calibration} ELSE 1 END)::float8 AS calibration,
                (CASE WHEN p.calibrate THEN {unseen} ELSE 0 END)::float8 AS unseen
         OFFSET 0) c
  CROSS JOIN LATERAL (
        SELECT ((CASE WHEN p.trigger_tokens > 0 THEN p.trigger_tokens::float8
                      ELSE p.trigger_ratio * s.window_tokens END) - c.unseen) / c.calibration AS trigger,
               (p.hard_ratio * s.window_tokens - c.unseen) / c.calibration AS hard,
               (p.idle_ratio * s.window_tokens - c.unseen) / c.calibration AS idle,
               CASE WHEN p.trim_ratio > 0
                    THEN (p.trim_ratio * s.window_tokens - c.unseen) / c.calibration END AS trim,
               CASE WHEN p.budget_max > 0
                    THEN greatest(least(p.budget_ratio * s.window_tokens / c.calibration, p.budget_max),
                                  p.budget_min) END AS budget) e
  CROSS JOIN LATERAL (
        SELECT CASE WHEN s.floor_tokens > 0 AND s.floor_version = p.tenant_version AND s.floor_engine = {engine}
                         AND (s.floor_seq = 0 OR {seq} < s.floor_seq)
                    THEN s.floor_tokens END AS tokens) f
  CROSS JOIN LATERAL (
        SELECT f.tokens + {regrowth}::float8 * s.window_tokens / c.calibration AS regrown) g
  CROSS JOIN LATERAL (
        SELECT CASE WHEN f.tokens IS NULL THEN least(e.trigger, e.trim, e.budget)
                    WHEN s.floor_hides >= 1 AND f.tokens >= e.trigger THEN g.regrown
                    ELSE least(e.trigger, greatest(least(e.trigger, e.trim, e.budget), g.regrown))
                    END AS by_tokens,
               CASE WHEN p.trigger_bytes > 0 AND {bytes} >= p.trigger_bytes
                    THEN coalesce(g.regrown, '-infinity') END AS by_bytes,
               CASE WHEN s.floor_hides >= 2 AND f.tokens >= e.hard THEN g.regrown
                    ELSE e.hard END AS hard) r)
