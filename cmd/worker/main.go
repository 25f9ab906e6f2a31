// Command worker is the job process: it runs the compactions that appends to cmd/api ask for, on the database that
// DATABASE_URL names. Run as many as are needed.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/process"
)

type settings struct {
	config.Database `embed:""`
	config.Worker   `embed:""`
	config.Log      `embed:""`
}

func main() {
	var s settings
	kong.Parse(&s, kong.Name("worker"), kong.Description("Varve's job process."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	if err := s.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

func (s *settings) run(ctx context.Context) error {
	if err := s.Required(); err != nil {
		return err
	}
	log := s.Logger()
	return process.Worker(ctx, s.Worker, s.Database, log, func() { log.Info("ready", "compactions", s.Compactions) })
}
