// Command api is the REST process: it serves the HTTP API on the database that DATABASE_URL names. Run as many as are
// needed; cmd/worker does the compactions.
package main

import (
	"context"
	"errors"
	"net"
	"os"

	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/process"
)

type settings struct {
	config.Database `embed:""`
	config.API      `embed:""`
	config.LLM      `embed:""`
	config.Memory   `embed:""`
	config.Log      `embed:""`
}

func main() { os.Exit(config.Main("api", "Varve's REST process.", os.Args[1:], &settings{})) }

// Validate returns everything that is wrong at once.
func (s *settings) Validate() error {
	return errors.Join(s.Required(), s.Database.Validate(), s.API.Validate(), s.LLM.Validate(), s.Memory.Validate(),
		s.Log.Validate())
}

// Run serves until the process is told to stop.
func (s *settings) Run(ctx context.Context) error {
	log := s.Logger()
	process.LimitMemory(s.Memory, false)
	return process.API(ctx, s.API, s.LLM, s.Database, log, func(addr net.Addr) {
		log.Info("ready", "addr", addr.String())
	})
}
