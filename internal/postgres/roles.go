package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/migrations"
)

// Grant gives a login the rights of a role: AppRole, WorkerRole, AdminRole or BackupRole.
type Grant struct {
	Login string
	Role  string
	Make  bool // the login if there is none, without a password
}

// ErrNoLogin is wrapped where there is no such login.
var ErrNoLogin = errors.New("there is no such login on the server")

// GrantTo lets logins serve: it gives each the rights of its role and the settings that its sessions need. dsn is that
// of the login that migrates, or of an administrator.
//
// Errors: ErrNoLogin; ErrLogin if a login would still have to be refused when it serves.
func GrantTo(ctx context.Context, dsn string, grants ...Grant) error {
	return underMigrationLock(ctx, dsn, func(conn *pgx.Conn) error {
		for _, g := range grants {
			err := rolesInTx(ctx, conn, func(tx pgx.Tx) error { return g.apply(ctx, tx) })
			if hasCode(err, "42501") { // insufficient_privilege
				err = fmt.Errorf("%w\nas an administrator of the server, run\n    %s", err,
					strings.Join(g.statements(conn, nil), ";\n    ")+";")
			}
			if err != nil {
				return fmt.Errorf("login %s: %w", g.Login, err)
			}
		}
		return nil
	})
}

// statements returns the SQL that gives a login what it needs, but for the settings that are kept.
func (g Grant) statements(conn *pgx.Conn, kept map[string]bool) []string {
	login := pgx.Identifier{g.Login}.Sanitize()
	list := []string{`GRANT ` + g.Role + ` TO ` + login}
	for _, s := range loginSettings {
		in := ``
		if s.name == searchPath && schemaOf(conn.Config()) != migrations.Schema { // a database has it
			in = `IN DATABASE ` + pgx.Identifier{cmp.Or(conn.Config().Database, conn.Config().User)}.Sanitize() + ` `
		}
		if !s.checked && !kept[s.name] {
			list = append(list, `ALTER ROLE `+login+` `+in+`SET `+s.name+` = `+s.valueAt(conn))
		}
	}
	return list
}

// keptSettings returns the settings that an operator has given a login and that do no harm. Others that the login has
// in this database only, it takes away. search_path is tried out: the transaction has it then.
func (g Grant) keptSettings(ctx context.Context, tx pgx.Tx) (map[string]bool, error) {
	type given struct {
		Name, Value string
		Here        bool // in this database, where it precedes that of all
	}
	own, err := RowsIn(ctx, tx, pgx.RowToStructByPos[given], `
		SELECT split_part(c, '=', 1), substr(c, strpos(c, '=') + 1), s.setdatabase <> 0
		  FROM pg_db_role_setting s
		  JOIN pg_roles r ON r.oid = s.setrole
		  LEFT JOIN pg_database d ON d.oid = s.setdatabase
		 CROSS JOIN unnest(s.setconfig) c
		 WHERE r.rolname = $1 AND coalesce(d.datname = current_database(), true)
		 ORDER BY s.setdatabase -- those of all databases come first`, g.Login)
	if err != nil {
		return nil, err
	}
	kept := map[string]bool{}
	for _, o := range own {
		at := slices.IndexFunc(loginSettings, func(s loginSetting) bool { return s.name == o.Name })
		if at < 0 {
			continue
		}
		if kept[o.Name], err = loginSettings[at].keeps(ctx, tx, o.Value); err != nil {
			return nil, err
		}
		if o.Here && !kept[o.Name] && !loginSettings[at].checked {
			login, here := pgx.Identifier{g.Login}.Sanitize(), pgx.Identifier{tx.Conn().Config().Database}.Sanitize()
			if err := Exec(ctx, tx, `ALTER ROLE `+login+` IN DATABASE `+here+` RESET `+o.Name); err != nil {
				return nil, err
			}
		}
	}
	return kept, nil
}

// keeps reports whether a login may have the value, as ALTER ROLE was given it.
func (s loginSetting) keeps(ctx context.Context, tx pgx.Tx, value string) (bool, error) {
	if s.max > 0 {
		ms, ok := milliseconds(value)
		return ok && ms >= float64(s.min) && ms <= float64(s.max), nil
	}
	if s.name != searchPath {
		return value == strings.Trim(s.value, "'"), nil
	}
	if err := Exec(ctx, tx, `SELECT set_config($1, $2, true)`, s.name, value); err != nil {
		return false, err
	}
	wrong, err := wrongSettings(ctx, tx.Conn(), s)
	return len(wrong) == 0, err
}

// timeUnits are PostgreSQL's for times, in milliseconds.
var timeUnits = map[string]float64{
	"us": 0.001, "ms": 1, "": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000,
}

// milliseconds reads a timeout as PostgreSQL does, but for hexadecimal numbers and exponents: "5s", "300000",
// "1.5 min".
func milliseconds(value string) (ms float64, ok bool) {
	value = strings.TrimSpace(value)
	end := strings.LastIndexAny(value, "0123456789.") + 1
	number, err := strconv.ParseFloat(value[:end], 64)
	unit, known := timeUnits[strings.TrimSpace(value[end:])]
	return number * unit, known && err == nil
}

func (g Grant) apply(ctx context.Context, tx pgx.Tx) error {
	exists, err := roleExists(ctx, tx, g.Login)
	if err != nil {
		return err
	}
	login := pgx.Identifier{g.Login}.Sanitize()
	switch {
	case !exists && !g.Make:
		return fmt.Errorf("%w: make it with CREATE ROLE %s LOGIN PASSWORD '…'", ErrNoLogin, login)
	case !exists:
		if err := Exec(ctx, tx, `CREATE ROLE `+login+` LOGIN`); err != nil {
			return err
		}
	}
	kept, err := g.keptSettings(ctx, tx)
	if err != nil {
		return err
	}
	for _, sql := range g.statements(tx.Conn(), kept) {
		if err := Exec(ctx, tx, sql); err != nil {
			return err
		}
	}
	found, err := obstacles(ctx, tx, loginSQL, g.Role, g.Login)
	if err != nil {
		return err
	}
	return loginError(g.Login, found)
}

func roleExists(ctx context.Context, tx pgx.Tx, name string) (exists bool, err error) {
	err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)`, name).Scan(&exists)
	return exists, err
}

// createRoles makes the roles that logins are members of. Policies of migrations name them, so they come first.
func createRoles(ctx context.Context, conn *pgx.Conn) error {
	return rolesInTx(ctx, conn, func(tx pgx.Tx) error {
		before := ""
		for _, role := range []string{AppRole, WorkerRole, AdminRole} {
			if err := createRole(ctx, tx, role, before); err != nil {
				return err
			}
			before = role
		}
		return createRole(ctx, tx, BackupRole, "")
	})
}

// createRole makes a role with the rights of the one before it.
func createRole(ctx context.Context, tx pgx.Tx, role, before string) error {
	exists, err := roleExists(ctx, tx, role)
	if err != nil || exists {
		return err
	}
	sql := `CREATE ROLE ` + role + ` NOLOGIN NOSUPERUSER NOBYPASSRLS`
	if before != "" {
		sql += `; GRANT ` + before + ` TO ` + role
	}
	err = Exec(ctx, tx, sql)
	if hasCode(err, "42501") { // insufficient_privilege
		err = fmt.Errorf("role %s: %w: as an administrator of the server, run\n    %s;", role, err, sql)
	}
	return err
}

// grantRights gives the roles their rights on the tables.
func grantRights(ctx context.Context, conn *pgx.Conn) error {
	sql := migrations.In(schemaOf(conn.Config()), migrations.Grants)
	return rolesInTx(ctx, conn, func(tx pgx.Tx) error { return Exec(ctx, tx, sql) })
}

// rolesInTx runs do in a transaction. Roles belong to the server, and the migration lock to a database, so another
// database's migration may get in between: then do is tried again.
func rolesInTx(ctx context.Context, conn *pgx.Conn, do func(tx pgx.Tx) error) (err error) {
	for range lockAttempts {
		err = pgx.BeginFunc(ctx, conn, do)
		// duplicate_object, unique_violation, and "tuple concurrently updated", which has no code of its own
		if !hasCode(err, "42710", "23505", "XX000") {
			return err
		}
	}
	return err
}
