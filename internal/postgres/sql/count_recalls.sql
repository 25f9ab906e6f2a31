-- Adds to the counts of what was read back of a tenant's sessions, $2 to $9 by column, and says what had taken it out.
-- The sessions are locked before anything is written, in the order of their keys: a session that is being erased is
-- waited for, and has no row then.
WITH RECURSIVE wanted AS (
    SELECT *
      FROM unnest($2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::int[], $7::text[], $8::bigint[],
                  $9::timestamptz[])
      WITH ORDINALITY AS w (session, ref, first, last, part, via, reads, read_at, i)
), locked AS (
    SELECT s.key, s.id, s.checkpoint_n
      FROM sessions s
     WHERE s.tenant_id = $1
       AND s.id IN (SELECT session FROM wanted)
     ORDER BY s.key
       FOR KEY SHARE
), lineage AS (
    SELECT l.key, c.n, c.base_n, c.manifest, 1 AS depth
      FROM locked l
      JOIN checkpoints c ON c.tenant_id = $1 AND c.session_key = l.key AND c.n = l.checkpoint_n
    UNION ALL
    SELECT l.key, c.n, c.base_n, c.manifest, l.depth + 1
      FROM lineage l
      JOIN checkpoints c ON c.tenant_id = $1 AND c.session_key = l.key AND c.n = l.base_n
     WHERE l.depth < {depth}
), entries AS MATERIALIZED (
    SELECT l.key, l.n, e.seq, greatest(e.seq, e.last_seq) AS last_seq, e.part < 0 OR e.last_seq > e.seq AS whole,
           coalesce(e.tool, '') AS tool, e."do" AS action, coalesce(e.rule, '') AS rule, e.ref,
           e.tokens_before - e.tokens_after AS tokens
      FROM lineage l
     CROSS JOIN LATERAL jsonb_to_recordset(l.manifest) AS e (seq bigint, last_seq bigint, part int, tool text, "do" text,
                                                             rule text, ref text, tokens_before bigint,
                                                             tokens_after bigint)
), attributed AS (
    SELECT DISTINCT ON (w.i)
           w.i, l.key, w.via, w.reads, w.read_at, coalesce(e.n, 0) AS n, coalesce(e.tool, r.tool_name, '') AS tool,
           coalesce(e.action, CASE WHEN w.first = 0 THEN '{uploaded}' ELSE '{in_view}' END) AS action,
           coalesce(e.rule, '') AS rule, coalesce(e.tokens, 0) AS tokens,
           CASE
           WHEN w.part >= 0 THEN w.ref
           WHEN e.n IS NULL THEN 'm' || w.first
           WHEN e.last_seq > e.seq THEN 'm' || e.seq || '-' || e.last_seq
           ELSE 'm' || e.seq
           END AS ref
      FROM wanted w
      JOIN locked l ON l.id = w.session
      LEFT JOIN entries e
        ON e.key = l.key
       AND (e.ref = w.ref OR e.whole AND e.seq <= w.last AND e.last_seq >= w.first)
      LEFT JOIN results r ON r.tenant_id = $1 AND r.session_key = l.key AND r.ref = w.ref
     ORDER BY w.i, e.n DESC NULLS LAST, e.seq
), counted AS (
    INSERT INTO recalls AS c (tenant_id, session_key, ref, checkpoint_n, via, tool, action, rule, tokens, reads,
                              first_read_at, last_read_at)
    SELECT $1, a.key, a.ref, a.n, a.via, min(a.tool), min(a.action), min(a.rule), min(a.tokens), sum(a.reads),
           min(a.read_at), max(a.read_at)
      FROM attributed a
     GROUP BY a.key, a.ref, a.n, a.via
    ON CONFLICT (tenant_id, session_key, ref, checkpoint_n, via) DO UPDATE
       SET reads = c.reads + excluded.reads,
           last_read_at = greatest(c.last_read_at, excluded.last_read_at)
)
SELECT a.action, a.rule, a.via, sum(a.reads)::bigint AS reads
  FROM attributed a
 GROUP BY a.action, a.rule, a.via
