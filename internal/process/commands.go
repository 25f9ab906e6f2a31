package process

import (
	"context"
	"errors"
	"net"

	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/trace"
)

// APICommand is the REST process as a command: cmd/api, and varve api.
type APICommand struct {
	config.Database `embed:""`
	config.API      `embed:""`
	config.LLM      `embed:""`
	config.Memory   `embed:""`
	config.Log      `embed:""`
}

// Validate returns everything that is wrong at once.
func (c *APICommand) Validate() error {
	return errors.Join(c.Required(), c.Database.Validate(), c.API.Validate(), c.LLM.Validate(), c.Memory.Validate(),
		c.Log.Validate())
}

// Run serves until the process is told to stop.
func (c *APICommand) Run(ctx context.Context) error {
	log, finish, err := trace.Open(ctx, config.Version(), c.Logger())
	if err != nil {
		return err
	}
	defer finish(ctx)
	LimitMemory(c.Memory, false)
	return API(ctx, c.API, c.LLM, c.Database, log, func(addr net.Addr) { log.Info("ready", "addr", addr.String()) })
}

// WorkerCommand is the job process as a command: cmd/worker, and varve worker.
type WorkerCommand struct {
	config.Database `embed:""`
	config.Worker   `embed:""`
	config.LLM      `embed:""`
	config.Memory   `embed:""`
	config.Log      `embed:""`
}

// Validate returns everything that is wrong at once.
func (c *WorkerCommand) Validate() error {
	return errors.Join(c.Required(), c.Database.Validate(), c.Worker.Validate(), c.LLM.Validate(), c.Memory.Validate(),
		c.Log.Validate())
}

// Run works until the process is told to stop.
func (c *WorkerCommand) Run(ctx context.Context) error {
	log, finish, err := trace.Open(ctx, config.Version(), c.Logger())
	if err != nil {
		return err
	}
	defer finish(ctx)
	LimitMemory(c.Memory, false)
	return Worker(ctx, c.Worker, c.LLM, c.Database, log, func() { log.Info("ready", "compactions", c.Compactions) })
}
