-- Why a login must not serve, a row for each reason, with the SQL that mends it ('' where only another login does). $1 is
-- the role whose rights it needs, $2 the login, null for that of this session. Every login may make large objects,
-- default privileges and, unless that is revoked, temporary objects: were it refused for those, one session of it could
-- keep all others out.
WITH RECURSIVE login AS (
    SELECT coalesce($2::text, session_user::text) AS name
), held AS (
    SELECT r.oid
      FROM pg_roles r
     WHERE r.rolname = (TABLE login)
     UNION
    SELECT m.roleid
      FROM pg_auth_members m
      JOIN held ON held.oid = m.member
), roles AS (
    SELECT r.*,
           r.rolname = (TABLE login) AS self,
           CASE WHEN r.rolname = (TABLE login) THEN 'it' ELSE format('role %I, of which it is a member,', r.rolname) END AS who,
           CASE WHEN r.rolname = (TABLE login) THEN '' ELSE format('REVOKE %I FROM %I', r.rolname, (TABLE login)) END AS leave
      FROM pg_roles r
      JOIN held USING (oid)
), here AS (
    SELECT oid
      FROM pg_database
     WHERE datname = current_database()
)
SELECT who || ' is a superuser', leave
  FROM roles
 WHERE rolsuper
 UNION ALL
SELECT who || ' has BYPASSRLS', CASE WHEN self THEN format('ALTER ROLE %I NOBYPASSRLS', (TABLE login)) ELSE leave END
  FROM roles
 WHERE rolbypassrls AND NOT rolsuper
 UNION ALL
SELECT who || ' may create roles', CASE WHEN self THEN format('ALTER ROLE %I NOCREATEROLE', (TABLE login)) ELSE leave END
  FROM roles
 WHERE rolcreaterole AND NOT rolsuper
 UNION ALL
SELECT who || ' may read the whole server by replication',
       CASE WHEN self THEN format('ALTER ROLE %I NOREPLICATION', (TABLE login)) ELSE leave END
  FROM roles
 WHERE rolreplication AND NOT rolsuper
 UNION ALL
SELECT who || ' reaches the server''s files or programs', leave
  FROM roles
 WHERE rolname IN ('pg_execute_server_program', 'pg_read_server_files', 'pg_write_server_files')
 UNION ALL
SELECT who || ' sees all tenants', leave
  FROM roles
 WHERE rolname = 'varve_backup' AND $1::text <> 'varve_backup'
 UNION ALL
SELECT who || ' owns parts of this database', leave
  FROM roles r
 WHERE EXISTS (
       SELECT
         FROM pg_shdepend d
        WHERE d.refclassid = 'pg_authid'::regclass
          AND d.refobjid = r.oid
          AND d.deptype = 'o'
          AND d.classid NOT IN ('pg_largeobject'::regclass, 'pg_default_acl'::regclass)
          AND coalesce((pg_identify_object(d.classid, d.objid, 0)).schema, '') NOT LIKE 'pg_temp%'
          AND (d.dbid = (SELECT oid FROM here)
               OR d.classid = 'pg_database'::regclass AND d.objid = (SELECT oid FROM here)))
 UNION ALL
SELECT format('it may make others members of role %I', r.rolname),
       format('REVOKE ADMIN OPTION FOR %I FROM %s', r.rolname, m.member::regrole)
  FROM pg_auth_members m
  JOIN held ON held.oid = m.member
  JOIN pg_roles r ON r.oid = m.roleid
 WHERE m.admin_option
 UNION ALL
SELECT format('it becomes role %I when it connects', current_user), format('ALTER ROLE %I RESET role', (TABLE login))
 WHERE $2::text IS NULL AND current_user <> session_user
 UNION ALL
SELECT format('it does not have the rights of role %I', $1::text),
       format(CASE WHEN current_setting('server_version_num')::int < 160000 THEN 'GRANT %I TO %I; ALTER ROLE %2$I INHERIT'
                   ELSE 'GRANT %I TO %I WITH INHERIT TRUE' -- since 16 it is a matter of each grant
              END, $1::text, (TABLE login))
 WHERE NOT coalesce((SELECT pg_has_role((TABLE login)::name, oid, 'USAGE') FROM pg_roles WHERE rolname = $1::text), false)
