package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/embedded"
	"github.com/varve-dev/varve/internal/process"
	"github.com/varve-dev/varve/internal/session"
)

// defaultTenant is the tenant that the first start makes.
const defaultTenant = "default"

type upCommand struct {
	config.Database `embed:""`
	config.API      `embed:""`
	config.Worker   `embed:""`
	config.Log      `embed:""`
}

// Run serves until the process is told to stop. Without a database URL it starts a private PostgreSQL in the data
// directory, and stops it last.
func (u *upCommand) Run(ctx context.Context, g *Globals) (err error) {
	if err := os.MkdirAll(g.Data, 0o755); err != nil {
		return err
	}
	log := u.Logger()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if u.Database.URL == "" {
		server, err := embedded.Start(ctx, embedded.Config{Dir: g.Data, Log: log})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, server.Stop(context.WithoutCancel(ctx))) }()
		context.AfterFunc(ctx, func() {})
		go func() { <-server.Done(); cancel() }()
		u.Database.URL = server.DSN("varve")
	}
	if err := postgres.Migrate(ctx, u.Database.URL); err != nil {
		return err
	}
	keyFile, err := firstKey(ctx, u.Database, g.Data)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	working := make(chan struct{})
	group.Go(func() error { return process.Worker(ctx, u.Worker, u.Database, log, func() { close(working) }) })
	group.Go(func() error {
		return process.API(ctx, u.API, u.Database, log, func(addr net.Addr) {
			select {
			case <-working:
				ready(addr, keyFile)
			case <-ctx.Done():
			}
		})
	})
	return group.Wait()
}

// firstKey makes the tenant "default" with a key in DATA/key, unless that file is there.
func firstKey(ctx context.Context, db config.Database, data string) (file string, err error) {
	file = filepath.Join(data, "key")
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}
	store, err := process.OpenStore(ctx, db)
	if err != nil {
		return "", err
	}
	defer store.Pool().Close()
	tenant, err := store.TenantByName(ctx, defaultTenant)
	if errors.Is(err, session.ErrNotFound) {
		tenant, err = store.CreateTenant(ctx, defaultTenant, process.DefaultPolicy())
	}
	if err != nil {
		return "", err
	}
	text, _, err := newKey(ctx, store, tenant, keyOptions{Name: "first start"})
	if err != nil {
		return "", err
	}
	return file, os.WriteFile(file, []byte(text+"\n"), 0o600)
}

func ready(addr net.Addr, keyFile string) {
	fmt.Fprintf(os.Stderr, `varve is ready on http://%s
try: curl -H "Authorization: Bearer $(cat %s)" http://%s/v1/sessions
`, addr, keyFile, addr)
}
