-- Adds what a process has counted of reads, $3 to $5 by session $2 of the tenant $1, to the rows of the sessions, and
-- locks these rows in the order of the sessions' keys. That it was read is noted once an hour. A session that is being
-- erased is waited for, and has no row then.
WITH wanted AS (
	SELECT *
	  FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[]) AS w (session, views, served, read_backs)
), locked AS (
	SELECT s.key, s.id, s.total_tokens
	  FROM sessions s
	 WHERE s.tenant_id = $1
	   AND s.id = ANY ($2)
	 ORDER BY s.key
	   FOR KEY SHARE
)
INSERT INTO usage_sessions AS u (tenant_id, session_key, views, tokens_served, tokens_saved, read_backs, read_at)
SELECT $1, l.key, w.views, w.served, greatest(w.views * l.total_tokens - w.served, 0), w.read_backs,
       CASE WHEN w.views + w.read_backs > 0 THEN now() ELSE 'epoch' END
  FROM locked l
  JOIN wanted w ON w.session = l.id
 ORDER BY l.key
ON CONFLICT (tenant_id, session_key) DO UPDATE
   SET views = u.views + excluded.views,
       tokens_served = u.tokens_served + excluded.tokens_served,
       tokens_saved = u.tokens_saved + excluded.tokens_saved,
       read_backs = u.read_backs + excluded.read_backs,
       read_at = CASE WHEN excluded.read_at > u.read_at + interval '1 hour' THEN excluded.read_at ELSE u.read_at END
