-- The outcomes of an import's lines from @from on, only those of @outcome unless that is ''. A row of import_lines
-- records up to @max_lines lines with the same outcome.
SELECT l.n + k, l.line + k, l.outcome,
       (SELECT s.id
          FROM sessions s
         WHERE s.tenant_id = @tenant AND s.key = l.session_key),
       l.seq + k, l.detail
  FROM import_lines l,
       generate_series(0, l.lines - 1) k
 WHERE l.tenant_id = @tenant
   AND l.import_id = @import
   AND l.n > @from::bigint - @max_lines::bigint
   AND l.n + k >= @from
   AND (@outcome::text = '' OR l.outcome = @outcome)
 ORDER BY l.n, k
 LIMIT @limit
