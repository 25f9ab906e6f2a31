// Command worker is the job process: it runs the compactions that appends to cmd/api ask for, on the database that
// DATABASE_URL names. Run as many as are needed.
package main

import (
	"context"
	"errors"
	"os"

	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/process"
)

type settings struct {
	config.Database `embed:""`
	config.Worker   `embed:""`
	config.LLM      `embed:""`
	config.Memory   `embed:""`
	config.Log      `embed:""`
}

func main() { os.Exit(config.Main("worker", "Varve's job process.", os.Args[1:], &settings{})) }

// Validate returns everything that is wrong at once.
func (s *settings) Validate() error {
	return errors.Join(s.Required(), s.Database.Validate(), s.Worker.Validate(), s.LLM.Validate(), s.Memory.Validate(),
		s.Log.Validate())
}

// Run works until the process is told to stop.
func (s *settings) Run(ctx context.Context) error {
	log := s.Logger()
	process.LimitMemory(s.Memory, false)
	return process.Worker(ctx, s.Worker, s.LLM, s.Database, log, func() {
		log.Info("ready", "compactions", s.Compactions)
	})
}
