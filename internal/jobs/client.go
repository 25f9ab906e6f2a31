// Package jobs is what runs behind the API, on River: one file a job, with its arguments and its worker.
//
//   - compact.go: one session's compaction, inserted by the append that crosses the session's trigger
//   - recompact.go: one session of a recompaction; fill.go: looks for the sessions of one
//   - sweep.go: finds sessions and campaigns whose job was lost, and forgets what has been kept long enough
//
// Start at NewClient. What a compaction does is in package compactor. Job rows carry ids only; contents stay in the
// tables of their tenant.
package jobs

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/llm"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

// Config is what the worker process can be told. Zero values are the defaults.
type Config struct {
	Store *postgres.Store
	Log   *slog.Logger

	Compactions int           // at once in this process; 4
	JobTimeout  time.Duration // of one attempt; 2 minutes. A dead worker's job is taken over after twice that.
	SweepEvery  time.Duration // 30 seconds
	SoftStop    time.Duration // how long running jobs may go on when the process stops; 20 seconds

	// Writer, if set, writes summaries in place of the one that the policy names.
	Writer llm.Writer

	// Trace, if set, is called with each step of a compaction that is done: put off, or snapshot, planned, persisted,
	// rendered, committed. Tests stop a worker there.
	Trace func(step string)
}

func (c Config) withDefaults() Config {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Compactions == 0 {
		c.Compactions = 4
	}
	if c.JobTimeout == 0 {
		c.JobTimeout = 2 * time.Minute
	}
	if c.SweepEvery == 0 {
		c.SweepEvery = 30 * time.Second
	}
	if c.SoftStop == 0 {
		c.SoftStop = 20 * time.Second
	}
	if c.Trace == nil {
		c.Trace = func(string) {}
	}
	return c
}

func (c Config) start(key session.Key, run uuid.UUID, of *postgres.RecompactionJob) *compactor.Run {
	return compactor.Compactor{Store: c.Store, Log: c.Log, Writer: c.Writer, Trace: c.Trace}.Start(key, run, of)
}

const (
	// fetchCooldown is short because it is what an idle worker adds to the time from an append to its checkpoint.
	fetchCooldown = 10 * time.Millisecond

	// pollInterval bounds that time where a notification is lost.
	pollInterval = 250 * time.Millisecond
)

// NewClient is a River client that works all jobs. Start and Stop are the caller's.
func NewClient(pool *pgxpool.Pool, config Config) (*river.Client[pgx.Tx], error) {
	config = config.withDefaults()
	workers := river.NewWorkers()
	river.AddWorker(workers, &compactWorker{Config: config})
	river.AddWorker(workers, &recompactWorker{Config: config})
	river.AddWorker(workers, &fillWorker{Config: config})
	river.AddWorker(workers, &sweepWorker{Config: config})
	return river.NewClient(riverpgxv5.New(pool), &river.Config{
		Logger:               riverLog(config.Log),
		Workers:              workers,
		FetchCooldown:        fetchCooldown,
		FetchPollInterval:    pollInterval,
		JobTimeout:           config.JobTimeout,
		RescueStuckJobsAfter: 2 * config.JobTimeout,
		SoftStopTimeout:      config.SoftStop,
		ReindexerSchedule:    river.NeverSchedule(), // it needs the tables' owner, which this process is not
		Queues: map[string]river.QueueConfig{
			queue.Compaction:   {MaxWorkers: config.Compactions},
			queue.Recompaction: {MaxWorkers: max(1, config.Compactions/2)},
			queue.Maintenance:  {MaxWorkers: 1},
		},
		PeriodicJobs: []*river.PeriodicJob{
			river.NewPeriodicJob(river.PeriodicInterval(config.SweepEvery), func() (river.JobArgs, *river.InsertOpts) {
				return queue.SweepArgs{}, nil
			}, &river.PeriodicJobOpts{RunOnStart: true}),
		},
	})
}

// riverLog is where River's own messages go: warnings and worse, since its others say every few seconds that all is
// well.
func riverLog(log *slog.Logger) *slog.Logger { return slog.New(atLeastWarn{log.Handler()}) }

type atLeastWarn struct{ slog.Handler }

// Enabled is slog's way to ask.
func (h atLeastWarn) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && h.Handler.Enabled(ctx, level)
}

// Handle leaves out what fails because the process stops: that is what stopping means.
func (h atLeastWarn) Handle(ctx context.Context, r slog.Record) error {
	stopping := false
	r.Attrs(func(a slog.Attr) bool {
		stopping = stopping || strings.HasSuffix(a.Value.String(), context.Canceled.Error())
		return !stopping
	})
	if stopping {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs keeps the level.
func (h atLeastWarn) WithAttrs(attrs []slog.Attr) slog.Handler {
	return atLeastWarn{h.Handler.WithAttrs(attrs)}
}

// WithGroup keeps the level.
func (h atLeastWarn) WithGroup(name string) slog.Handler {
	return atLeastWarn{h.Handler.WithGroup(name)}
}
