-- What the sessions that a recompaction changed served before it, as usage_sessions had counted by then, and since; and
-- what the tenant was served since the recompaction began that is not of a changed session.
WITH changed AS (
	SELECT session_key, base_n, checkpoint_n, tokens_before, tokens_after, views_before, served_before,
	       read_backs_before
	  FROM recompaction_sessions
	 WHERE tenant_id = @tenant AND recompaction_id = @recompaction AND state = 'changed'
	   AND checkpoint_n IS NOT NULL AND rollback IS DISTINCT FROM 'rolled_back'
), served AS (
	SELECT count(*) AS sessions,
	       coalesce(sum(c.tokens_before), 0)::bigint AS tokens_before,
	       coalesce(sum(c.views_before), 0)::bigint AS views_before,
	       coalesce(sum(c.served_before), 0)::bigint AS served_before,
	       coalesce(sum(c.read_backs_before), 0)::bigint AS read_backs_before,
	       coalesce(sum(c.tokens_after), 0)::bigint AS tokens_after,
	       coalesce(sum(u.views - c.views_before), 0)::bigint AS views,
	       coalesce(sum(u.tokens_served - c.served_before), 0)::bigint AS served,
	       coalesce(sum(u.read_backs - c.read_backs_before), 0)::bigint AS read_backs
	  FROM changed c
	  LEFT JOIN usage_sessions u ON u.tenant_id = @tenant AND u.session_key = c.session_key
), tenant AS (
	SELECT sum(views)::bigint AS views, sum(tokens_served)::bigint AS served, sum(read_backs)::bigint AS read_backs
	  FROM usage_days
	 WHERE tenant_id = @tenant
)
SELECT s.sessions,
       s.tokens_before, s.views_before, s.served_before, s.read_backs_before,
       s.tokens_after, s.views, s.served, s.read_backs,
       coalesce(t.views - r.views_base - s.views, 0),
       coalesce(t.served - r.served_base - s.served, 0),
       coalesce(t.read_backs - r.read_backs_base - s.read_backs, 0)
  FROM recompactions r
 CROSS JOIN served s
 CROSS JOIN tenant t
 WHERE r.tenant_id = @tenant AND r.id = @recompaction
