// Command api is the REST process: it serves the HTTP API on the database that DATABASE_URL names. Run as many as are
// needed; cmd/worker does the compactions.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/process"
)

type settings struct {
	config.Database `embed:""`
	config.API      `embed:""`
	config.Log      `embed:""`
}

func main() {
	var s settings
	kong.Parse(&s, kong.Name("api"), kong.Description("Varve's REST process."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	if err := s.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "api:", err)
		os.Exit(1)
	}
}

func (s *settings) run(ctx context.Context) error {
	if err := s.Required(); err != nil {
		return err
	}
	log := s.Logger()
	return process.API(ctx, s.API, s.Database, log, func(addr net.Addr) { log.Info("ready", "addr", addr.String()) })
}
