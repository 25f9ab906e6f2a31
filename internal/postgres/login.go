package postgres

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/varve-dev/varve/migrations"
)

// The roles that logins are members of. They cannot log in and own nothing; migrations/grants.sql has their rights. A
// worker has those of an app besides, and an admin those of a worker.
const (
	AppRole    = "varve_app"    // the API: its tenant's rows
	WorkerRole = "varve_worker" // the worker: all tenants and jobs besides
	AdminRole  = "varve_admin"  // the operator's commands: makes tenants and keys
	BackupRole = "varve_backup" // apart from these: reads all rows of all tenants, and writes none
)

// ErrLogin is wrapped where the login of the database URL must not serve, or lacks rights. Trying again does not help.
var ErrLogin = errors.New("this database login cannot be used")

// loginSettings are what every session of a serving login has. They belong to the login, by ALTER ROLE: what a client
// sets for itself does not stay with it behind a transaction pooler.
//
// The timeouts release a session's lock whose client is gone. Plans are generic: every statement uses a key, and a plan
// for the values of one call may rely on statistics that a new tenant does not have yet. They are not compiled: what a
// generic plan is thought to read is mostly far more than it reads, and compiling it takes a hundred times as long.
//
// An operator may give a login others where they do no harm. Below min, statements that work end, and waiting for a
// session's turn becomes an error at once; above max, a client that is gone holds up others for too long. Waiting for
// a lock must end before the statement does, whose end would not say why.
//
// The others are as PostgreSQL has them unless somebody changed that for a server or a database. With another encoding
// texts change on their way, and literals with escapes in strings; where row security is off, reads fail; a replica
// fires no triggers; transactions of another isolation fail that wait for a session's turn; and a session that was
// ended while it was idle fails the next request.
var loginSettings = []loginSetting{
	{name: "plan_cache_mode", value: "force_generic_plan"},
	{name: "jit", value: "off"},
	{name: "idle_in_transaction_session_timeout", value: "5000", min: 1_000, max: 60_000},
	{name: "lock_timeout", value: "3000", min: 100, max: 9_000},
	{name: "statement_timeout", value: "300000", min: 10_000, max: 3_600_000},
	{name: searchPath, all: true}, // its value is the schema of the URL; or another where that comes first
	{name: "client_encoding", value: "'UTF8'", all: true},
	{name: "standard_conforming_strings", value: "on", all: true},
	{name: "row_security", value: "on", all: true},
	{name: "session_replication_role", value: "origin", all: true, checked: true},
	{name: "default_transaction_isolation", value: "'read committed'"},
	{name: "idle_session_timeout", value: "0"},
	{name: "transaction_timeout", value: "0", checked: true},
}

// loginSetting is a setting of a login: what varve migrate --grant-to gives it and, of a timeout, the range in ms of
// what it may be.
type loginSetting struct {
	name, value string
	min, max    int
	all         bool // logins that do not serve need it, too
	checked     bool // and not given: it needs a superuser, or is not in every version of PostgreSQL
}

// settingsOfAll are the settings that every login needs.
var settingsOfAll = slices.DeleteFunc(slices.Clone(loginSettings), func(s loginSetting) bool { return !s.all })

var (
	loginSQL         = statement("login")
	loginSettingsSQL = statement("login_settings")
)

// querier is a connection or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// obstacle is a reason why a login cannot be used, with the SQL that mends it: ” where only another login does.
type obstacle struct{ Reason, Remedy string }

// rightsAge is how long a pool's login counts as checked. To look at all of its rights takes the server longer than 20
// appends, and they are the same for all connections; one that is open is never asked again.
const rightsAge = time.Minute

// checkServing returns a check of a pool's connections: an error unless the login has the rights of role, has its
// settings, and cannot get past row-level security, neither as the role that it is now nor as one that it could become.
func checkServing(role string) func(context.Context, *pgx.Conn) error {
	var checked atomic.Pointer[time.Time] // when the login was last found to have no obstacle
	return func(ctx context.Context, conn *pgx.Conn) error {
		wrong, err := wrongSettings(ctx, conn, loginSettings...)
		if err != nil {
			return err
		}
		var found []obstacle
		if last := checked.Load(); last == nil || time.Since(*last) > rightsAge {
			now := time.Now()
			if found, err = obstacles(ctx, conn, loginSQL, role, nil); err != nil {
				return err
			}
			if len(found) == 0 {
				checked.Store(&now)
			}
		}
		found = append(found, wrong...)
		if len(found) > 0 {
			if err := checkMade(ctx, conn); err != nil {
				return err
			}
		}
		return loginError(conn.Config().User, found)
	}
}

// checkMade returns an error if the database has no schema of Varve's yet: a login lacks what varve migrate gives it.
func checkMade(ctx context.Context, conn *pgx.Conn) error {
	var made bool
	err := conn.QueryRow(ctx, `
		SELECT EXISTS (
		       SELECT
		         FROM pg_class
		        WHERE relname = 'schema_migrations' AND relnamespace = to_regnamespace($1))`,
		schemaOf(conn.Config())).Scan(&made)
	if err != nil || made {
		return err
	}
	return checkSchema(ctx, conn)
}

// checkSettings returns an error if a setting of a login that need not serve does harm.
func checkSettings(ctx context.Context, conn *pgx.Conn) error {
	wrong, err := wrongSettings(ctx, conn, settingsOfAll...)
	if err != nil {
		return err
	}
	return refusal(ErrLogin, "login "+conn.Config().User, wrong)
}

// refusal returns nil if there is no obstacle, else an error that says what to run.
func refusal(kind error, what string, found []obstacle) error {
	if len(found) == 0 {
		return nil
	}
	var reasons, remedies []string
	for _, o := range found {
		reasons, remedies = append(reasons, o.Reason), append(remedies, "    "+o.Remedy+";")
	}
	return fmt.Errorf("%w: %s cannot be used, because %s: as an administrator of the server, run\n%s", kind, what,
		strings.Join(reasons, ", "), strings.Join(remedies, "\n"))
}

const searchPath = "search_path"

// oneSchema is a search_path of one schema, as VARVE_SCHEMA becomes one.
var oneSchema = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

// schemaOf returns the schema to which a database URL leads: that of its search_path, if it has but one, else public.
func schemaOf(config *pgx.ConnConfig) string {
	name := config.RuntimeParams[searchPath]
	if !oneSchema.MatchString(name) || strings.HasPrefix(name, "pg_") {
		return migrations.Schema
	}
	return name
}

// valueAt returns what a setting is to be in a session of a database URL, as SQL.
func (s loginSetting) valueAt(conn *pgx.Conn) string {
	if s.name == searchPath {
		return "'" + schemaOf(conn.Config()) + "'"
	}
	return s.value
}

// wrongSettings returns an obstacle for each setting of a session that does harm.
func wrongSettings(ctx context.Context, conn *pgx.Conn, settings ...loginSetting) ([]obstacle, error) {
	var names, values []string
	var mins, maxs []int
	for _, s := range settings {
		names, values = append(names, s.name), append(values, s.valueAt(conn))
		mins, maxs = append(mins, s.min), append(maxs, s.max)
	}
	return obstacles(ctx, conn, loginSettingsSQL, names, values, mins, maxs)
}

func obstacles(ctx context.Context, conn querier, sql string, args ...any) ([]obstacle, error) {
	rows, err := conn.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[obstacle])
}

// loginError returns nil if there is no obstacle, else an error that says what to do, once for each remedy.
func loginError(login string, found []obstacle) error {
	if len(found) == 0 {
		return nil
	}
	var reasons, remedies []string
	another := false
	for _, o := range found {
		reasons = append(reasons, o.Reason)
		if o.Remedy != "" {
			remedies = append(remedies, "    "+o.Remedy+";")
		}
		another = another || o.Remedy == ""
	}
	text := "as an administrator of the server, run\n" + strings.Join(remedies, "\n") +
		"\nor let varve migrate --grant-to " + login + " do it"
	if another {
		text = "let the login that migrates be another than the one that serves (docs/operations.md): run\n" +
			"    CREATE ROLE varve_api LOGIN PASSWORD '…';\n" +
			"then varve migrate --grant-to varve_api, and put that login into DATABASE_URL"
	}
	return fmt.Errorf("%w: login %s cannot serve, because %s: %s", ErrLogin, login, strings.Join(reasons, ", "), text)
}

// RequireWorker returns an error unless the login of a pool has the rights of WorkerRole: without them a worker would
// see no job and no tenant.
func RequireWorker(ctx context.Context, pool *pgxpool.Pool) error {
	var has bool
	login := pool.Config().ConnConfig.User
	err := pool.QueryRow(ctx, `
		SELECT pg_has_role(oid, 'USAGE')
		  FROM pg_roles
		 WHERE rolname = $1`, WorkerRole).Scan(&has)
	if err == nil && !has {
		err = fmt.Errorf("%w: login %s cannot run a worker, because it does not have the rights of role %s: "+
			"run varve migrate --grant-to %s:worker", ErrLogin, login, WorkerRole, login)
	}
	return err
}

// checkAdmin returns an error unless the login of a connection may do what the operator's commands do: it has the
// rights of AdminRole, or owns the tables.
func checkAdmin(ctx context.Context, conn *pgx.Conn) error {
	var may bool
	err := conn.QueryRow(ctx, `
		SELECT coalesce((SELECT pg_has_role(oid, 'USAGE') FROM pg_roles WHERE rolname = $1), false)
		       OR coalesce((
		          SELECT pg_has_role(relowner, 'USAGE')
		            FROM pg_class
		           WHERE oid = to_regclass('tenants')), true)`,
		AdminRole).Scan(&may)
	if err == nil && !may {
		login := conn.Config().User
		err = fmt.Errorf("%w: login %s has neither the rights of role %s nor owns the tables: use the login that "+
			"migrates, or run varve migrate --grant-to %s:admin", ErrLogin, login, AdminRole, login)
	}
	if err != nil {
		return err
	}
	return checkSettings(ctx, conn)
}

// RoleOf returns the role that the login of a connection serves in, "" for none. The login that migrates is an admin.
func RoleOf(ctx context.Context, conn *pgx.Conn) (role string, err error) {
	err = conn.QueryRow(ctx, `
		SELECT coalesce((SELECT ($1::text[])[1]
		                   FROM pg_class
		                  WHERE oid = to_regclass('tenants') AND pg_has_role(relowner, 'USAGE')),
		                (SELECT rolname
		                   FROM pg_roles
		                  WHERE rolname = ANY ($1) AND pg_has_role(oid, 'USAGE')
		                  ORDER BY array_position($1, rolname::text)
		                  LIMIT 1), '')`, []string{AdminRole, WorkerRole, AppRole, BackupRole}).Scan(&role)
	return role, err
}

// checkOwner returns an error unless the login of a connection may change the schema, or make it if there is none.
func checkOwner(ctx context.Context, conn *pgx.Conn) error {
	var owner string
	var may bool
	err := conn.QueryRow(ctx, `
		SELECT pg_get_userbyid(relowner), pg_has_role(relowner, 'USAGE')
		  FROM pg_class
		 WHERE oid = to_regclass('schema_migrations')`).Scan(&owner, &may)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return checkMaker(ctx, conn) // whoever makes the schema owns it
	case err == nil && !may:
		return fmt.Errorf("%w: login %s cannot migrate, because login %s owns the schema: use that one "+
			"(VARVE_OWNER_URL)", ErrLogin, conn.Config().User, owner)
	}
	return err
}

// checkMaker returns an error unless the login of a connection may make tables: that of an API or a worker may not.
func checkMaker(ctx context.Context, conn *pgx.Conn) error {
	var may bool
	name, login := schemaOf(conn.Config()), conn.Config().User
	err := conn.QueryRow(ctx, `SELECT has_schema_privilege($1::text, 'CREATE')`, name).Scan(&may)
	if err == nil && !may {
		err = fmt.Errorf("%w: login %s cannot migrate, because it may make no table in schema %s: use the login that "+
			"owns the database (VARVE_OWNER_URL), not one that serves, or GRANT CREATE ON SCHEMA %[3]s TO %[2]s",
			ErrLogin, login, name)
	}
	return err
}
