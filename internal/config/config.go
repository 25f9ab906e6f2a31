// Package config is the settings of all commands: one struct for each thing that can be set up, with its flags, its
// environment variables and their defaults. docs/configuration.md lists them, and a test holds it to the structs.
//
// Flags come before the environment, the environment before defaults. A setting that nobody needs to change is a
// constant where it is used.
package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"
)

// Database is where the data is.
type Database struct {
	URL         string `name:"database-url" env:"DATABASE_URL" help:"PostgreSQL to use, as a URL or key=value list. Needs 15 or newer."`
	Connections int    `name:"database-connections" env:"VARVE_DATABASE_CONNECTIONS" default:"16" help:"Connections that one process opens at most."`
}

// Required is an error unless there is a database URL.
func (d Database) Required() error {
	if d.URL == "" {
		return errors.New("DATABASE_URL is not set: it names the PostgreSQL to use, e.g. postgres://varve@db.example:5432/varve (varve up runs one of its own)")
	}
	return nil
}

// Validate checks the ranges.
func (d Database) Validate() error {
	if d.Connections < 2 || d.Connections > 1000 {
		return fmt.Errorf("--database-connections (VARVE_DATABASE_CONNECTIONS) is %d: 2 to 1000 are possible", d.Connections)
	}
	return nil
}

// API is how the REST process serves.
type API struct {
	Addr       string        `name:"addr" env:"VARVE_ADDR" default:"127.0.0.1:8080" help:"Address to listen on; port 0 takes a free one."`
	DrainDelay time.Duration `name:"drain-delay" env:"VARVE_DRAIN_DELAY" default:"0s" help:"How long /readyz says 503 before the listener closes, so that a load balancer notices."`
}

// Validate checks the address.
func (a API) Validate() error {
	if _, _, err := net.SplitHostPort(a.Addr); err != nil {
		return fmt.Errorf("--addr (VARVE_ADDR) is %q: a host and a port are needed, e.g. 127.0.0.1:8080", a.Addr)
	}
	return nil
}

// Worker is how the job process works.
type Worker struct {
	Compactions   int           `name:"compactions" env:"VARVE_COMPACTIONS" default:"4" help:"Compactions that one process runs at once."`
	JobTimeout    time.Duration `name:"job-timeout" env:"VARVE_JOB_TIMEOUT" default:"2m" help:"How long one attempt may take. The job of a worker that died is taken over after twice that."`
	SweepInterval time.Duration `name:"sweep-interval" env:"VARVE_SWEEP_INTERVAL" default:"30s" help:"How often to look for sessions over their trigger whose job was lost."`
	StopTimeout   time.Duration `name:"stop-timeout" env:"VARVE_STOP_TIMEOUT" default:"20s" help:"How long running jobs and requests may go on when the process stops."`
}

// Validate checks the ranges.
func (w Worker) Validate() error {
	var problems []error
	if w.Compactions < 1 || w.Compactions > 1000 {
		problems = append(problems, fmt.Errorf("--compactions (VARVE_COMPACTIONS) is %d: 1 to 1000 are possible", w.Compactions))
	}
	if w.JobTimeout < time.Second {
		problems = append(problems, fmt.Errorf("--job-timeout (VARVE_JOB_TIMEOUT) is %s: at least 1s is needed", w.JobTimeout))
	}
	if w.SweepInterval < time.Second {
		problems = append(problems, fmt.Errorf("--sweep-interval (VARVE_SWEEP_INTERVAL) is %s: at least 1s is needed", w.SweepInterval))
	}
	return errors.Join(problems...)
}

// Log is what is logged, to standard error.
type Log struct {
	Level  slog.Level `name:"log-level" env:"VARVE_LOG_LEVEL" default:"info" help:"debug, info, warn or error."`
	Format string     `name:"log-format" env:"VARVE_LOG_FORMAT" default:"text" enum:"text,json" help:"text or json."`
}

// Logger is the logger that the settings describe.
func (l Log) Logger() *slog.Logger {
	options := &slog.HandlerOptions{Level: l.Level}
	if l.Format == "json" {
		return slog.New(slog.NewJSONHandler(os.Stderr, options))
	}
	return slog.New(slog.NewTextHandler(os.Stderr, options))
}
