-- What is wrong with this database, a row for each reason, with the SQL that mends it. Of the versions of its collation, one
-- that PostgreSQL does not know is no reason: those of C and POSIX have none.
SELECT format('its encoding is %s, in which texts are refused or change, so the database URL must name another', pg_encoding_to_char(encoding)),
       format('CREATE DATABASE %I OWNER %s ENCODING ''UTF8'' LOCALE ''C'' TEMPLATE template0', datname || '_utf8',
              datdba::regrole)
  FROM pg_database
 WHERE datname = current_database() AND encoding <> pg_char_to_encoding('UTF8')
 UNION ALL
SELECT format('its indexes of texts were made with version %s of its collation, and the system has version %s, by which '
              'rows may not be found', datcollversion, pg_database_collation_actual_version(oid)),
       format('REINDEX DATABASE %I; ALTER DATABASE %1$I REFRESH COLLATION VERSION', datname)
  FROM pg_database
 WHERE datname = current_database() AND datcollversion <> pg_database_collation_actual_version(oid)
