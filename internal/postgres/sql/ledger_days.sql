-- Counts what sessions $2 of the tenant $1, whose rows in the ledger are locked, have stored since they were counted
-- last, and adds that and the reads $3 to $5 to the days. A message counts on the day it was appended; one of an import
-- that is older than a day counts today.
WITH behind AS (
	SELECT u.session_key, u.counted_seq, u.counted_n, s.last_seq, s.checkpoint_n, s.last_append_at,
	       {over} AS over_window
	  FROM sessions s
	  JOIN usage_sessions u ON u.tenant_id = s.tenant_id AND u.session_key = s.key
	 WHERE s.tenant_id = $1
	   AND s.id = ANY ($2)
	   AND (u.counted_seq < s.last_seq OR u.counted_n < s.checkpoint_n
	        OR u.appended_at IS DISTINCT FROM s.last_append_at OR u.over_window <> ({over}))
), stored AS (
	SELECT b.session_key,
	       CASE
	       WHEN m.created_at BETWEEN now() - interval '1 day' AND now() THEN (m.created_at AT TIME ZONE 'UTC')::date
	       ELSE {today}
	       END AS day,
	       count(*) AS messages, sum(coalesce(m.bytes, octet_length(m.body))) AS bytes, sum(m.tokens) AS tokens
	  FROM behind b
	  JOIN messages m
	    ON m.tenant_id = $1
	   AND m.session_key = b.session_key
	   AND m.seq > b.counted_seq
	   AND m.seq <= b.last_seq
	 GROUP BY 1, 2
), of_sessions AS (
	UPDATE usage_sessions u
	   SET counted_seq = b.last_seq,
	       counted_n = b.checkpoint_n,
	       appended_at = b.last_append_at,
	       over_window = b.over_window,
	       messages = u.messages + coalesce(n.messages, 0),
	       bytes = u.bytes + coalesce(n.bytes, 0),
	       tokens = u.tokens + coalesce(n.tokens, 0),
	       compactions = u.compactions + b.checkpoint_n - b.counted_n
	  FROM behind b
	  LEFT JOIN (SELECT session_key, sum(messages) AS messages, sum(bytes) AS bytes, sum(tokens) AS tokens
	               FROM stored
	              GROUP BY session_key) n ON n.session_key = b.session_key
	 WHERE u.tenant_id = $1
	   AND u.session_key = b.session_key
), added AS (
	SELECT day, messages, bytes, tokens, 0 AS views, 0 AS served, 0 AS saved, 0 AS read_backs, 0 AS compactions
	  FROM stored
	UNION ALL
	SELECT {today}, 0, 0, 0, 0, 0, 0, 0, checkpoint_n - counted_n
	  FROM behind
	UNION ALL
	SELECT {today}, 0, 0, 0, w.views, w.served, coalesce(greatest(w.views * s.total_tokens - w.served, 0), 0),
	       w.read_backs, 0
	  FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[]) AS w (session, views, served, read_backs)
	  LEFT JOIN sessions s ON s.tenant_id = $1 AND s.id = w.session
)
INSERT INTO usage_days AS d (tenant_id, day, messages, bytes, tokens, views, tokens_served, tokens_saved, read_backs,
                             compactions)
SELECT $1, day, sum(messages), sum(bytes), sum(tokens), sum(views), sum(served), sum(saved), sum(read_backs),
       sum(compactions)
  FROM added
 GROUP BY day
HAVING sum(messages + views + read_backs + compactions) > 0
 ORDER BY day
ON CONFLICT (tenant_id, day) DO UPDATE
   SET messages = d.messages + excluded.messages,
       bytes = d.bytes + excluded.bytes,
       tokens = d.tokens + excluded.tokens,
       views = d.views + excluded.views,
       tokens_served = d.tokens_served + excluded.tokens_served,
       tokens_saved = d.tokens_saved + excluded.tokens_saved,
       read_backs = d.read_backs + excluded.read_backs,
       compactions = d.compactions + excluded.compactions
