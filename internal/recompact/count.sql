-- The size of what a filter finds, and @sample of the sessions, evenly by age: they are counted first, so that the
-- sample needs no list of all.
WITH counted AS MATERIALIZED (
	SELECT count(*) AS many, coalesce(sum(last_seq), 0) AS messages, coalesce(sum(total_tokens), 0) AS total_tokens,
	       coalesce(sum(context_tokens), 0) AS context_tokens
	  FROM sessions s
	 WHERE s.tenant_id = @tenant
	   AND {paired}
	   AND {filter}
), sampled AS (
	SELECT f.key, f.id
	  FROM counted c,
	       (SELECT s.key, s.id, row_number() OVER (ORDER BY s.key) - 1 AS place
	          FROM sessions s
	         WHERE s.tenant_id = @tenant
	           AND {paired}
	           AND {filter}) f
	 WHERE f.place = 0 OR f.place * @sample / c.many > (f.place - 1) * @sample / c.many
)
SELECT many, messages, total_tokens, context_tokens,
       (SELECT coalesce(array_agg(key ORDER BY key), '{}') FROM sampled),
       (SELECT coalesce(array_agg(id ORDER BY key), '{}') FROM sampled)
  FROM counted
