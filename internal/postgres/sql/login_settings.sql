-- The settings of this session with which a login must not serve, with the SQL that mends them. $1 are their names, $2 the
-- values to set, $3 and $4 the range in milliseconds of a timeout. Of the schemas that are there, Varve's must come first.
SELECT CASE WHEN m.missing
            THEN format('there is no schema %s (varve migrate makes that of VARVE_SCHEMA)', w.value)
            WHEN s.unit = 'ms'
            THEN format('its setting %s is %s ms, which must be %s', s.name, s.setting,
                        CASE w.most WHEN 0 THEN '0' ELSE format('from %s to %s', w.least, w.most) END)
            ELSE format('its setting %s is %L', s.name, s.setting)
       END || CASE WHEN s.source = 'client' AND NOT m.missing THEN ', by the database URL, which must not have it,' ELSE '' END,
       CASE WHEN m.missing
            THEN format('CREATE SCHEMA %I', trim(BOTH '''' FROM w.value))
            ELSE format('ALTER ROLE %I IN DATABASE %I SET %s = %s', session_user, current_database(), s.name, w.value)
       END
  FROM unnest($1::text[], $2::text[], $3::int[], $4::int[]) w (name, value, least, most)
  JOIN pg_settings s USING (name)
 CROSS JOIN LATERAL (
       SELECT s.name = 'search_path' AND to_regnamespace(trim(BOTH '''' FROM w.value)) IS NULL AS missing) m
 WHERE CASE
       WHEN s.unit = 'ms' THEN s.setting::bigint NOT BETWEEN w.least AND w.most
       WHEN s.name = 'search_path' THEN (current_schemas(false))[1] IS DISTINCT FROM trim(BOTH '''' FROM w.value)
       ELSE s.setting <> trim(BOTH '''' FROM w.value)
       END
