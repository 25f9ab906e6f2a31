-- The settings of this session with which a login must not serve, with the SQL that mends them. $1 are their names, $2 the
-- values to set, $3 and $4 the range in milliseconds of a timeout. Of the schemas that are there, public must come first.
SELECT CASE WHEN s.unit = 'ms'
            THEN format('its setting %s is %s ms, which must be from %s to %s', s.name, s.setting, w.least, w.most)
            ELSE format('its setting %s is %L', s.name, s.setting)
       END,
       format('ALTER ROLE %I SET %s = %s', session_user, s.name, w.value)
  FROM unnest($1::text[], $2::text[], $3::int[], $4::int[]) w (name, value, least, most)
  JOIN pg_settings s USING (name)
 WHERE CASE
       WHEN s.unit = 'ms' THEN s.setting::bigint NOT BETWEEN w.least AND w.most
       WHEN s.name = 'search_path' THEN (current_schemas(false))[1] IS DISTINCT FROM 'public'
       ELSE s.setting <> w.value
       END
