package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/embedded"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/process"
	"github.com/varve-dev/varve/internal/session"
)

// bench is everything that a measurement may use: the cluster, the two processes, a tenant with a key, and the results.
// Scenarios without a lab find nothing of it but the options.
type bench struct {
	options
	dir     string // temporary: the cluster, the binaries, the logs
	cluster *embedded.Server
	dsn     string
	admin   *pgx.Conn // the superuser: seeds, counts, and is not measured
	store   *postgres.Store
	tenant  uuid.UUID
	key     string
	api     *server
	worker  *server
	notes   []string
	rows    []row
	lives   []life // what the profiles made of the recorded conversations
}

const database = "bench"

// open starts the cluster and the processes. What it has started when it fails, close ends.
func (b *bench) open(ctx context.Context) (err error) {
	// Not in the system's temporary directory: that may be in memory, where fsync costs nothing.
	if b.dir, err = os.MkdirTemp("bench", "run-*.tmp"); err != nil {
		return fmt.Errorf("%w (run it from the root of the repository: make bench)", err)
	}
	if b.dir, err = filepath.Abs(b.dir); err != nil {
		return err
	}
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"build cmd/api and cmd/worker", b.build},
		{"start PostgreSQL", b.startCluster},
		{"create the tenant", b.createTenant},
		{"fill the tables", b.seed},
		{"start the processes", b.startProcesses},
	} {
		b.progress("%s", step.what)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}

func (b *bench) startCluster(ctx context.Context) (err error) {
	if b.cluster, err = embedded.Start(ctx, embedded.Config{Dir: filepath.Join(b.dir, "data")}); err != nil {
		return err
	}
	root, err := pgx.Connect(ctx, b.cluster.DSN(embedded.Database))
	if err != nil {
		return err
	}
	defer root.Close(ctx)
	if _, err := root.Exec(ctx, `CREATE DATABASE `+database); err != nil {
		return err
	}
	b.dsn = b.cluster.DSN(database)
	if err := postgres.Migrate(ctx, b.dsn); err != nil {
		return err
	}
	if b.admin, err = pgx.Connect(ctx, b.dsn); err != nil {
		return err
	}
	b.store, err = process.OpenStore(ctx, config.Database{URL: b.dsn, Connections: 4})
	return err
}

func (b *bench) createTenant(ctx context.Context) error {
	tenant, err := b.store.CreateTenant(ctx, "bench", process.DefaultPolicy())
	if err != nil {
		return err
	}
	b.tenant, b.key = tenant.ID, session.NewAPIKey(tenant.ID)
	_, digest, err := session.ParseKey(b.key)
	if err != nil {
		return err
	}
	_, err = b.store.CreateKey(ctx, tenant.ID, postgres.KeyParams{Name: "bench", Digest: digest, Last4: b.key[len(b.key)-4:]})
	return err
}

// seed writes 10,000 sessions of 100 other tenants, so that the planner sees tables as they are in use and no statement
// of the bench finds its rows on the only page.
func (b *bench) seed(ctx context.Context) error {
	document := process.DefaultPolicy().Document
	for _, sql := range []string{
		`INSERT INTO tenants (id, name)
		 SELECT gen_random_uuid(), 'tenant ' || n
		   FROM generate_series(1, 100) n`,
		`INSERT INTO policies (tenant_id, id, trigger_ratio, hard_ratio, document)
		 SELECT t.id, '` + uuid.Nil.String() + `', 0.8, 0.95, '` + strings.ReplaceAll(string(document), `'`, `''`) + `'
		   FROM tenants t
		  WHERE t.name LIKE 'tenant %'`,
		`INSERT INTO sessions (tenant_id, key, id, format, window_tokens, policy_id, last_seq, context_tokens, total_tokens)
		 SELECT t.id, gen_random_uuid(), n::text, 1, 128000, '` + uuid.Nil.String() + `', 4, 1000, 1000
		   FROM tenants t, generate_series(1, 100) n
		  WHERE t.name LIKE 'tenant %'`,
		`INSERT INTO messages (tenant_id, session_key, seq, role, format, tokens, starts_unit, body)
		 SELECT s.tenant_id, s.key, n, 'user', 1, 250, true, convert_to(repeat(md5(s.key::text || n), 32), 'UTF8')
		   FROM sessions s, generate_series(1, 4) n`,
		`INSERT INTO checkpoints (tenant_id, session_key, n, base_n, through_seq, tokens, body, body_size, units, manifest, policy, engine_version, run_id)
		 SELECT tenant_id, key, 1, 0, 2, 500, decode(md5(key::text), 'hex'), 16, '[]', '[]', '{}', 1, gen_random_uuid()
		   FROM sessions`,
		`UPDATE sessions
		    SET checkpoint_n = 1, through_seq = 2, checkpoint_size = 16`,
		`VACUUM ANALYZE sessions, messages, checkpoints, tenants, policies`,
		`CHECKPOINT`,
	} {
		if _, err := b.admin.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// unbound puts the trigger of sessions with the widest window out of reach: they grow beyond what any model takes.
func (b *bench) unbound(ctx context.Context) error {
	_, err := b.admin.Exec(ctx, `
		UPDATE sessions
		   SET window_tokens = 2000000000
		 WHERE tenant_id = $1 AND window_tokens = $2`, b.tenant.String(), widestWindow)
	return err
}

func (b *bench) startProcesses(ctx context.Context) (err error) {
	if b.api, err = b.start(ctx, "api", "--addr", "127.0.0.1:0"); err != nil {
		return err
	}
	b.worker, err = b.start(ctx, "worker")
	return err
}

// close stops the processes, then the cluster, and removes what they wrote. It works on after an interrupt.
func (b *bench) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	errs := []error{b.api.stop(), b.worker.stop()}
	if b.store != nil {
		b.store.Pool().Close()
	}
	if b.admin != nil {
		errs = append(errs, b.admin.Close(ctx))
	}
	if b.cluster != nil {
		errs = append(errs, b.cluster.Stop(ctx))
	}
	if b.dir != "" {
		errs = append(errs, os.RemoveAll(b.dir))
	}
	return errors.Join(errs...)
}

// checkLog is the proof that nothing was lost or doubled: in every session the seqs are dense and end where its row says.
func (b *bench) checkLog(ctx context.Context) error {
	var broken int
	err := b.admin.QueryRow(ctx, `
		SELECT count(*)
		  FROM sessions s,
		       LATERAL (SELECT count(*) AS n, coalesce(max(m.seq), 0) AS last
		                  FROM messages m
		                 WHERE m.tenant_id = s.tenant_id AND m.session_key = s.key) m
		 WHERE s.tenant_id = $1 AND (m.n <> s.last_seq OR m.last <> s.last_seq)`, b.tenant.String()).Scan(&broken)
	if err == nil && broken > 0 {
		err = fmt.Errorf("%d sessions have gaps or messages beyond their last seq", broken)
	}
	return err
}

func (b *bench) progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}

// note adds a line under the table.
func (b *bench) note(format string, args ...any) {
	b.notes = append(b.notes, fmt.Sprintf(format, args...))
}
