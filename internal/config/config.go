// Package config declares the settings of all commands: one struct for each thing that can be set up, with its flags,
// its environment variables and their defaults. docs/configuration.md lists them, and a test compares it with the structs.
//
// Flags take precedence over the environment, the environment over defaults. A setting that nobody needs to change is a
// constant where it is used. Start at Main, the main function of a process with such settings.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/varve-dev/varve/internal/models"
)

// Database is the PostgreSQL that holds the data.
type Database struct {
	URL         string `name:"database-url" env:"DATABASE_URL" help:"PostgreSQL to use, as a URL or key=value list. Needs 15 or newer."`
	Connections int    `name:"database-connections" env:"VARVE_DATABASE_CONNECTIONS" default:"16" help:"Connections that one process opens at most."`
}

// Required returns an error if there is no database URL.
func (d Database) Required() error {
	if d.URL == "" {
		return errors.New("DATABASE_URL is not set: it must name the PostgreSQL to use, " +
			"e.g. postgres://varve@db.example:5432/varve (varve up runs a private one)")
	}
	return nil
}

// Validate checks the URL's form and the range.
func (d Database) Validate() error {
	var problems []error
	if d.Connections < 2 || d.Connections > 1000 {
		problems = append(problems, fmt.Errorf("--database-connections (VARVE_DATABASE_CONNECTIONS) is %d: it must be 2 to 1000", d.Connections))
	}
	if d.URL != "" {
		if _, err := pgxpool.ParseConfig(d.URL); err != nil {
			problems = append(problems, malformed(err))
		}
	}
	return errors.Join(problems...)
}

// malformed returns an error that repeats nothing of the URL: in one that does not parse, anything may be the password.
func malformed(err error) error {
	var file *fs.PathError
	if errors.As(err, &file) {
		return fmt.Errorf("--database-url (DATABASE_URL) names a file that cannot be read: %w", file)
	}
	return errors.New("--database-url (DATABASE_URL) is neither a PostgreSQL URL nor a key=value list; " +
		"it is not shown here, because it may contain a password")
}

// Client is what the clients of the HTTP API need, and the commands that work on a data directory.
type Client struct {
	URL  string `name:"url" env:"VARVE_URL" default:"http://127.0.0.1:8080" help:"Address of the API."`
	Key  string `name:"key" env:"VARVE_KEY" hidden:"" help:"API key. Without one, clients read DATA/key."`
	Data string `name:"data" env:"VARVE_DATA_DIR" default:".varve" help:"Data directory of varve up."`
	JSON bool   `name:"json" help:"Print JSON on standard output."`
}

// PostgresBin returns the directory of the PostgreSQL programs that varve up runs, "" to look for them.
func PostgresBin() string { return os.Getenv("VARVE_PG_BIN") }

// API is the REST process.
type API struct {
	Addr       string        `name:"addr" env:"VARVE_ADDR" default:"127.0.0.1:8080" help:"Address to listen on; port 0 takes a free one."`
	DrainDelay time.Duration `name:"drain-delay" env:"VARVE_DRAIN_DELAY" default:"0s" help:"How long /readyz says 503 before the listener closes, so that a load balancer notices."`
	ModelsFile string        `name:"models" env:"VARVE_MODELS" help:"JSON file of models, whose windows come before those that are built in."`
}

// Models returns the registry of models: those that are built in, and those of the file.
func (a API) Models() (*models.Registry, error) {
	if a.ModelsFile == "" {
		return models.Embedded(), nil
	}
	document, err := os.ReadFile(a.ModelsFile)
	if err != nil {
		return nil, fmt.Errorf("--models (VARVE_MODELS): %w", err)
	}
	registry, err := models.Embedded().Extend(document)
	if err != nil {
		return nil, fmt.Errorf("--models (VARVE_MODELS) names %s, in which\n%w", a.ModelsFile, err)
	}
	return registry, nil
}

// Validate checks the address's form, the range, and the file of models.
func (a API) Validate() error {
	var problems []error
	if !isAddress(a.Addr) {
		problems = append(problems, fmt.Errorf("--addr (VARVE_ADDR) is %q: it must be a host and a port, e.g. 127.0.0.1:8080", a.Addr))
	}
	if a.DrainDelay < 0 {
		problems = append(problems, fmt.Errorf("--drain-delay (VARVE_DRAIN_DELAY) is %s: it must be 0s or more", a.DrainDelay))
	}
	if _, err := a.Models(); err != nil {
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

func isAddress(addr string) bool {
	_, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	return err == nil
}

// Worker is the job process.
type Worker struct {
	Compactions   int           `name:"compactions" env:"VARVE_COMPACTIONS" default:"4" help:"Compactions that one process runs at once."`
	JobTimeout    time.Duration `name:"job-timeout" env:"VARVE_JOB_TIMEOUT" default:"2m" help:"How long one attempt may take. The job of a worker that died is taken over after twice that."`
	SweepInterval time.Duration `name:"sweep-interval" env:"VARVE_SWEEP_INTERVAL" default:"30s" help:"How often to look for sessions over their trigger whose job was lost."`
	StopTimeout   time.Duration `name:"stop-timeout" env:"VARVE_STOP_TIMEOUT" default:"20s" help:"How long running jobs and requests may go on when the process stops."`
	MetricsAddr   string        `name:"metrics-addr" env:"VARVE_METRICS_ADDR" help:"Address on which the worker serves GET /metrics, e.g. 127.0.0.1:9090; none if it is empty. The API serves them at its own address."`
}

// Validate checks the ranges.
func (w Worker) Validate() error {
	var problems []error
	if w.Compactions < 1 || w.Compactions > 1000 {
		problems = append(problems, fmt.Errorf("--compactions (VARVE_COMPACTIONS) is %d: it must be 1 to 1000", w.Compactions))
	}
	if w.JobTimeout < time.Second {
		problems = append(problems, fmt.Errorf("--job-timeout (VARVE_JOB_TIMEOUT) is %s: it must be at least 1s", w.JobTimeout))
	}
	if w.SweepInterval < time.Second {
		problems = append(problems, fmt.Errorf("--sweep-interval (VARVE_SWEEP_INTERVAL) is %s: it must be at least 1s", w.SweepInterval))
	}
	if w.StopTimeout < 0 {
		problems = append(problems, fmt.Errorf("--stop-timeout (VARVE_STOP_TIMEOUT) is %s: it must be 0s or more", w.StopTimeout))
	}
	if w.MetricsAddr != "" && !isAddress(w.MetricsAddr) {
		problems = append(problems, fmt.Errorf("--metrics-addr (VARVE_METRICS_ADDR) is %q: it must be a host and a port, e.g. 127.0.0.1:9090", w.MetricsAddr))
	}
	return errors.Join(problems...)
}

// Log is the log, on standard error.
type Log struct {
	Level  string `name:"log-level" env:"VARVE_LOG_LEVEL" default:"info" help:"debug, info, warn or error."`
	Format string `name:"log-format" env:"VARVE_LOG_FORMAT" default:"text" help:"text or json."`
}

// Validate checks the two names.
func (l Log) Validate() error {
	var problems []error
	if new(slog.Level).UnmarshalText([]byte(l.Level)) != nil {
		problems = append(problems, fmt.Errorf("--log-level (VARVE_LOG_LEVEL) is %q: it must be debug, info, warn or error", l.Level))
	}
	if l.Format != "text" && l.Format != "json" {
		problems = append(problems, fmt.Errorf("--log-format (VARVE_LOG_FORMAT) is %q: it must be text or json", l.Format))
	}
	return errors.Join(problems...)
}

// Logger returns the logger that valid settings describe.
func (l Log) Logger() *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(l.Level)) // Validate has parsed it
	options := &slog.HandlerOptions{Level: level}
	if l.Format == "json" {
		return slog.New(slog.NewJSONHandler(os.Stderr, options))
	}
	return slog.New(slog.NewTextHandler(os.Stderr, options))
}
