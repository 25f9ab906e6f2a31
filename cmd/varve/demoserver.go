package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/embedded"
	"github.com/varve-dev/varve/internal/process"
)

// demoServer is all of Varve in this process.
type demoServer struct {
	client  *Client
	cluster *embedded.Server
	group   *errgroup.Group // API and worker
	cancel  context.CancelFunc
	log     *os.File
}

// startDemo starts everything in dir and returns when the API answers. failed is called with the reason when a part of
// it ends before stop.
func startDemo(ctx context.Context, dir string, failed context.CancelCauseFunc) (s *demoServer, err error) {
	s = &demoServer{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	if s.log, err = os.Create(filepath.Join(dir, "varve.log")); err != nil {
		return s, err
	}
	log := slog.New(slog.NewTextHandler(s.log, nil))
	if s.cluster, err = embedded.Start(ctx, embedded.Config{Dir: dir, Log: log}); err != nil {
		return s, err
	}
	database := config.Database{URL: s.cluster.DSN(embedded.Database), Connections: 8}
	if err := postgres.Migrate(ctx, database.URL); err != nil {
		return s, err
	}
	if _, err := firstKey(ctx, database, dir); err != nil {
		return s, err
	}
	addr, err := s.serve(ctx, database, log, failed)
	if err != nil {
		return s, err
	}
	key, err := readKey(filepath.Join(dir, "key"))
	if err != nil {
		return s, err
	}
	base := &url.URL{Scheme: "http", Host: addr.String()}
	s.client = &Client{base: base, key: key, http: &http.Client{}, sleep: sleep, patience: 10 * time.Second}
	return s, nil
}

// serve starts API and worker, and returns where the API listens.
func (s *demoServer) serve(ctx context.Context, database config.Database, log *slog.Logger, failed context.CancelCauseFunc) (net.Addr, error) {
	ctx, s.cancel = context.WithCancel(ctx)
	s.group, ctx = errgroup.WithContext(ctx)
	listening, working := make(chan net.Addr, 1), make(chan struct{})
	worker := config.Worker{Compactions: 2, JobTimeout: time.Minute, SweepInterval: 5 * time.Second, StopTimeout: 10 * time.Second}
	s.group.Go(func() error { return process.Worker(ctx, worker, database, log, func() { close(working) }) })
	s.group.Go(func() error {
		return process.API(ctx, config.API{Addr: "127.0.0.1:0"}, database, log, func(addr net.Addr) { listening <- addr })
	})
	go func() {
		select {
		case <-s.cluster.Done():
			failed(s.cluster.Err())
		case <-ctx.Done():
			failed(context.Cause(ctx)) // the first error of the group, if it was one
		}
	}()
	select {
	case <-working:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	select {
	case addr := <-listening:
		return addr, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// stop ends what runs, PostgreSQL last.
func (s *demoServer) stop() (err error) {
	if s.group != nil {
		s.cancel()
		err = s.group.Wait()
	}
	if s.cluster != nil {
		err = errors.Join(err, s.cluster.Stop(context.Background()))
	}
	if s.log != nil {
		err = errors.Join(err, s.log.Close())
	}
	return err
}
