package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/embedded"
)

// failover makes a standby, waits until it has what was acknowledged, kills the primary, and continues with the
// standby.
func failover(ctx context.Context, r *rig, _ *rand.Rand) (end, error) {
	r.restarting.Lock()
	defer r.restarting.Unlock()
	return nil, r.database.failOver(ctx)
}

func (d *database) failOver(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	dir := fmt.Sprintf("%s-%d", d.dir, time.Now().UnixNano())
	standby, err := d.startStandby(ctx, dir)
	if err != nil {
		return err
	}
	if err := d.awaitStandby(ctx); err != nil {
		return errors.Join(err, standby.Crash(), d.executeOnce(ctx, asynchronous))
	}
	if err := d.server.Crash(); err != nil {
		return err
	}
	d.dir, d.server = dir, standby
	conn, err := pgx.Connect(ctx, standby.DSN(embedded.Database))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, `SELECT pg_promote()`); err != nil {
		return err
	}
	return d.lead(ctx)
}

// startStandby starts a standby in a directory.
func (d *database) startStandby(ctx context.Context, dir string) (*embedded.Server, error) {
	var program string
	err := d.pool().QueryRow(ctx, `
		SELECT setting || '/pg_basebackup'
		  FROM pg_config
		 WHERE name = 'BINDIR'`).Scan(&program)
	if err != nil {
		return nil, err
	}
	data, like := filepath.Join(dir, "pgdata"), filepath.Join(d.dir, "pgdata")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, program, "-R", "-D", data, "--checkpoint=fast", "--no-sync",
		"-h", d.server.SocketDir, "-p", embedded.Port, "-U", embedded.User).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	if err := ownLike(data, like); err != nil { // root's cluster runs as another user
		return nil, err
	}
	return embedded.Start(ctx, embedded.Config{Dir: dir})
}

// ownLike gives a directory with all that is in it to the owner of another.
func ownLike(dir, like string) error {
	info, err := os.Stat(like)
	if err != nil {
		return err
	}
	owner := info.Sys().(*syscall.Stat_t)
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(owner.Uid), int(owner.Gid))
	})
}

var (
	synchronous  = []string{`ALTER SYSTEM SET synchronous_standby_names = '*'`, `SELECT pg_reload_conf()`}
	asynchronous = []string{`ALTER SYSTEM RESET synchronous_standby_names`, `SELECT pg_reload_conf()`}
)

// awaitStandby has every commit wait for the standby, and waits until the standby has what was committed before.
func (d *database) awaitStandby(ctx context.Context) error {
	isSynchronous := func(ctx context.Context) error {
		var is bool
		err := d.pool().QueryRow(ctx, `
			SELECT EXISTS (
			       SELECT
			         FROM pg_stat_replication
			        WHERE sync_state IN ('sync', 'quorum') AND state = 'streaming')`).Scan(&is)
		if err == nil && !is {
			err = errors.New("the standby is not synchronous")
		}
		return err
	}
	if err := errors.Join(d.executeOnce(ctx, synchronous), again(ctx, isSynchronous)); err != nil {
		return err
	}
	sleep(ctx, time.Second) // until every session has read the setting
	var written string
	if err := d.pool().QueryRow(ctx, `SELECT pg_current_wal_flush_lsn()::text`).Scan(&written); err != nil {
		return err
	}
	return again(ctx, func(ctx context.Context) error {
		var has bool
		err := d.pool().QueryRow(ctx, `
			SELECT coalesce(bool_and(flush_lsn >= $1::text::pg_lsn), false)
			  FROM pg_stat_replication`, written).Scan(&has)
		if err == nil && !has {
			err = errors.New("the standby lacks what is committed")
		}
		return err
	})
}
