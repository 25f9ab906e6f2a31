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

	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/embedded"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/process"
)

// bench is what a measurement may use. Scenarios without a lab may use the directory, the options and the results alone.
type bench struct {
	options
	dir     string // temporary: the cluster, the binaries, the logs
	cluster *embedded.Server
	sites   []*site
	here    *site // this checkout's
	other   *site // that of -against, else nil
	store   *postgres.Store
	notes   []string
	rows    []row
	lives   []measured // what the profiles made of the recorded conversations
}

// makeDir makes the temporary directory. It is not in the system's: that may be in memory, where fsync costs nothing.
func (b *bench) makeDir() error {
	dir, err := os.MkdirTemp("bench", "run-*.tmp")
	if err != nil {
		return fmt.Errorf("%w (run it from the root of the repository: make bench)", err)
	}
	b.dir, err = filepath.Abs(dir)
	return err
}

// open starts the cluster and the processes of this checkout, on tables that are filled as they are in use, or of both
// checkouts.
func (b *bench) open(ctx context.Context) (err error) {
	b.cluster, err = embedded.Start(ctx, embedded.Config{Dir: filepath.Join(b.dir, "data")})
	if err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	if b.here, err = b.openSite(ctx, "new", "."); err != nil {
		return err
	}
	if b.against != "" {
		b.other, err = b.openSite(ctx, "old", b.against)
		return err
	}
	b.store, err = process.OpenStore(ctx, config.Database{URL: b.here.dsn, Connections: maxWriters})
	if err != nil {
		return err
	}
	b.progress("fill the tables")
	return b.here.seed(ctx)
}

// seed writes 10,000 sessions of 100 other tenants, so that the planner sees tables as they are in use and no statement
// of the bench finds its rows on the only page.
func (s *site) seed(ctx context.Context) error {
	document := strings.ReplaceAll(string(policy.StoredDefault().Document), `'`, `''`)
	for _, sql := range []string{
		`INSERT INTO tenants (id, name)
		 SELECT gen_random_uuid(), 'tenant ' || n
		   FROM generate_series(1, 100) n`,
		`INSERT INTO policies (tenant_id, id, trigger_ratio, hard_ratio, document)
		 SELECT t.id, '` + uuid.Nil.String() + `', 0.8, 0.95, '` + document + `'
		   FROM tenants t
		  WHERE t.name LIKE 'tenant %'`,
		`INSERT INTO sessions (tenant_id, key, id, format, window_tokens, policy_id, last_seq, context_tokens,
		        total_tokens)
		 SELECT t.id, gen_random_uuid(), n::text, 1, 128000, '` + uuid.Nil.String() + `', 4, 1000, 1000
		   FROM tenants t, generate_series(1, 100) n
		  WHERE t.name LIKE 'tenant %'`,
		`INSERT INTO messages (tenant_id, session_key, seq, role, format, tokens, starts_unit, body)
		 SELECT s.tenant_id, s.key, n, 'user', 1, 250, true, convert_to(repeat(md5(s.key::text || n), 32), 'UTF8')
		   FROM sessions s, generate_series(1, 4) n`,
		`INSERT INTO checkpoints (tenant_id, session_key, n, base_n, through_seq, tokens, body, body_size, units,
		        manifest, policy, engine_version, run_id)
		 SELECT tenant_id, key, 1, 0, 2, 500, decode(md5(key::text), 'hex'), 16, '[]', '[]', '{}', 1, gen_random_uuid()
		   FROM sessions`,
		`UPDATE sessions
		    SET checkpoint_n = 1, through_seq = 2, checkpoint_size = 16`,
		`VACUUM ANALYZE sessions, messages, checkpoints, tenants, policies`,
		`CHECKPOINT`,
	} {
		if _, err := s.admin.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// close stops the processes, then the cluster, and removes what they wrote. It works after an interrupt, too.
func (b *bench) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var errs []error
	if b.store != nil {
		b.store.Pool().Close()
	}
	for _, s := range b.sites {
		errs = append(errs, s.close(ctx))
	}
	if b.cluster != nil {
		errs = append(errs, b.cluster.Stop(ctx))
	}
	if b.dir != "" {
		errs = append(errs, os.RemoveAll(b.dir))
	}
	return errors.Join(errs...)
}

func (b *bench) progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}

// note adds a line under the table.
func (b *bench) note(format string, args ...any) {
	b.notes = append(b.notes, fmt.Sprintf(format, args...))
}
