-- What left a tenant's views in a time, by tool, action and rule, and how much of it was read back since. A part that
-- left twice in the same way counts once.
WITH left_parts AS (
    SELECT DISTINCT ON (c.session_key, e.seq, e.last_seq, e.part, tool, action, rule)
           c.session_key, coalesce(e.tool, '') AS tool, e."do" AS action, coalesce(e.rule, '') AS rule,
           e.tokens_before - e.tokens_after AS tokens
      FROM checkpoints c
     CROSS JOIN LATERAL jsonb_to_recordset(c.manifest) AS e (seq bigint, last_seq bigint, part int, tool text, "do" text,
                                                             rule text, tokens_before bigint, tokens_after bigint)
     WHERE c.tenant_id = $1 AND c.created_at >= $2 AND c.created_at < $3
     ORDER BY c.session_key, e.seq, e.last_seq, e.part, tool, action, rule, c.n DESC
), departed AS (
    SELECT tool, action, rule, count(*) AS parts, sum(tokens)::bigint AS tokens
      FROM left_parts
     GROUP BY tool, action, rule
), recalled AS (
    SELECT r.session_key, r.ref, r.tool, r.action, r.rule, sum(r.reads) AS reads, max(r.tokens) AS tokens
      FROM checkpoints c
      JOIN recalls r ON r.tenant_id = $1 AND r.session_key = c.session_key AND r.checkpoint_n = c.n
     WHERE c.tenant_id = $1 AND c.created_at >= $2 AND c.created_at < $3
     GROUP BY r.session_key, r.ref, r.tool, r.action, r.rule
), returned AS (
    SELECT tool, action, rule, count(*) AS parts, sum(reads)::bigint AS reads, sum(tokens)::bigint AS tokens
      FROM recalled
     GROUP BY tool, action, rule
)
SELECT d.tool, d.action, d.rule, d.parts, d.tokens, coalesce(b.parts, 0), coalesce(b.reads, 0), coalesce(b.tokens, 0)
  FROM departed d
  LEFT JOIN returned b USING (tool, action, rule)
 ORDER BY coalesce(b.parts, 0) DESC, d.parts DESC, d.tool, d.action, d.rule
 LIMIT $4
