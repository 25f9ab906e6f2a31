package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ErrPooler is wrapped where what is between a process and PostgreSQL does not fit. Trying again does not help: it says
// what to set.
var ErrPooler = errors.New("the way to the database does not fit")

// checkMode returns an error for a way to send statements with which those of this package do not work.
func checkMode(config *pgx.ConnConfig) error {
	switch config.DefaultQueryExecMode {
	case pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol:
		return fmt.Errorf("%w: default_query_exec_mode=%s cannot be used, because it sends values without the types "+
			"of the statement: use cache_describe behind a connection pooler, and leave it out else", ErrPooler,
			strings.ReplaceAll(config.DefaultQueryExecMode.String(), " ", "_"))
	}
	return nil
}

// checkStatements returns an error if prepared statements, which a connection would use, get lost in a pooler.
func checkStatements(ctx context.Context, conn *pgx.Conn) error {
	if conn.Config().DefaultQueryExecMode == pgx.QueryExecModeCacheDescribe {
		return nil // it needs none
	}
	way, err := findPooler(ctx, conn)
	if err == nil && way.forgets {
		err = fmt.Errorf("%w: a transaction pooler is in between, which gives a client another connection for each "+
			"transaction, without its prepared statements: add default_query_exec_mode=cache_describe to the "+
			"database URL", ErrPooler)
	}
	return err
}

// CheckDirect returns an error if a connection is not one connection of PostgreSQL for all of its life. what is what
// needs that. Errors: ErrPooler.
func CheckDirect(ctx context.Context, conn *pgx.Conn, what string) error {
	way, err := findPooler(ctx, conn)
	if err == nil && way.swaps {
		err = fmt.Errorf("%w: a transaction pooler is in between, and %s a connection that stays the same: use a URL "+
			"that leads to PostgreSQL itself", ErrPooler, what)
	}
	return err
}

// way is what was found between a client and PostgreSQL.
type way struct {
	swaps   bool // a client gets another connection of the server for each transaction
	forgets bool // and what it has prepared is not there
}

const (
	// probes is how often findPooler looks, in each of two ways, whether the connection is another one.
	probes = 3
	// probeTimeout bounds that: a pooler without another connection lets a client wait for long.
	probeTimeout = 3 * time.Second
)

// findPooler finds out whether a connection is swapped between transactions. PostgreSQL tells a client the number of
// its process when it connects, which a pooler does not know: where it is right, nothing more is asked.
func findPooler(ctx context.Context, conn *pgx.Conn) (way, error) {
	c := conn.PgConn()
	pid, err := c.Exec(ctx, `SELECT pg_backend_pid()`).ReadAll()
	if err != nil || len(pid) != 1 || string(pid[0].Rows[0][0]) == strconv.Itoa(int(c.PID())) {
		return way{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	found, err := lookForSwaps(ctx, conn)
	if errors.Is(err, context.DeadlineExceeded) {
		return way{}, nil // there is one connection only, which is nobody else's
	}
	return found, err
}

// lookForSwaps prepares a statement and looks whether it is there later, and on which connection: first as the
// connection is given, then while others hold transactions, for which the pooler may use the connection that waited
// last.
func lookForSwaps(ctx context.Context, conn *pgx.Conn) (way, error) {
	c := conn.PgConn()
	name := "varve_probe_" + rand.Text()
	if _, err := c.Prepare(ctx, name, `SELECT pg_backend_pid()`, nil); err != nil {
		return way{}, err
	}
	before := ""
	for n := range 2 * probes {
		if n >= probes {
			other, err := pgconn.ConnectConfig(ctx, &conn.Config().Config)
			if err != nil {
				return way{}, err
			}
			defer other.Close(context.WithoutCancel(ctx))
			if _, err := other.Exec(ctx, `BEGIN; SELECT pg_backend_pid()`).ReadAll(); err != nil {
				return way{}, err
			}
		}
		read := c.ExecPrepared(ctx, name, nil, nil, nil).Read()
		if hasCode(read.Err, "26000") { // invalid_sql_statement_name
			return way{swaps: true, forgets: true}, nil
		}
		if read.Err != nil {
			return way{}, read.Err
		}
		pid := string(read.Rows[0][0])
		if before != "" && pid != before {
			return way{swaps: true}, nil
		}
		before = pid
	}
	return way{}, c.Deallocate(ctx, name)
}

// pooled adds to an error of a connection pooler what to set. Any other error is returned as it is.
func pooled(err error) error {
	switch {
	case hasCode(err, "42P05", "26000"): // duplicate_prepared_statement, invalid_sql_statement_name
		return fmt.Errorf("%w: a transaction pooler is in between, which gives a client another connection for each "+
			"transaction: add default_query_exec_mode=cache_describe to the database URL: %w", ErrPooler, err)
	case hasCode(err, "08P01") && strings.Contains(err.Error(), "startup parameter"): // protocol_violation
		return fmt.Errorf("%w: a pooler is in between: use a URL that leads to PostgreSQL itself: %w", ErrPooler, err)
	}
	return err
}
