-- What runs under version @version of a tenant's policy did from @from to @to, NULL for until now, in sessions without a
-- policy of their own: what each has written down, and what was read back of what its checkpoint took out.
WITH runs_of AS MATERIALIZED (
	SELECT r.id, r.session_key, r.state = 'done' AS done, r.checkpoint_n, r.tokens_before, r.tokens_after, r.stages,
	       r.failures
	  FROM runs r
	 WHERE r.tenant_id = @tenant AND r.tenant_version = @version AND r.session_version = 0
	   AND (r.finished_at >= @from AND (@to::timestamptz IS NULL OR r.finished_at <= @to)
	        OR r.finished_at IS NULL AND @to IS NULL)
), done AS MATERIALIZED (
	SELECT *
	  FROM runs_of
	 WHERE done AND checkpoint_n IS NOT NULL
), staged AS (
	SELECT e.stage, sum(e.actions) AS actions, sum(e.tokens_saved) AS tokens_saved
	  FROM done d
	 CROSS JOIN LATERAL jsonb_to_recordset(d.stages) AS e (stage text, actions bigint, tokens_saved bigint)
	 WHERE e.actions > 0
	 GROUP BY e.stage
), summed AS (
	SELECT count(*) AS answered, sum((m.provenance #>> '{spent,calls}')::bigint) AS calls,
	       sum((m.provenance #>> '{spent,input_tokens}')::bigint) AS input,
	       sum((m.provenance #>> '{spent,output_tokens}')::bigint) AS output,
	       sum((m.provenance #>> '{spent,cost_micros}')::bigint) AS cost
	  FROM done d
	  JOIN summaries m ON m.tenant_id = @tenant AND m.session_key = d.session_key AND m.checkpoint_n = d.checkpoint_n
	 WHERE m.provenance IS NOT NULL
), parts AS (
	SELECT sum(c.reads) AS reads, max(c.tokens) AS tokens
	  FROM done d
	  JOIN recalls c ON c.tenant_id = @tenant AND c.session_key = d.session_key AND c.checkpoint_n = d.checkpoint_n
	 GROUP BY c.session_key, c.checkpoint_n, c.ref
)
SELECT (SELECT count(DISTINCT session_key) FROM runs_of WHERE done AND checkpoint_n IS NOT NULL OR failures > 0),
       count(*), coalesce(sum(tokens_before), 0)::bigint, coalesce(sum(tokens_after), 0)::bigint,
       coalesce(sum(tokens_before - tokens_after), 0)::bigint,
       (SELECT coalesce(jsonb_agg(jsonb_build_object('stage', stage, 'actions', actions, 'tokens_saved', tokens_saved)
                                  ORDER BY tokens_saved DESC, stage), '[]')
          FROM staged),
       (SELECT coalesce(sum(failures), 0)::bigint FROM runs_of),
       (SELECT count(*)
          FROM runs_of r
          JOIN session_failures f ON f.tenant_id = @tenant AND f.session_key = r.session_key AND f.run_id = r.id
         WHERE f.quarantined_at IS NOT NULL),
       (SELECT answered FROM summed), (SELECT coalesce(calls, 0)::bigint FROM summed),
       (SELECT coalesce(input, 0)::bigint FROM summed), (SELECT coalesce(output, 0)::bigint FROM summed),
       (SELECT coalesce(cost, 0)::bigint FROM summed),
       (SELECT count(*) FROM parts), (SELECT coalesce(sum(reads), 0)::bigint FROM parts),
       (SELECT coalesce(sum(tokens), 0)::bigint FROM parts)
  FROM done
