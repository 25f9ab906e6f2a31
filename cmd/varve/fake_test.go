package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/process"
)

// startAPI runs the API on a database of the test's own, and returns a client of it.
func startAPI(t *testing.T) *client.Client {
	t.Helper()
	db := config.Database{URL: pgtest.New(t), Connections: 8}
	key, err := firstKey(t.Context(), db, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	text, err := readKey(key)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	db.URL = pgtest.API(db.URL)
	listening := make(chan net.Addr, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- process.API(ctx, config.API{Addr: "127.0.0.1:0"}, config.LLM{}, db, slog.New(slog.DiscardHandler), func(addr net.Addr) { listening <- addr })
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the API ended with %v", err)
		}
	})
	select {
	case addr := <-listening:
		return client.New(&url.URL{Scheme: "http", Host: addr.String()}, text, t.Output())
	case err := <-ended:
		ended <- nil
		t.Fatalf("the API did not start: %v", err)
	}
	return nil
}

// runner is a command of the HTTP API.
type runner interface {
	Run(context.Context, *command.Console) error
}

// output returns what a command prints on standard output.
func output(t *testing.T, api *client.Client, settings config.Client, of runner) string {
	t.Helper()
	var out bytes.Buffer
	if err := of.Run(t.Context(), &command.Console{API: api, JSON: settings.JSON, Out: &out}); err != nil {
		t.Fatalf("%T: %v", of, err)
	}
	return out.String()
}

func write(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// answer returns a handler that always answers the same.
func answer(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }
}
