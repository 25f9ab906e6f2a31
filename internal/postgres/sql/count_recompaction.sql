-- The size of what a filter finds, and @sample of the sessions, evenly by age.
WITH found AS (
	SELECT s.key, s.id, s.last_seq, s.total_tokens, s.context_tokens,
	       row_number() OVER (ORDER BY s.key) - 1 AS place, count(*) OVER () AS many
	  FROM sessions s
	 WHERE s.tenant_id = @tenant
	   AND {filter}
), sampled AS (
	SELECT key, id
	  FROM found
	 WHERE place = 0 OR place * @sample / many > (place - 1) * @sample / many
)
SELECT count(*), coalesce(sum(last_seq), 0), coalesce(sum(total_tokens), 0), coalesce(sum(context_tokens), 0),
       (SELECT coalesce(array_agg(key ORDER BY key), '{}') FROM sampled),
       (SELECT coalesce(array_agg(id ORDER BY key), '{}') FROM sampled)
  FROM found
