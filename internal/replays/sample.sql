-- Takes the sample of a replay: @sample of the sessions that the filter finds, that are not younger than the replay, and
-- whose log reaches the share of a window at which anything is compacted. The seed decides which ones: the same seed
-- and sessions give the same sample. Counts what was found, what is too short, and what was taken.
WITH found AS (
	SELECT s.key, s.last_seq, greatest(s.window_tokens - s.overhead_tokens, 1) AS own, s.total_tokens
	  FROM sessions s
	 WHERE s.tenant_id = @tenant AND s.created_at <= @created_at
	   AND {paired}
	   AND {filter}
), long AS (
	SELECT key, last_seq, own, md5(@seed::bigint || ' ' || key) AS lot
	  FROM found
	 WHERE total_tokens > 0 AND total_tokens >= @share::float8 * coalesce(@smallest::int, own)
), taken AS (
	INSERT INTO replay_sessions (tenant_id, replay_id, session_key, place, last_seq, window_tokens)
	SELECT @tenant, @id, key, row_number() OVER (ORDER BY lot, key), last_seq, own
	  FROM (SELECT * FROM long ORDER BY lot, key LIMIT @sample) l
	RETURNING 1
)
UPDATE replays
   SET matched = (SELECT count(*) FROM found),
       too_short = (SELECT count(*) FROM found) - (SELECT count(*) FROM long),
       total = (SELECT count(*) FROM taken),
       state = 'running', started_at = now()
 WHERE tenant_id = @tenant AND id = @id AND state = 'queued'
