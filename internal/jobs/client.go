// Package jobs has what runs behind the API, on River.
//
//   - compact.go: one session's compaction, inserted by the append that reaches the session's trigger
//   - summarise.go: one summary that a language model writes, and that a compaction then takes in
//   - offload.go: one session's old messages move into packs, after a compaction
//   - verify.go: a slice of the periodic verification
//   - collect.go: deletes bodies and objects that nothing names
//   - lease.go, takeover.go: show that this worker lives, and take over the jobs of those that died
//   - failure.go: whose fault a failure is, and what follows
//   - features.go: the jobs of features, which are in their folders, as those of packages tier and erasure are
//   - gauges.go: what /metrics shows of all jobs
//   - sweep.go: finds sessions whose job was lost, and prunes what has been kept long enough
//
// Start at NewClient. What a compaction does is in package compactor. Job rows carry ids only; contents stay in the
// tables of their tenant.
package jobs

import (
	"cmp"
	"log/slog"
	"net/netip"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/erasure"
	"github.com/varve-dev/varve/internal/feature"
	"github.com/varve-dev/varve/internal/llm"
	"github.com/varve-dev/varve/internal/modelcall"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/tier"
	"github.com/varve-dev/varve/internal/trace"
	"github.com/varve-dev/varve/internal/verify"
)

// Config is the setting of a worker process. Zero values are the defaults.
type Config struct {
	Store *postgres.Store
	Log   *slog.Logger

	Compactions int           // at once in this process; 4
	Window      int64         // bytes of a log that a compaction takes in at a time; what Memory has for Compactions
	JobTimeout  time.Duration // of one attempt; 2 minutes
	Beat        time.Duration // how often the worker shows that it lives; after four the others take its jobs; 1 second
	Rest        time.Duration // how long a session stores nothing before it is indexed; 30 seconds
	SweepEvery  time.Duration // 30 seconds
	KeepWhole   bool          // packs no more messages
	VerifyRound time.Duration // in which every session is verified once; negative for never, 4 days
	VerifyEvery time.Duration // from one slice of a round to the next; 5 minutes
	Grace       time.Duration // how old waste must be before it is deleted; 24 hours
	RetainEvery time.Duration // from one look for a tenant's expired sessions to the next; an hour
	ColdAfter   time.Duration // how long a session sleeps before it is frozen; 0 for ever
	Settle      time.Duration // how long after its suspension a tenant's requests may still write; 40 seconds
	BackupsKept time.Duration // which receipts of erasures say; 0 if it is not known
	SoftStop    time.Duration // how long running jobs may continue when the process stops; 20 seconds

	Memory *admit.Gate // bytes, that jobs wait for before they read a session; nil admits all
	CPU    *admit.Gate // processors; nil admits all

	Caller         *modelcall.Caller // asks language models; nil if none is configured
	Summaries      int               // that models are asked for at once by this process; 8
	SummaryTimeout time.Duration     // of one attempt; 10 minutes

	Features []feature.Feature
	Networks []netip.Prefix // private networks in which URLs of tenants may be

	// Writer, if set, writes summaries in place of the one that the policy names.
	Writer llm.Writer

	// Trace, if set, is called after each step of a compaction, see compactor.Compactor; of a summary: summary, asking,
	// answered; of a collection: rows deleted, objects deleted, orphan deleted, object
	// erased; of an archive: archive begun, part added, archive checked, session archived, part restored, session
	// restored, objects forgotten; of an erasure: session erased, objects of a session erased, rows of a tenant erased,
	// erasure finished; and of the jobs of features.
	Trace func(step string)
}

func (c Config) withDefaults() Config {
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	c.Compactions = cmp.Or(c.Compactions, 4)
	c.Window = cmp.Or(c.Window, compactor.WindowWithin(c.Memory.Size()/int64(c.Compactions)))
	c.JobTimeout = cmp.Or(c.JobTimeout, 2*time.Minute)
	c.Settle = cmp.Or(c.Settle, 40*time.Second) // a request takes 30 seconds, and keys are remembered for two
	c.Summaries = cmp.Or(c.Summaries, 8)
	c.SummaryTimeout = cmp.Or(c.SummaryTimeout, 10*time.Minute)
	c.Beat = cmp.Or(c.Beat, time.Second)
	c.Rest = cmp.Or(c.Rest, 30*time.Second)
	c.SweepEvery = cmp.Or(c.SweepEvery, 30*time.Second)
	c.VerifyRound = cmp.Or(c.VerifyRound, 4*24*time.Hour)
	c.VerifyEvery = cmp.Or(c.VerifyEvery, 5*time.Minute)
	c.Grace = cmp.Or(c.Grace, 24*time.Hour)
	c.RetainEvery = cmp.Or(c.RetainEvery, time.Hour)
	c.SoftStop = cmp.Or(c.SoftStop, 20*time.Second)
	if c.Trace == nil {
		c.Trace = func(string) {}
	}
	return c
}

func (c *Config) compactor() *compactor.Compactor {
	return &compactor.Compactor{
		Store: c.Store, Log: c.Log, Window: c.Window, Room: compactor.RoomWithin(c.Memory.Size()),
		CPU: c.CPU, Caller: c.Caller, Writer: c.Writer, Trace: c.Trace,
	}
}

func (c *Config) thawer() *tier.Thawer {
	return &tier.Thawer{Store: c.Store, Log: c.Log, Memory: c.Memory, Wait: c.JobTimeout / 2}
}

const (
	// fetchCooldown is short because it is what an idle worker adds to the time from an append to its checkpoint.
	fetchCooldown = 10 * time.Millisecond

	// pollInterval and slowPoll bound that time if a notification is lost, which happens only while the connection that
	// listens is broken: the database notifies of every job that may start, see job_wakes in the migrations. The first
	// is that of the queue whose jobs appends ask for. Behind a pooler that does not pass notifications on, they are
	// what every job waits for.
	pollInterval = 5 * time.Second
	slowPoll     = 30 * time.Second
)

// NewClient returns a client that works all jobs. The caller must start and stop it.
func NewClient(pool *pgxpool.Pool, config Config) (*Client, error) {
	config = config.withDefaults()
	away := &outage{log: config.Log}
	lease := newLease(config, pool, away)
	beside := max(1, config.Compactions/2)
	slots := slotsOf(config.Compactions + beside)
	queues := map[string]river.QueueConfig{
		queue.Compaction:   {MaxWorkers: config.Compactions, FetchPollInterval: pollInterval},
		queue.Summary:      {MaxWorkers: config.Summaries},
		queue.Offload:      {MaxWorkers: 1}, // nothing waits for it
		queue.Maintenance:  {MaxWorkers: 1},
		queue.Verification: {MaxWorkers: 1},
		queue.Collection:   {MaxWorkers: 1},
		queue.Erasure:      {MaxWorkers: 1},
		queue.Archive:      {MaxWorkers: 1},
	}
	workers := river.NewWorkers()
	features := featuresOf(config, workers, queues, lease, slots, beside)
	addWorkers(workers, config, features.Duties, lease, slots)
	admission := newAdmission(config)
	admission.features = features
	lease.features = features
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		ID:                   lease.id,
		Middleware:           append(trace.Jobs(), lease, admission),
		Logger:               riverLog(config.Log, away),
		Workers:              workers,
		FetchCooldown:        fetchCooldown,
		FetchPollInterval:    slowPoll,
		JobTimeout:           config.JobTimeout,
		RetryPolicy:          retryPolicy{},
		RescueStuckJobsAfter: 2 * config.JobTimeout,
		SoftStopTimeout:      config.SoftStop,
		ReindexerSchedule:    river.NeverSchedule(), // it needs the tables' owner, which this process is not
		Queues:               queues,
		PeriodicJobs:         periodic(config),
	})
	return &Client{Client: client, lease: lease, features: features, ended: make(chan struct{})}, err
}

// slotsOf returns the gate of compactions that run beside each other in this process. One that may kill it has all
// slots. All of them wait in one line, of no tenant: what comes later does not overtake it, and the queue is fair.
func slotsOf(n int) *admit.Gate {
	return admit.New(admit.Config{Name: "compactions", Size: int64(n), Each: int64(n)})
}

// addWorkers adds what does each kind of job of the core.
func addWorkers(workers *river.Workers, config Config, duties []postgres.Duty, lease *lease, slots *admit.Gate) {
	river.AddWorker(workers, &compactWorker{Compactor: config.compactor(), lease: lease, slots: slots})
	river.AddWorker(workers, &summariseWorker{
		Store: config.Store, Caller: config.Caller, Log: config.Log, Limit: config.SummaryTimeout, Trace: config.Trace,
	})
	admission := newAdmission(config)
	river.AddWorker(workers, &offloadWorker{Off: config.KeepWhole, Packer: &tier.Packer{
		Store: config.Store, Log: config.Log, Trace: config.Trace, Slice: config.JobTimeout / 2,
		CPU: config.CPU,
	}})
	river.AddWorker(workers, &sweepWorker{
		Store: config.Store, Log: config.Log, KeepWhole: config.KeepWhole, RetainEvery: config.RetainEvery,
		ColdAfter: config.ColdAfter, Prunings: prunings(config.Features), Duties: duties,
	})
	river.AddWorker(workers, &verifyWorker{Rolling: verify.Rolling{
		Verifier: verify.Verifier{Store: config.Store}, Log: config.Log, Round: config.VerifyRound,
		Every: config.VerifyEvery, Hold: admission.hold,
	}})
	river.AddWorker(workers, &collectWorker{Collection: Collection{
		Store: config.Store, Log: config.Log, Grace: config.Grace, Trace: config.Trace,
	}})
	objects := erasure.Objects{Store: config.Store, Log: config.Log, Trace: config.Trace}
	river.AddWorker(workers, &erasure.ObjectsWorker{Objects: objects})
	river.AddWorker(workers, &erasure.Worker{
		Objects: objects, Kept: config.BackupsKept, Slice: config.JobTimeout / 4, Settle: config.Settle,
	})
	river.AddWorker(workers, &tier.Worker{
		Thawer: tier.Thawer{Store: config.Store, Log: config.Log, Memory: config.Memory, Trace: config.Trace},
	})
}

// periodic returns the jobs that come again and again. A verification that is off is not among them.
func periodic(config Config) []*river.PeriodicJob {
	jobs := []*river.PeriodicJob{
		river.NewPeriodicJob(river.PeriodicInterval(config.SweepEvery), func() (river.JobArgs, *river.InsertOpts) {
			return queue.SweepArgs{}, nil
		}, &river.PeriodicJobOpts{RunOnStart: true}),
		river.NewPeriodicJob(river.PeriodicInterval(collectEvery), func() (river.JobArgs, *river.InsertOpts) {
			return queue.CollectArgs{}, nil
		}, &river.PeriodicJobOpts{RunOnStart: true}),
	}
	if config.VerifyRound > 0 {
		jobs = append(jobs, river.NewPeriodicJob(river.PeriodicInterval(config.VerifyEvery),
			func() (river.JobArgs, *river.InsertOpts) { return queue.VerifyArgs{}, nil }, nil))
	}
	return jobs
}

// retryWaits are the times from a failed attempt to the next of jobs that are no compactions, for which see
// postgres.FailRun. (River's own policy waits for the fourth power of the attempt, in seconds.)
var retryWaits = []time.Duration{
	time.Second, 2 * time.Second, 4 * time.Second, 15 * time.Second, 2 * time.Minute, 15 * time.Minute, 2 * time.Hour,
}

type retryPolicy struct{}

// NextRetry returns when a job that failed is tried again.
func (retryPolicy) NextRetry(job *rivertype.JobRow) time.Time {
	return time.Now().Add(retryWaits[min(max(len(job.Errors), 0), len(retryWaits)-1)])
}
