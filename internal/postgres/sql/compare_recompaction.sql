-- What the sessions that a recompaction changed served before it, as the ledger had counted by then, and since; and what
-- was read back of what had left their views by a checkpoint of before, or by that of the recompaction or a later one.
WITH changed AS (
	SELECT session_key, base_n, checkpoint_n, tokens_before, tokens_after, views_before, served_before,
	       read_backs_before
	  FROM recompaction_sessions
	 WHERE tenant_id = @tenant AND recompaction_id = @recompaction AND state = 'changed'
	   AND checkpoint_n IS NOT NULL AND rollback IS DISTINCT FROM 'rolled_back'
), recalled AS (
	SELECT r.checkpoint_n >= c.checkpoint_n AS after, count(DISTINCT (r.session_key, r.ref)) AS parts,
	       sum(r.reads) AS reads
	  FROM changed c
	  JOIN recalls r ON r.tenant_id = @tenant AND r.session_key = c.session_key AND r.checkpoint_n > 0
	 GROUP BY 1
)
SELECT count(*),
       coalesce(sum(c.tokens_before), 0)::bigint, coalesce(sum(c.views_before), 0)::bigint,
       coalesce(sum(c.served_before), 0)::bigint, coalesce(sum(c.read_backs_before), 0)::bigint,
       coalesce((SELECT parts FROM recalled WHERE NOT after), 0),
       coalesce((SELECT reads FROM recalled WHERE NOT after), 0)::bigint,
       coalesce(sum(c.tokens_after), 0)::bigint, coalesce(sum(u.views - c.views_before), 0)::bigint,
       coalesce(sum(u.tokens_served - c.served_before), 0)::bigint,
       coalesce(sum(u.read_backs - c.read_backs_before), 0)::bigint,
       coalesce((SELECT parts FROM recalled WHERE after), 0),
       coalesce((SELECT reads FROM recalled WHERE after), 0)::bigint
  FROM changed c
  LEFT JOIN usage_sessions u ON u.tenant_id = @tenant AND u.session_key = c.session_key
