//go:build unix

package embedded

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// ensureOwner makes the login that owns the database, and gives it what the superuser owns of it: in the clusters of
// 0.1.0 that is all of it. Nobody who gets to act as the owner of the schema is a superuser then.
func (s *Server) ensureOwner(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.DSN(Database))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, ownerSQL)
	return err
}

// ownerSQL goes object by object because REASSIGN OWNED refuses the objects of the cluster's first superuser. A table
// takes along its indexes, its row type, and the sequences that belong to its columns. From PostgreSQL 16 on, a login
// with CREATEROLE can only grant roles over which it has the ADMIN option.
const ownerSQL = `
DO $$
DECLARE
	statement text;
BEGIN
	IF NOT EXISTS (SELECT FROM pg_database WHERE datname = current_database() AND datdba = '` + User + `'::regrole) THEN
		RETURN;
	END IF;
	FOR statement IN
		SELECT format('ALTER %s %s OWNER TO ` + Owner + `',
		              CASE relkind WHEN 'S' THEN 'SEQUENCE' WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END, c.oid::regclass)
		  FROM pg_class c
		 WHERE relnamespace = 'public'::regnamespace
		   AND relkind IN ('r', 'p', 'v', 'S')
		   AND NOT EXISTS (SELECT FROM pg_depend
		                    WHERE classid = 'pg_class'::regclass
		                      AND objid = c.oid
		                      AND deptype IN ('a', 'i', 'e'))
		 UNION ALL
		SELECT format('ALTER ROUTINE %s OWNER TO ` + Owner + `', oid::regprocedure)
		  FROM pg_proc
		 WHERE pronamespace = 'public'::regnamespace
		 UNION ALL
		SELECT format('ALTER TYPE %s OWNER TO ` + Owner + `', oid::regtype)
		  FROM pg_type
		 WHERE typnamespace = 'public'::regnamespace
		   AND typtype IN ('e', 'd')
		 UNION ALL
		SELECT format('GRANT %I TO ` + Owner + ` WITH ADMIN TRUE, INHERIT FALSE, SET FALSE', rolname)
		  FROM pg_roles
		 WHERE rolname IN ('varve_app', 'varve_worker', 'varve_admin', 'varve_backup')
		   AND current_setting('server_version_num')::integer >= 160000
		 UNION ALL
		SELECT format('ALTER DATABASE %I OWNER TO ` + Owner + `', current_database())
	LOOP
		EXECUTE statement;
	END LOOP;
END
$$`
