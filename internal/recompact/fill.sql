-- Adds those of the next @batch sessions after @cursor among which the filter finds some that it does find and that are
-- not younger than the recompaction. Returns how many were examined and found, and the last one.
WITH looked AS (
	SELECT s.key, s.created_at <= @created_at AND {filter} AS matches
	  FROM sessions s
	 WHERE s.tenant_id = @tenant AND s.key > @cursor AND (@sessions::text[] IS NULL OR s.id = ANY (@sessions))
	   AND {paired}
	 ORDER BY s.key
	 LIMIT @batch
), found AS (
	INSERT INTO recompaction_sessions (tenant_id, recompaction_id, session_key)
	SELECT @tenant, @id, key
	  FROM looked
	 WHERE matches
	RETURNING 1
)
SELECT count(*), (SELECT count(*) FROM found), (array_agg(key ORDER BY key DESC))[1]
  FROM looked
