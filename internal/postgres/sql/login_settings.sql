-- The settings of this session that are not those of a login that serves, with the SQL that mends it. A timeout may be
-- any but none.
SELECT format('its setting %s is %L', s.name, s.setting), format('ALTER ROLE %I SET %s = %s', session_user, s.name, w.value)
  FROM unnest($1::text[], $2::text[]) w (name, value)
  JOIN pg_settings s USING (name)
 WHERE CASE WHEN s.unit = 'ms' THEN s.setting = '0' ELSE s.setting <> w.value END
