package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/varve-dev/varve/internal/client"
	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/demo"
	"github.com/varve-dev/varve/internal/embedded"
	"github.com/varve-dev/varve/internal/terminal"
)

type demoCommand struct {
	Files []string `arg:"" optional:"" name:"file" help:"Conversations of your own: OpenAI Chat or Anthropic messages as JSON, or Claude Code's JSON lines. Without any, three samples."`
}

// Help is shown below the flags.
func (c *demoCommand) Help() string {
	return `Starts API, worker and a private PostgreSQL in DATA/demo (what an earlier demonstration left there is removed), imports
the conversations, lets the workers compact those over 60,000 tokens, reads all that was trimmed back, and shows what
happened. It ends with 0 only if every message and every trimmed result came back byte for byte.`
}

// Run demonstrates; the report goes to standard output, progress to standard error.
func (c *demoCommand) Run(ctx context.Context, settings *config.Client) error {
	dir := filepath.Join(settings.Data, "demo")
	if err := emptyDemo(ctx, dir); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "starting PostgreSQL, API and worker in %s\n", dir)
	if err := showDemo(ctx, dir, c.Files); err != nil {
		if ctx.Err() != nil {
			return ctx.Err() // interrupted: what failed because of it says nothing more
		}
		return fmt.Errorf("%w\n(the log is in %s)", err, filepath.Join(dir, "varve.log"))
	}
	return nil
}

func showDemo(ctx context.Context, dir string, files []string) (err error) {
	logFile, err := os.Create(filepath.Join(dir, "varve.log"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, logFile.Close()) }()
	ctx, done := context.WithCancel(ctx)
	defer done()
	all := everything{
		Database: config.Database{Connections: 8}, API: config.API{Addr: "127.0.0.1:0"},
		Worker: config.Worker{Compactions: 2, JobTimeout: time.Minute, SweepInterval: 5 * time.Second, StopTimeout: 10 * time.Second},
	}
	return all.serve(ctx, dir, slog.New(slog.NewTextHandler(logFile, nil)), func(ctx context.Context, addr net.Addr, keyFile string) error {
		defer done()
		key, err := readKey(keyFile)
		if err != nil {
			return err
		}
		api := client.New(&url.URL{Scheme: "http", Host: addr.String()}, key, os.Stderr)
		d := demo.Demo{
			Dir: dir, API: api, Out: os.Stdout, Notes: os.Stderr, Width: min(max(terminal.Width(os.Stdout, 120), 60), 160),
		}
		return d.Run(ctx, files)
	})
}

// emptyDemo removes what an earlier demonstration left, and nothing else.
func emptyDemo(ctx context.Context, dir string) error {
	if err := embedded.Remove(ctx, dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, name := range []string{"varve.log", "samples", "import"} { // all there is if PostgreSQL never started
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("%s holds %s, which is not from a demonstration that ran: move it away or choose another --data", dir, left[0].Name())
	}
	return os.MkdirAll(dir, 0o755)
}
