package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	"github.com/jackc/pgx/v5"
)

// next returns the name of the file that is applied next, "" if there is none.
func (m *migrator) next() string {
	next, err := m.source.First()
	if have, _, versionErr := m.Version(); !errors.Is(versionErr, migrate.ErrNilVersion) {
		next, err = m.source.Next(have)
	}
	if err != nil {
		return ""
	}
	file, name, err := m.source.ReadUp(next)
	if err != nil {
		return ""
	}
	_ = file.Close() // nothing was read
	return fmt.Sprintf("%04d_%s", next, name)
}

// advice says what to do where a file fails, by SQLSTATE or its class.
var advice = []struct{ state, text string }{
	{"55P03", "let them end, or end them with SELECT pg_terminate_backend(…)"},
	{"42501", "the login lacks this right: an administrator gives it, or the login that owns the object migrates " +
		"(VARVE_OWNER_URL)"},
	{"42P07", inTheWay}, {"42701", inTheWay}, {"42710", inTheWay}, {"42723", inTheWay},
	{"53", "the server has too little disk, memory or connections"},
	{"57", "the server was stopped, or an administrator ended the session"},
	{"08", "the connection broke"},
}

const inTheWay = "something is in the way that Varve did not make: rename or drop it"

// failure returns what is wrong with a file, and what to do: golang-migrate's own error has the whole file in it.
func failure(name string, err error, holders []string) error {
	line, cause := driverFailure(err)
	place := ""
	if line > 1 { // PostgreSQL does not know the place of every error
		place = fmt.Sprintf(", line %d", line)
	}
	text := "this may be a bug, or a change of the schema that Varve did not make"
	for _, a := range advice {
		if hasClass(cause, a.state) {
			text = a.text
			break
		}
	}
	if isRefused(err) {
		text = fmt.Sprintf("in %d attempts of %s: its locks are held by %s: %s", lockAttempts+1, lockTimeout,
			strings.Join(holders, "; "), text)
	}
	return fmt.Errorf("%s%s: %w: %s; then run varve migrate again: nothing of this file was applied", name, place,
		cause, text)
}

// driverFailure returns the line and the cause of an error of golang-migrate's driver, which does not unwrap.
func driverFailure(err error) (line uint, cause error) {
	var byValue database.Error
	if errors.As(err, &byValue) {
		return byValue.Line, byValue.OrigErr
	}
	var byPointer *database.Error
	if errors.As(err, &byPointer) {
		return byPointer.Line, byPointer.OrigErr
	}
	return 0, err
}

// isRefused reports whether a file did not get its locks.
func isRefused(err error) bool {
	_, cause := driverFailure(err)
	return hasCode(cause, "55P03") // lock_not_available
}

// aSession is the SQL of a session h of pg_stat_activity for people. Of another login's, only some is shown to all.
const aSession = `format('session %s of login %s%s%s', h.pid, h.usename,
	       ' (' || nullif(h.application_name, '') || ')',
	       ', which has been in a transaction for ' || date_trunc('second', clock_timestamp() - h.xact_start))`

// whoIsInTheWay runs do, and returns who held up the session of a name when conn asked last.
func whoIsInTheWay(
	ctx context.Context, conn *pgx.Conn, session string, do func() error,
) (holders []string, err error) {
	done := make(chan error, 1)
	go func() { done <- do() }()
	ticker := time.NewTicker(lockPoll)
	defer ticker.Stop()
	for {
		select {
		case err := <-done:
			return holders, err
		case <-ticker.C:
		}
		found, err := holding(context.WithoutCancel(ctx), conn, `
			SELECT DISTINCT `+aSession+`
			  FROM pg_stat_activity w
			 CROSS JOIN unnest(pg_blocking_pids(w.pid)) b (pid)
			  JOIN pg_stat_activity h ON h.pid = b.pid
			 WHERE w.application_name = $1`, session)
		if err == nil && len(found) > 0 {
			holders = found
		}
	}
}

// migrating returns who holds the lock of migrations, to be put after a text, "" if that cannot be found out.
func migrating(ctx context.Context, dsn string) string {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return ""
	}
	defer conn.Close(context.WithoutCancel(ctx))
	found, err := holding(ctx, conn, `
		SELECT `+aSession+`
		  FROM pg_locks l
		  JOIN pg_database d ON d.oid = l.database AND d.datname = current_database()
		  JOIN pg_stat_activity h ON h.pid = l.pid
		 WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
		   AND l.classid = ($1::bigint >> 32)::oid AND l.objid = ($1::bigint & 4294967295)::oid`, int64(migrationLock))
	if err != nil || len(found) == 0 {
		return ""
	}
	return ", " + strings.Join(found, "; ")
}

func holding(ctx context.Context, conn *pgx.Conn, sql string, args ...any) ([]string, error) {
	rows, err := conn.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
