package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/embedded"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/process"
	"github.com/varve-dev/varve/internal/replay"
	"github.com/varve-dev/varve/internal/replay/planted"
)

// bench is what a measurement may use. Groups without a lab may use the options and the results alone.
type bench struct {
	options
	dir      string // temporary: the cluster, the binaries, the logs
	cluster  *embedded.Server
	sites    []*site
	here     *site // this checkout's
	other    *site // that of -against, else nil
	store    *postgres.Store
	plain    *pgxpool.Pool // of the superuser, nil until it is needed
	notes    []string
	rows     []row
	replayed *replay.Report // of the recorded conversations, nil if they were not replayed
	without  *replay.Report // the same of the default policy without its parts

	lastViews string          // of some sessions, as the page shows them
	parts     string          // what the engine's parts are worth, as the page shows it
	summaries [][]planted.Row // what writers of summaries keep, held out and not; nil if that was not measured
}

// open starts the cluster and the processes of this checkout, on tables that are filled as they are in use, or of both
// checkouts. Their directory is not in the system's temporary one: that may be in memory, where fsync costs nothing.
func (b *bench) open(ctx context.Context) (err error) {
	if err := b.startCluster(ctx); err != nil {
		return err
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

// startCluster starts PostgreSQL, unless it runs already.
func (b *bench) startCluster(ctx context.Context) (err error) {
	if b.cluster != nil {
		return nil
	}
	if b.dir, err = os.MkdirTemp("bench", "run-*.tmp"); err != nil {
		return fmt.Errorf("%w (run it from the root of the repository: make bench)", err)
	}
	if b.dir, err = filepath.Abs(b.dir); err != nil {
		return err
	}
	b.cluster, err = embedded.Start(ctx, embedded.Config{Dir: filepath.Join(b.dir, "data")})
	if err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	return nil
}

//go:embed seed.sql
var seedSQL string

// seed fills the tables as they are in use, so that no statement of the bench finds its rows on the only page.
func (s *site) seed(ctx context.Context) error {
	document := strings.ReplaceAll(string(policy.StoredDefault().Document), `'`, `''`)
	for statement := range strings.SplitSeq(strings.ReplaceAll(seedSQL, "$document", document), ";\n") {
		if _, err := s.admin.Exec(ctx, statement); err != nil {
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
	if b.plain != nil {
		b.plain.Close()
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
