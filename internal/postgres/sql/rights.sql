-- What a login lacks, a row for each right, with the SQL that gives it. $1 to $5 are the rights of the roles: the role, the
-- kind and the name of the object, the privilege, and the column, '' for all. $6 is the role that the login serves as, $7
-- how many connections its process needs. What is not there is not looked at.
SELECT format('it lacks %s on %s', wanted, object),
       format('GRANT %s ON %s %s TO %I', wanted, kind, object, role)
  FROM (SELECT role, kind, object, privilege, field,
               privilege || CASE field WHEN '' THEN '' ELSE format(' (%I)', field) END AS wanted
          FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) w (role, kind, object, privilege, field)
       ) w
 WHERE pg_has_role($6::text, role, 'USAGE')
   AND NOT CASE kind
           WHEN 'SCHEMA' THEN has_schema_privilege(object, privilege)
           WHEN 'FUNCTION' THEN has_function_privilege(to_regprocedure(object), privilege)
           WHEN 'SEQUENCE' THEN has_sequence_privilege(to_regclass(object), privilege)
           ELSE CASE field
                WHEN '' THEN has_table_privilege(to_regclass(object), privilege)
                ELSE has_column_privilege(to_regclass(object), field, privilege)
                END
           END
 UNION ALL
SELECT format('its connection limit is %s, and a process needs %s', rolconnlimit, $7::int),
       format('ALTER ROLE %I CONNECTION LIMIT %s', rolname, $7::int)
  FROM pg_roles
 WHERE rolname = session_user AND rolconnlimit BETWEEN 0 AND $7::int - 1
 UNION ALL
SELECT format('the connection limit of its database is %s, and a process needs %s', datconnlimit, $7::int),
       format('ALTER DATABASE %I CONNECTION LIMIT %s', datname, $7::int)
  FROM pg_database
 WHERE datname = current_database() AND datconnlimit BETWEEN 0 AND $7::int - 1
