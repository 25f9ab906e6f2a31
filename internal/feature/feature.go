// Package feature says what a feature is: a folder of internal with its types, SQL, jobs, routes, commands, tests and
// its part of the API's description, which the processes know as one value of type Feature.
//
// Start at Feature. A feature may use the exported names of the core, and nothing of another feature. Package features
// lists the features that there are, one a line; without its line and its folder everything else builds and works.
// Tables stay with the migrations, and so do the words of the audit trail and of events: rows outlive programs.
package feature

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"github.com/riverqueue/river"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/modelcall"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

// Feature is what the processes run of a feature. What it does not have is left out.
type Feature struct {
	Description []byte // its part of the API's description, as YAML: tags, paths and components
	Errors      []Error
	Routes      func(*API) []request.Route
	Command     any    // a pointer to a struct whose fields are commands, as kong reads them
	Examples    string // of its commands, a command line in each line
	Site        *Site

	Jobs     func(*Worker)
	Prunings []postgres.Pruning // before a tenant's events are pruned
	Follower *postgres.Follower // of what sessions store
}

// Followers returns those of features.
func Followers(features []Feature) (all []postgres.Follower) {
	for _, f := range features {
		if f.Follower != nil {
			all = append(all, *f.Follower)
		}
	}
	return all
}

// API is the process that answers requests: what a feature's routes need of it.
type API struct {
	Store    *postgres.Store
	Stopping func() bool // reports whether the process stops: who waits or receives for long ends then

	// Awake brings a session back that is cold, for a handler that reads the body itself.
	Awake func(context.Context, session.Address) error

	// Thaw brings a session back that is cold.
	Thaw func(context.Context, session.Key) error

	Waiter    *request.Waiter // of requests for work of other processes
	Quotas    *admit.Book
	Explain   func(error) string // what a caller is told of an error
	Operators *postgres.Store    // with the login for routes of operators; nil if the process has none
	Caller    *modelcall.Caller  // nil if no language model is configured
	Writers   *policy.Writers    // the names of the language models
	IsDown    func(error) bool   // reports whether the database could not be asked or could not answer now
}

// Error is an error of a feature that a caller may distinguish.
type Error struct {
	Is     error
	Code   string
	Status int
	Detail string // what the caller can do; "" for the error's own text
}

// Worker is the process that works jobs: what a feature's jobs need of it, and what they add to it.
type Worker struct {
	Store    *postgres.Store
	Log      *slog.Logger
	Networks []netip.Prefix // private networks in which URLs of tenants may be

	Rest       time.Duration     // how long a session stores nothing before it is indexed
	JobTimeout time.Duration     // of one attempt
	CPU        *admit.Gate       // processors; nil admits all
	Trace      func(step string) // called after each step of a job, see jobs.Config

	Compactor *compactor.Compactor
	Beside    int         // how many sessions features may compact at once in this process, beside those of the core
	Slots     *admit.Gate // of all that are compacted at once, which wait in one line, of no tenant

	// Thaw brings a session back that is cold.
	Thaw func(context.Context, session.Key) error

	// Blameless reports whether an attempt that began at a time failed by no fault of the session.
	Blameless func(ctx context.Context, err error, began time.Time) bool

	// Hold waits for the memory of work that reads all of a session's log, and brings the session back if it is cold.
	Hold func(context.Context, session.Key) (release func(), err error)

	Workers *river.Workers
	Queues  map[string]river.QueueConfig
	Memory  map[string]int64              // how much a job takes, by kind; one that is not there takes little
	FromLog map[string]bool               // kinds of jobs that compact a session from its log
	Died    map[string]Death              // what is done, by kind of job, when a worker has died that had it
	Duties  []postgres.Duty               // of the sweep
	Beats   []func(context.Context) error // called again and again, about once a second
	Gauges  []func(context.Context) error // called before the gauges are read, at most every few seconds
}

// Death records in a store that a worker has died that had a job, which is available again, and why that may be.
type Death func(ctx context.Context, s *postgres.Store, job queue.Running, cause error) error
