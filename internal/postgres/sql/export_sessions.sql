-- $1 tenant  $2, $3 the created_at and key of the last session before  $4 limit  $5… of the conditions
SELECT {columns}(true{conditions}) IS NOT TRUE
  FROM (SELECT *
          FROM sessions
         WHERE tenant_id = $1
           AND (created_at, key) > (CASE WHEN $3 = '00000000-0000-0000-0000-000000000000'::uuid
                                         THEN '-infinity' ELSE $2::timestamptz END, $3)
         ORDER BY created_at, key
         LIMIT $4) s{policy}
 ORDER BY s.created_at, s.key
