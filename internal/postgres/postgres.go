// Package postgres holds the SQL of Varve's own tables: tenants, keys, policies, sessions, messages, checkpoints, runs
// and idempotency records. The SQL of results is in package persist, that of River's jobs in package queue, that of
// features in their folders. Every exported method of Store is one transaction.
//
// Long statements are files in sql. A name in braces there stands for a piece of SQL that Go puts in.
//
// Start at Store.Append (append.go), Store.View (view.go) and Store.CommitCheckpoint (commit.go). Every statement names
// its tenant first and runs behind the setting app.tenant_id, which row-level security compares with; that goes to the
// server with the statement or with the BEGIN, so row-level security costs no round trip.
package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/trace"
)

// Open connects with a login that serves: a member of AppRole that row-level security binds, and that cannot become a
// role that it does not bind. Errors: ErrLogin; ErrDatabase; ErrPooler.
func Open(ctx context.Context, dsn string, connections int) (*pgxpool.Pool, error) {
	return open(ctx, dsn, connections, checkServing(AppRole))
}

// OpenServingAdmin connects like Open, with a login that has the rights of AdminRole, for the routes of operators.
func OpenServingAdmin(ctx context.Context, dsn string, connections int) (*pgxpool.Pool, error) {
	return open(ctx, dsn, connections, checkServing(AdminRole))
}

// OpenAdmin connects for the operator's commands, with a login of AdminRole or the one that migrates.
// Errors: ErrLogin; ErrPooler.
func OpenAdmin(ctx context.Context, dsn string, connections int) (*pgxpool.Pool, error) {
	return open(ctx, dsn, connections, checkAdmin)
}

func open(
	ctx context.Context, dsn string, connections int, check func(context.Context, *pgx.Conn) error,
) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("database URL: %w", err)
	}
	if err := checkMode(config.ConnConfig); err != nil {
		return nil, err
	}
	config.ConnConfig.Tracer = trace.SQL()
	config.MaxConns = int32(connections)
	config.MinIdleConns = 1
	config.BeforeConnect = func(_ context.Context, conn *pgx.ConnConfig) error {
		readSecrets(dsn, conn)
		return nil
	}
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		inUTC(conn)
		withUUIDs(conn)
		return check(ctx, conn)
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	err = pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
		if err := checkDatabase(ctx, conn.Conn()); err != nil {
			return err
		}
		return checkStatements(ctx, conn.Conn())
	})
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("database: %w", pooled(err))
	}
	return pool, nil
}

// readSecrets reads the files of a database URL again, with the password and the certificates: they may have changed
// since the process began. Where one cannot be read, what it had remains.
func readSecrets(dsn string, conn *pgx.ConnConfig) {
	if config, err := pgxpool.ParseConfig(dsn); err == nil {
		conn.Password, conn.TLSConfig = config.ConnConfig.Password, config.ConnConfig.TLSConfig
		conn.Fallbacks = config.ConnConfig.Fallbacks
	}
}

// inUTC has a connection read times in UTC, which is how answers show them.
func inUTC(conn *pgx.Conn) {
	conn.TypeMap().RegisterType(&pgtype.Type{
		Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC},
	})
}

// Store is the database as the domain sees it, in a scope.
type Store struct {
	scope Scope
	*shared
}

// shared is what the Stores of all scopes have together.
type shared struct {
	pool   *pgxpool.Pool
	queue  *queue.Queue
	bodies *bodyCache[heldBody]
	plain  *bodyCache[plainBody]
	cap    IngestCap
	asked  *lru.Cache[checkpointID, struct{}] // damaged checkpoints that a compaction was asked for

	groups *groups // of appends

	results   persist.Stores
	retention Retention
	followers []Follower
}

// New returns a Store on pool that inserts jobs into a queue and caps results at ingestion; a nil ingestCap caps
// nothing.
func New(pool *pgxpool.Pool, jobs *queue.Queue, ingestCap IngestCap) *Store {
	asked, _ := lru.New[checkpointID, struct{}](rememberedDamages) // its only error is a size of 0
	return &Store{shared: &shared{
		pool: pool, queue: jobs, cap: ingestCap, asked: asked, retention: DefaultRetention,
		bodies: newBodyCache(cachedBodies, (*heldBody).size),
		plain:  newBodyCache(cachedPlain, (*plainBody).size),
		groups: newGroups(groupLimitsOf(int(pool.Config().MaxConns))),
	}}
}

// Close closes the store's connections.
func (s *Store) Close() { s.pool.Close() }

// Pool returns the pool that the store uses.
func (s *Store) Pool() *pgxpool.Pool { return s.pool }

// setTenant limits what a transaction sees to one tenant: the row policies compare rows with this setting.
const setTenant = `SELECT set_config('app.tenant_id', $1, true)`

// InTenant runs do in one transaction that sees this tenant only, which is set in the round trip that begins it. A
// query sets it, not SET LOCAL: before PostgreSQL 18, pg_stat_statements keeps a row for each value of a SET
// (https://www.postgresql.org/docs/18/release-18.html), which would be one for each tenant.
func InTenant(
	ctx context.Context, pool *pgxpool.Pool, tenant uuid.UUID, options pgx.TxOptions, do func(tx pgx.Tx) error,
) error {
	begin := "BEGIN"
	if options.IsoLevel != "" {
		begin += " ISOLATION LEVEL " + string(options.IsoLevel)
	}
	if options.AccessMode != "" {
		begin += " " + string(options.AccessMode)
	}
	options.BeginQuery = begin + "; SELECT set_config('app.tenant_id', '" + tenant.String() + "', true)"
	return pgx.BeginTxFunc(ctx, pool, options, do)
}

func (s *Store) transaction(
	ctx context.Context, tenant uuid.UUID, options pgx.TxOptions, do func(tx pgx.Tx) error,
) error {
	if s.scope.outer != nil {
		return s.within(ctx, tenant, do)
	}
	turn, err := s.scope.Gate.Acquire(ctx, s.scope.Class, tenant)
	if err != nil {
		return err
	}
	defer turn.Done()
	run := func() error {
		return InTenant(ctx, s.pool, tenant, options, func(tx pgx.Tx) error {
			if s.scope.sees != Served {
				if err := Exec(ctx, tx, seeMore, s.scope.sees); err != nil {
					return err
				}
			}
			return do(tx)
		})
	}
	if s.scope.once || options != (pgx.TxOptions{}) { // what only reads may have handed rows over
		return run()
	}
	return again(run)
}

// tries is how often a transaction is tried that PostgreSQL ends in favour of others.
const tries = 4

// again runs what PostgreSQL may undo because of others, in a deadlock or because it cannot put it in an order, until
// that does not happen. It must be a transaction whose Go code can run again.
func again(run func() error) (err error) {
	for range tries {
		if err = run(); !hasCode(err, "40P01", "40001") { // deadlock_detected, serialization_failure
			return err
		}
	}
	return err
}

// query runs one statement that sees this tenant only, in one round trip, and hands its rows to read.
func (s *Store) query(
	ctx context.Context, tenant uuid.UUID, sql string, args []any, read func(rows pgx.Rows) error,
) error {
	if s.scope.outer != nil {
		return s.within(ctx, tenant, func(tx pgx.Tx) error {
			batch := &pgx.Batch{}
			batch.Queue(sql, args...)
			return readResult(tx.SendBatch(ctx, batch), read)
		})
	}
	turn, err := s.scope.Gate.Acquire(ctx, s.scope.Class, tenant)
	if err != nil {
		return err
	}
	defer turn.Done()
	return again(func() error { return s.queryOnce(ctx, tenant, sql, args, read) })
}

func (s *Store) queryOnce(
	ctx context.Context, tenant uuid.UUID, sql string, args []any, read func(rows pgx.Rows) error,
) error {
	batch := &pgx.Batch{}
	batch.Queue(setTenant, tenant.String())
	if s.scope.sees != Served {
		batch.Queue(seeMore, s.scope.sees)
	}
	batch.Queue(sql, args...)
	results := s.pool.SendBatch(ctx, batch)
	defer results.Close()
	for range batch.Len() - 1 {
		if _, err := results.Exec(); err != nil {
			return err
		}
	}
	return readResult(results, read)
}

// readResult hands the rows of the last statement of a batch to read, and ends the batch.
func readResult(results pgx.BatchResults, read func(rows pgx.Rows) error) error {
	rows, err := results.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	if err := read(rows); err != nil {
		return err
	}
	rows.Close()
	if err := rows.Err(); err != nil {
		return err
	}
	return results.Close()
}

// QueryRows runs one statement that sees this tenant only, in one round trip, and returns its rows.
func QueryRows[T any](
	ctx context.Context, s *Store, tenant uuid.UUID, scan pgx.RowToFunc[T], sql string, args ...any,
) (found []T, err error) {
	err = s.query(ctx, tenant, sql, args, func(rows pgx.Rows) (err error) {
		found, err = pgx.CollectRows(rows, scan)
		return err
	})
	return found, err
}

// QueryRow runs one statement like QueryRows and returns its only row; no row is ErrNotFound.
func QueryRow[T any](
	ctx context.Context, s *Store, tenant uuid.UUID, scan pgx.RowToFunc[T], sql string, args ...any,
) (found T, err error) {
	err = s.query(ctx, tenant, sql, args, func(rows pgx.Rows) (err error) {
		found, err = pgx.CollectExactlyOneRow(rows, scan)
		return NotFound(err)
	})
	return found, err
}

// EachOf calls do with every id that a statement finds for a tenant, $1, and adds up what it returns.
func EachOf(
	ctx context.Context, s *Store, tenant uuid.UUID, sql string, do func(id uuid.UUID) (int, error),
) (sum int, err error) {
	ids, err := QueryRows(ctx, s, tenant, pgx.RowTo[uuid.UUID], sql, tenant)
	if err != nil {
		return 0, err
	}
	for _, id := range ids {
		n, err := do(id)
		sum += n
		if err != nil {
			return sum, err
		}
	}
	return sum, nil
}

//go:embed sql/*.sql
var statements embed.FS

// statement returns a long statement, which is a file. replacements are pairs of a name in it and what it stands for.
func statement(name string, replacements ...string) string {
	text, err := statements.ReadFile("sql/" + name + ".sql")
	if err != nil {
		panic(err)
	}
	return strings.NewReplacer(replacements...).Replace(string(text))
}

// RowsIn runs one statement in a transaction and returns its rows.
func RowsIn[T any](ctx context.Context, tx pgx.Tx, scan pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
}

// RowIn runs one statement in a transaction and returns its only row; no row is ErrNotFound.
func RowIn[T any](ctx context.Context, tx pgx.Tx, scan pgx.RowToFunc[T], sql string, args ...any) (found T, err error) {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return found, err
	}
	found, err = pgx.CollectExactlyOneRow(rows, scan)
	return found, NotFound(err)
}

// NewestFirst returns the end of a statement that reads a page of a tenant's rows, newest first: $1 is the tenant, and
// PageArgs are all its arguments. The comparison must stand alone: with an OR around it, the index would be read from
// its beginning.
func NewestFirst(created, id string) string {
	return `
		   AND (` + created + `, ` + id + `) < ($2, $3)
		 ORDER BY ` + created + ` DESC, ` + id + ` DESC
		 LIMIT $4`
}

// PageArgs returns the arguments of a statement that NewestFirst ends.
func PageArgs(tenant uuid.UUID, page session.Page) []any {
	if page.Time.IsZero() { // the beginning of the list
		return []any{tenant, pgtype.Timestamptz{InfinityModifier: pgtype.Infinity, Valid: true}, uuid.Max, page.Limit}
	}
	return []any{tenant, page.Time, page.ID, page.Limit}
}

// InTenant runs do in one transaction that sees this tenant only.
func (s *Store) InTenant(ctx context.Context, tenant uuid.UUID, do func(tx pgx.Tx) error) error {
	return s.transaction(ctx, tenant, pgx.TxOptions{}, do)
}

// inSnapshot runs do like InTenant, in a transaction whose statements all read the same moment.
func (s *Store) inSnapshot(ctx context.Context, tenant uuid.UUID, do func(tx pgx.Tx) error) error {
	return s.transaction(ctx, tenant, snapshotOptions, do)
}

var snapshotOptions = pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}

// InTx runs do in one transaction that sees this tenant only, and returns its value.
func InTx[T any](ctx context.Context, s *Store, tenant uuid.UUID, do func(tx pgx.Tx) (T, error)) (found T, err error) {
	err = s.InTenant(ctx, tenant, func(tx pgx.Tx) error {
		found, err = do(tx)
		return err
	})
	return found, err
}

// ReadTx runs do in one transaction that only reads, and whose statements all read the same moment.
func ReadTx[T any](
	ctx context.Context, s *Store, tenant uuid.UUID, do func(tx pgx.Tx) (T, error),
) (found T, err error) {
	err = s.inSnapshot(ctx, tenant, func(tx pgx.Tx) error {
		found, err = do(tx)
		return err
	})
	return found, err
}

// InSession runs do like ReadTx, with the key of a session; ErrNotFound.
func InSession[T any](
	ctx context.Context, s *Store, at session.Address, do func(tx pgx.Tx, key session.Key) (T, error),
) (T, error) {
	return ReadTx(ctx, s, at.Tenant, func(tx pgx.Tx) (T, error) { return doInSession(ctx, tx, at, do) })
}

// ChangeInSession runs do like InSession, in a transaction that may write.
func ChangeInSession[T any](
	ctx context.Context, s *Store, at session.Address, do func(tx pgx.Tx, key session.Key) (T, error),
) (T, error) {
	return InTx(ctx, s, at.Tenant, func(tx pgx.Tx) (T, error) { return doInSession(ctx, tx, at, do) })
}

func doInSession[T any](
	ctx context.Context, tx pgx.Tx, at session.Address, do func(tx pgx.Tx, key session.Key) (T, error),
) (found T, err error) {
	key, err := sessionKey(ctx, tx, at)
	if err != nil {
		return found, err
	}
	return do(tx, session.Key{Tenant: at.Tenant, Key: key})
}

// Exec runs a statement whose result is not needed.
func Exec(ctx context.Context, tx pgx.Tx, sql string, args ...any) error {
	_, err := tx.Exec(ctx, sql, args...)
	return err
}

// ExecOne runs a statement that must find a row; missing is the error if there is none.
func ExecOne(ctx context.Context, tx pgx.Tx, missing error, sql string, args ...any) error {
	tag, err := tx.Exec(ctx, sql, args...)
	if err == nil && tag.RowsAffected() == 0 {
		err = missing
	}
	return err
}

// one reads exactly one row; no row is ErrNotFound.
func one(dest ...any) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		if !rows.Next() {
			if err := rows.Err(); err != nil {
				return err
			}
			return session.ErrNotFound
		}
		return rows.Scan(dest...)
	}
}

// NotFound returns ErrNotFound for no row, and any other error as it is.
func NotFound(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return session.ErrNotFound
	}
	return err
}

// Violates reports whether err is that a unique constraint or index of this name is violated.
func Violates(err error, constraint string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "23505" && pg.ConstraintName == constraint
}
