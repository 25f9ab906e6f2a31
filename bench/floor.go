package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/varve-dev/varve/internal/embedded"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// statement is one of the store's statements with the arguments of one call.
type statement struct {
	sql  string
	args []any
}

func (b *bench) address(id int) session.Address {
	return session.Address{Tenant: b.tenant, ID: strconv.Itoa(id)}
}

// appendFloor is the least that an append costs: the store's own statement, sent by pgbench.
func (b *bench) appendFloor(ctx context.Context, a appendCase, messages [][]byte) (sample, error) {
	news := make([]session.NewMessage, len(messages))
	for i, body := range messages {
		news[i] = session.NewMessage{Body: body, Role: "user", Tokens: len(body) / 4, StartsUnit: true}
	}
	of := func(id int) statement {
		sql, args := postgres.AppendStatement(session.Append{Session: b.address(id), Format: session.OpenAIChat, Messages: news})
		return statement{sql, args}
	}
	program, err := b.pgbench()
	if errors.Is(err, exec.ErrNotFound) {
		b.note("floor of %s: a bare pgx loop, because there is no pgbench on this machine", a.name())
		return b.pgxFloor(a.writers, func(writer, turn int) statement { return of(a.session(writer, turn)) }), nil
	}
	if err != nil {
		return nil, err
	}
	script, err := b.appendScript(ctx, a, of(0))
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, d time.Duration) (float64, error) {
		return b.runPgbench(ctx, program, script, a.writers, d)
	}, nil
}

// session is the id that a writer appends to at its turn.
func (a appendCase) session(writer, turn int) int {
	if a.oneSession {
		return hotSession
	}
	return writer*writerSessions + turn%writerSessions
}

// pgbench finds the program beside the server's, or in PATH.
func (b *bench) pgbench() (string, error) {
	dir, err := embedded.BinDir()
	if err != nil {
		return "", err
	}
	beside := filepath.Join(dir, "pgbench")
	if _, err := os.Stat(beside); err == nil {
		return beside, nil
	}
	return exec.LookPath("pgbench")
}

// script is a pgbench script with the values of its variables.
type script struct {
	file      string
	variables []string
}

// appendScript writes the store's batch as a pipeline. The session's id is the script's choice at each turn; the other
// arguments are variables, so that the server gets parameters as it does from the store.
func (b *bench) appendScript(ctx context.Context, a appendCase, s statement) (script, error) {
	values, err := b.textArguments(ctx, s)
	if err != nil {
		return script{}, err
	}
	const sessionID = 2
	delete(values, sessionID)
	choose := fmt.Sprintf(`\set p%d :client_id * %d + random(0, %d)`, sessionID, writerSessions, writerSessions-1)
	if a.oneSession {
		choose = fmt.Sprintf(`\set p%d %d`, sessionID, hotSession)
	}
	tenantSQL, _ := postgres.TenantStatement(b.tenant)
	text := fmt.Sprintf("%s\n\\startpipeline\n%s;\n%s;\n\\endpipeline\n",
		choose, withVariables(tenantSQL, values, sessionID), withVariables(s.sql, values, sessionID))
	out := script{file: filepath.Join(b.dir, "append.sql")}
	for n, value := range values {
		out.variables = append(out.variables, "-D", fmt.Sprintf("p%d=%s", n, value))
	}
	return out, os.WriteFile(out.file, []byte(text), 0o644)
}

// textArguments are the arguments that are not NULL, by number, as PostgreSQL reads them from text.
func (b *bench) textArguments(ctx context.Context, s statement) (map[int]string, error) {
	description, err := b.admin.Prepare(ctx, s.sql, s.sql)
	if err != nil {
		return nil, err
	}
	values := map[int]string{}
	for i, arg := range s.args {
		text, err := b.admin.TypeMap().Encode(description.ParamOIDs[i], pgtype.TextFormatCode, arg, nil)
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", i+1, err)
		}
		if text != nil {
			values[i+1] = string(text)
		}
	}
	return values, nil
}

var parameter = regexp.MustCompile(`\$([0-9]+)`)

// withVariables writes a statement's parameters as pgbench's variables, and those that have no value as NULL.
func withVariables(sql string, values map[int]string, always int) string {
	return parameter.ReplaceAllStringFunc(sql, func(p string) string {
		n, _ := strconv.Atoi(p[1:])
		if _, ok := values[n]; ok || n == always {
			return ":p" + p[1:]
		}
		return "NULL"
	})
}

var pgbenchRate = regexp.MustCompile(`(?m)^tps = ([0-9.]+)`)

func (b *bench) runPgbench(ctx context.Context, program string, s script, clients int, d time.Duration) (float64, error) {
	seconds := max(1, int(d.Round(time.Second).Seconds()))
	args := append([]string{
		"-n", "-M", "prepared", "-f", s.file, "-c", strconv.Itoa(clients), "-j", strconv.Itoa(min(clients, 2)), "-T", strconv.Itoa(seconds),
	}, s.variables...)
	cmd := exec.CommandContext(ctx, program, append(args, database)...)
	cmd.Env = append(os.Environ(), "PGHOST="+b.cluster.SocketDir(), "PGPORT="+embedded.Port, "PGUSER="+embedded.User,
		"PGOPTIONS=-c role="+postgres.Role+" -c plan_cache_mode=force_generic_plan") // as the store's connections
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("pgbench: %w\n%s", err, out)
	}
	match := pgbenchRate.FindSubmatch(out)
	if match == nil {
		return 0, fmt.Errorf("pgbench did not say its rate:\n%s", out)
	}
	return strconv.ParseFloat(string(match[1]), 64)
}

// pgxFloor is the least that a call costs from Go: the store's own statement behind the one for the tenant, in one
// pipeline on a connection of its own, the rows thrown away as they came.
func (b *bench) pgxFloor(callers int, of func(caller, turn int) statement) sample {
	return func(ctx context.Context, d time.Duration) (_ float64, err error) {
		pool, err := postgres.Open(ctx, b.dsn, max(2, callers))
		if err != nil {
			return 0, err
		}
		defer pool.Close()
		conns := make([]*pgx.Conn, callers)
		for i := range conns {
			conn, err := pool.Acquire(ctx)
			if err != nil {
				return 0, err
			}
			defer conn.Release()
			conns[i] = conn.Conn()
			if err := b.bareCall(ctx, conns[i], of(i, 0)); err != nil { // prepares
				return 0, err
			}
		}
		return load(ctx, d, callers, func(caller int) func() error {
			turn := 0
			return func() error {
				turn++
				return b.bareCall(ctx, conns[caller], of(caller, turn))
			}
		})
	}
}

func (b *bench) bareCall(ctx context.Context, conn *pgx.Conn, s statement) error {
	tenantSQL, tenantArgs := postgres.TenantStatement(b.tenant)
	batch := &pgx.Batch{}
	batch.Queue(tenantSQL, tenantArgs...)
	batch.Queue(s.sql, s.args...)
	results := conn.SendBatch(ctx, batch)
	defer results.Close()
	if _, err := results.Exec(); err != nil {
		return err
	}
	rows, err := results.Query()
	if err != nil {
		return err
	}
	count := 0
	for ; rows.Next(); count++ {
		rows.RawValues()
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if count != 1 {
		return fmt.Errorf("floor: %d rows instead of 1", count)
	}
	return results.Close()
}
