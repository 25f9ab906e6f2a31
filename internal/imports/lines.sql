-- The outcomes of an import's lines from @from on. A row of import_lines records consecutive lines with the same
-- outcome: the first one that is read is the last that does not begin behind @from. Of those with one outcome, {key}
-- begins with the outcome: {last} and {first} bound it, because with an equality the planner may read all lines.
SELECT l.n + k, l.line + k, l.outcome,
       (SELECT s.id
          FROM sessions s
         WHERE s.tenant_id = @tenant AND s.key = l.session_key),
       l.seq + k, l.detail
  FROM import_lines l,
       generate_series(0, l.lines - 1) k
 WHERE l.tenant_id = @tenant
   AND l.import_id = @import{last}
   AND ({key}) >= ({outcome}(SELECT coalesce(max(n), 0)
                      FROM (SELECT l.n
                              FROM import_lines l
                             WHERE l.tenant_id = @tenant
                               AND l.import_id = @import{first}
                               AND ({key}) <= ({outcome}@from::bigint)
                             ORDER BY {newest}
                             LIMIT 1) f))
   AND l.n + k >= @from
 ORDER BY {key}, k
 LIMIT @limit
