-- Counts what sessions $2 of the tenant $1, whose rows in the ledger are locked, have stored since they were counted
-- last, and adds that and the reads $3 to $5 to their rows and to the days. A message counts on the day it was appended;
-- one of an import that is older than a day counts today. Each row is written once: a second version of it, made by the
-- same transaction, would have entries of its own in all indexes. It returns the sessions that had something to count.
WITH wanted AS (
	SELECT w.session, w.views, w.served, w.read_backs, now() AS read_at,
	       coalesce(greatest(w.views * s.total_tokens - w.served, 0), 0) AS saved,
	       s.key, s.last_seq, s.checkpoint_n, s.last_append_at, {over} AS over_window
	  FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[]) AS w (session, views, served, read_backs)
	  LEFT JOIN LATERAL (
	       SELECT *
	         FROM sessions
	        WHERE tenant_id = $1 AND id = w.session
	       OFFSET 0) s ON true
), found AS (
	SELECT w.*, w.views + w.read_backs > 0 AS read, u.counted_seq, u.counted_n, u.ctid AS place,
	       (u.counted_seq < w.last_seq OR u.counted_n < w.checkpoint_n
	        OR u.appended_at IS DISTINCT FROM w.last_append_at OR u.over_window <> w.over_window) AS behind
	  FROM wanted w
	  JOIN usage_sessions u ON u.tenant_id = $1 AND u.session_key = w.key
), stored AS (
	SELECT f.key AS session_key,
	       CASE
	       WHEN m.created_at BETWEEN now() - interval '1 day' AND now() THEN (m.created_at AT TIME ZONE 'UTC')::date
	       ELSE {today}
	       END AS day,
	       count(*) AS messages, sum(coalesce(m.bytes, octet_length(m.body))) AS bytes, sum(m.tokens) AS tokens
	  FROM found f
	  JOIN messages m
	    ON m.tenant_id = $1
	   AND m.session_key = f.key
	   AND m.seq > f.counted_seq
	   AND m.seq <= f.last_seq
	 WHERE f.counted_seq < f.last_seq
	 GROUP BY 1, 2
), of_sessions AS (
	UPDATE usage_sessions u
	   SET counted_seq = f.last_seq,
	       counted_n = f.checkpoint_n,
	       appended_at = f.last_append_at,
	       over_window = f.over_window,
	       messages = u.messages + coalesce(n.messages, 0),
	       bytes = u.bytes + coalesce(n.bytes, 0),
	       tokens = u.tokens + coalesce(n.tokens, 0),
	       compactions = u.compactions + f.checkpoint_n - f.counted_n,
	       views = u.views + f.views,
	       tokens_served = u.tokens_served + f.served,
	       tokens_saved = u.tokens_saved + f.saved,
	       read_backs = u.read_backs + f.read_backs,
	       read_at = CASE WHEN f.read THEN f.read_at ELSE u.read_at END
	  FROM found f
	  LEFT JOIN (SELECT session_key, sum(messages) AS messages, sum(bytes) AS bytes, sum(tokens) AS tokens
	               FROM stored
	              GROUP BY session_key) n ON n.session_key = f.key
	 WHERE u.tenant_id = $1
	   AND u.ctid = f.place -- the row is locked, and stays there
	   AND (f.behind OR f.read)
), added AS (
	SELECT day, messages, bytes, tokens, 0 AS views, 0 AS served, 0 AS saved, 0 AS read_backs, 0 AS compactions
	  FROM stored
	UNION ALL
	SELECT {today}, 0, 0, 0, 0, 0, 0, 0, checkpoint_n - counted_n
	  FROM found
	 WHERE counted_n < checkpoint_n
	UNION ALL
	SELECT {today}, 0, 0, 0, views, served, saved, read_backs, 0
	  FROM wanted
), of_days AS (
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
)
SELECT session
  FROM found
 WHERE behind
