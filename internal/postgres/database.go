package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/migrations"
)

// ErrDatabase is wrapped where a database is not as it must be. Trying again does not help.
var ErrDatabase = errors.New("this database cannot be used")

var (
	databaseSQL = statement("database")
	rightsSQL   = statement("rights")
)

// checkDatabase returns an error unless texts are kept and found in a database as they must be. Errors: ErrDatabase.
func checkDatabase(ctx context.Context, conn *pgx.Conn) error {
	found, err := obstacles(ctx, conn, databaseSQL)
	if err != nil {
		return err
	}
	return refusal(ErrDatabase, "database "+conn.Config().Database, found)
}

// The major versions of PostgreSQL that the tests run on.
const (
	OldestServer = 15
	NewestServer = 18
)

// Server is what a server reports.
type Server struct {
	Version                     string
	Major                       int
	Bytes                       uint64 // of the database
	Connections, MaxConnections int    // of all clients
}

// ServerOf asks a server.
func ServerOf(ctx context.Context, conn *pgx.Conn) (of Server, err error) {
	err = conn.QueryRow(ctx, `
		SELECT current_setting('server_version'), current_setting('server_version_num')::int / 10000,
		       pg_database_size(current_database()),
		       (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
		       current_setting('max_connections')::int`).
		Scan(&of.Version, &of.Major, &of.Bytes, &of.Connections, &of.MaxConnections)
	return of, err
}

// CheckConnection returns an error if a connection of a login that need not serve cannot be used.
// Errors: ErrDatabase; ErrLogin.
func CheckConnection(ctx context.Context, conn *pgx.Conn) error {
	if err := checkDatabase(ctx, conn); err != nil {
		return err
	}
	return checkSettings(ctx, conn)
}

// beside is how many connections a process has besides those of its pool: one listens, one is asked by /readyz or shows
// that a worker lives.
const beside = 2

// CheckRights returns an error if the login lacks a right of its role, or connections. On the schema of another version
// it has others. Errors: ErrLogin.
func (s *Store) CheckRights(ctx context.Context, role string) error {
	have, want, err := schemaVersion(ctx, s.pool)
	if err != nil || have != want {
		return err
	}
	config, needs := s.pool.Config(), int32(0)
	var grantees, kinds, objects, privileges, columns []string
	for _, r := range migrations.Rights() {
		if r.Kind == "SCHEMA" {
			r.Object = schemaOf(config.ConnConfig)
		}
		grantees, kinds = append(grantees, r.Role), append(kinds, r.Kind)
		objects = append(objects, r.Object)
		privileges, columns = append(privileges, r.Privilege), append(columns, r.Column)
	}
	if role != AdminRole { // a command may do with less
		needs = config.MaxConns + beside
	}
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	found, err := obstacles(ctx, conn, rightsSQL, grantees, kinds, objects, privileges, columns, role, needs)
	if err != nil {
		return err
	}
	return loginError(config.ConnConfig.User, found)
}

// CheckWrites returns an error if the database takes no writes. Errors: ErrReadOnly.
func (s *Store) CheckWrites(ctx context.Context) error { return checkWrites(ctx, s.pool) }

func checkWrites(ctx context.Context, db rowQuerier) error {
	var readOnly bool
	err := db.QueryRow(ctx, `
		SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean`).Scan(&readOnly)
	if err == nil && readOnly {
		err = ErrReadOnly
	}
	return err
}

// unbound lets the statements and transactions of a connection take as long as they need.
func unbound(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `
		SELECT set_config(name, '0', false)
		  FROM pg_settings
		 WHERE name IN ('statement_timeout', 'idle_in_transaction_session_timeout', 'idle_session_timeout',
		                'transaction_timeout')`)
	if err != nil {
		err = fmt.Errorf("timeouts: %w", err)
	}
	return err
}
