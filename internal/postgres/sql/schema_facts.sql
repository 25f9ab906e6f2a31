-- What the catalog says of our schema, a row for each thing. The parentheses are left out, which PostgreSQL's versions set
-- in different ways. Rights, the policy "backup" and the policy "worker" of three tables are not in it: grants.sql gives
-- them after each migration.
WITH ours AS (
    SELECT c.*
      FROM pg_class c
     WHERE c.relnamespace = 'public'::regnamespace
       AND c.relkind IN ('r', 'p')
       AND c.relname NOT IN ('schema_migrations', 'schema_fingerprints')
), fact AS (
    SELECT concat_ws(' ', 'table', relname,
                     CASE relpersistence WHEN 'u' THEN 'unlogged' END,
                     CASE WHEN relrowsecurity THEN 'row-security' END,
                     CASE WHEN relforcerowsecurity THEN 'forced' END) AS text
      FROM ours
     UNION ALL
    SELECT concat_ws(' ', 'column', o.relname, a.attname, format_type(a.atttypid, a.atttypmod),
                     CASE WHEN a.attnotnull THEN 'not-null' END,
                     CASE WHEN a.attgenerated = 's' THEN 'generated' WHEN d.oid IS NOT NULL THEN 'default' END,
                     CASE a.attidentity WHEN '' THEN NULL ELSE 'identity' END,
                     pg_get_expr(d.adbin, d.adrelid))
      FROM ours o
      JOIN pg_attribute a ON a.attrelid = o.oid AND a.attnum > 0 AND NOT a.attisdropped
      LEFT JOIN pg_attrdef d ON d.adrelid = o.oid AND d.adnum = a.attnum
     UNION ALL
    SELECT concat_ws(' ', 'constraint', o.relname, k.conname, pg_get_constraintdef(k.oid))
      FROM ours o
      JOIN pg_constraint k ON k.conrelid = o.oid AND k.contype IN ('p', 'u', 'f', 'c', 'x')
     UNION ALL
    SELECT concat_ws(' ', 'index', o.relname, i.indexrelid::regclass, CASE WHEN NOT i.indisvalid THEN 'invalid' END,
                     regexp_replace(pg_get_indexdef(i.indexrelid), '^CREATE (UNIQUE )?INDEX .* USING', '\1USING'))
      FROM ours o
      JOIN pg_index i ON i.indrelid = o.oid
     UNION ALL
    SELECT concat_ws(' ', 'trigger', o.relname, t.tgname, pg_get_triggerdef(t.oid))
      FROM ours o
      JOIN pg_trigger t ON t.tgrelid = o.oid AND NOT t.tgisinternal
     UNION ALL
    SELECT concat_ws(' ', 'policy', o.relname, p.polname, p.polcmd, CASE WHEN NOT p.polpermissive THEN 'restrictive' END,
                     (SELECT string_agg(r.rolname, ',' ORDER BY r.rolname) FROM pg_roles r WHERE r.oid = ANY (p.polroles)),
                     'using', pg_get_expr(p.polqual, p.polrelid), 'check', pg_get_expr(p.polwithcheck, p.polrelid))
      FROM ours o
      JOIN pg_policy p ON p.polrelid = o.oid
     WHERE p.polname <> 'backup'
       AND NOT (p.polname = 'worker' AND o.relname IN ('event_heads', 'webhook_turns', 'retention'))
     UNION ALL
    SELECT concat_ws(' ', 'enum', t.typname, string_agg(e.enumlabel, ',' ORDER BY e.enumsortorder))
      FROM pg_type t
      JOIN pg_enum e ON e.enumtypid = t.oid
     WHERE t.typnamespace = 'public'::regnamespace
     GROUP BY t.typname
     UNION ALL
    SELECT concat_ws(' ', 'function', p.proname, pg_get_function_identity_arguments(p.oid), md5(p.prosrc))
      FROM pg_proc p
     WHERE p.pronamespace = 'public'::regnamespace
)
SELECT regexp_replace(translate(text, '()', ''), '\s+', ' ', 'g')
  FROM fact
 ORDER BY text COLLATE "C"
