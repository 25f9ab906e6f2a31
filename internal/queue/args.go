package queue

import (
	"strings"

	"github.com/google/uuid"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// The queues of the core. The calls of language models have their own: they take their time. So have the jobs of
// features, so that a compaction that an append waits for never waits behind one.
const (
	Compaction   = "compaction"
	Summary      = "summary"
	Offload      = "offload"
	Maintenance  = "maintenance"
	Verification = "verification"
	Collection   = "collection"
	Erasure      = "erasure"
	Archive      = "archive"
)

const (
	// compactAttempts is more than there are: the failures that count are counted by session, see postgres.FailRun.
	compactAttempts = 10_000

	// SummariseAttempts bounds how often a model is asked for a summary before the summary counts as failed.
	SummariseAttempts = 6

	// offloadAttempts bounds how often a session's messages are packed, or a tenant's indexed, after a failure. The
	// sweep asks again later.
	offloadAttempts = 4

	// eraseAttempts bounds how often the erasure of a session's objects is tried, in the end every two hours.
	eraseAttempts = 500

	// The priorities of compactions.
	thresholdPriority = 1
	manualPriority    = 2

	// LowestPriority is River's number for it.
	LowestPriority = 4
)

// live are the states in which a job will still do its work. Completed is not among them: River's default includes it,
// and would drop a session's next compaction until the row is cleaned away.
var live = []rivertype.JobState{
	rivertype.JobStateAvailable,
	rivertype.JobStatePending,
	rivertype.JobStateRunning,
	rivertype.JobStateRetryable,
	rivertype.JobStateScheduled,
}

// CompactArgs name the session to compact and the run that records it. A session has one live job: tenant and session
// make it unique, the run does not.
type CompactArgs struct {
	Tenant  uuid.UUID `json:"tenant" river:"unique"`
	Session uuid.UUID `json:"session" river:"unique"`
	Run     uuid.UUID `json:"run"`
	Manual  bool      `json:"-"` // a request asked for it, not a threshold
}

// Kind returns the job's name in River's tables.
func (CompactArgs) Kind() string { return "compact" }

// InsertOpts makes the job unique among the live ones of its session. One that a threshold asks for precedes those that
// are requested, which PromoteOld keeps from waiting for ever.
func (a CompactArgs) InsertOpts() river.InsertOpts {
	priority := thresholdPriority
	if a.Manual {
		priority = manualPriority
	}
	return river.InsertOpts{Queue: Compaction, Priority: priority, MaxAttempts: compactAttempts, UniqueOpts: OneLive}
}

// SummariseArgs name a summary that a language model writes.
type SummariseArgs struct {
	Tenant  uuid.UUID `json:"tenant" river:"unique"`
	Session uuid.UUID `json:"session" river:"unique"`
	Model   string    `json:"model" river:"unique"`  // the operator's name
	Digest  string    `json:"digest" river:"unique"` // of the request, in hexadecimal digits
}

// Kind returns the job's name in River's tables.
func (SummariseArgs) Kind() string { return "summarise" }

// InsertOpts allows one live job for each summary. Its worker counts the attempts.
func (SummariseArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: Summary, MaxAttempts: compactAttempts, UniqueOpts: OneLive}
}

// OffloadArgs name a session whose old messages move into packs.
type OffloadArgs struct {
	Tenant  uuid.UUID `json:"tenant" river:"unique"`
	Session uuid.UUID `json:"session" river:"unique"`
}

// Kind returns the job's name in River's tables.
func (OffloadArgs) Kind() string { return "offload" }

// InsertOpts allows one live job for each session.
func (OffloadArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: Offload, Priority: LowestPriority, MaxAttempts: offloadAttempts, UniqueOpts: OneLive}
}

// SweepArgs are the arguments of the sweep: none.
type SweepArgs struct{}

// Kind returns the job's name in River's tables.
func (SweepArgs) Kind() string { return "sweep" }

// InsertOpts allows one live sweep, which is not retried: the next one comes soon enough.
func (SweepArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: Maintenance, MaxAttempts: 1, UniqueOpts: OneLive}
}

// VerifyArgs are the arguments of a slice of the periodic verification: none.
type VerifyArgs struct{}

// Kind returns the job's name in River's tables.
func (VerifyArgs) Kind() string { return "verify" }

// InsertOpts allows one live slice, which is not retried: the next one continues where it ended.
func (VerifyArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: Verification, Priority: LowestPriority, MaxAttempts: 1, UniqueOpts: OneLive}
}

// CollectArgs are the arguments of the collection of bodies and objects that nothing names: none.
type CollectArgs struct{}

// Kind returns the job's name in River's tables.
func (CollectArgs) Kind() string { return "collect" }

// InsertOpts allows one live collection, which is not retried: the next one comes soon enough.
func (CollectArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: Collection, Priority: LowestPriority, MaxAttempts: 1, UniqueOpts: OneLive}
}

// EraseArgs name a session whose objects are erased, which a program from before there were erasures has deleted.
type EraseArgs struct {
	Tenant  uuid.UUID `json:"tenant" river:"unique"`
	Session uuid.UUID `json:"session" river:"unique"`
}

// Kind returns the job's name in River's tables.
func (EraseArgs) Kind() string { return "erase" }

// InsertOpts allows one live job for each session. It is tried for weeks: somebody wants the session gone.
func (EraseArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: Collection, MaxAttempts: eraseAttempts, UniqueOpts: OneLive}
}

// ErasureArgs name an erasure.
type ErasureArgs struct {
	Tenant  uuid.UUID `json:"tenant" river:"unique"` // that the erasure belongs to
	Erasure uuid.UUID `json:"erasure" river:"unique"`
}

// Kind returns the job's name in River's tables.
func (ErasureArgs) Kind() string { return "erasure" }

// InsertOpts allows one live job for each erasure. It is tried for weeks, as that of a session's objects is.
func (ErasureArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: Erasure, MaxAttempts: eraseAttempts, UniqueOpts: OneLive}
}

// ArchiveArgs name a session that is archived, or comes back from its archive.
type ArchiveArgs struct {
	Tenant  uuid.UUID `json:"tenant" river:"unique"`
	Session uuid.UUID `json:"session" river:"unique"`
	Archive uuid.UUID `json:"archive" river:"unique"`
	Back    bool      `json:"back" river:"unique"`
}

// Kind returns the job's name in River's tables.
func (ArchiveArgs) Kind() string { return "archive" }

// InsertOpts allows one live job for each archive and direction. It is tried for weeks: the store may be away. Who
// waits for a session comes first.
func (a ArchiveArgs) InsertOpts() river.InsertOpts {
	priority := LowestPriority
	if a.Back {
		priority = thresholdPriority
	}
	return river.InsertOpts{Queue: Archive, Priority: priority, MaxAttempts: eraseAttempts, UniqueOpts: OneLive}
}

// OneLive allows one live job with the same arguments.
var OneLive = river.UniqueOpts{ByArgs: true, ByState: live}

// IsLive returns the SQL condition that the job with this id is live.
func IsLive(job string) string {
	return `EXISTS (
	       SELECT
	         FROM river_job j
	        WHERE j.id = ` + job + ` AND j.state IN (` + liveSQL() + `))`
}

// IsStarting returns the SQL condition that the job with this id runs, or starts as soon as a worker is free. One that
// waits after a failure does not.
func IsStarting(job string) string {
	return `EXISTS (
	       SELECT
	         FROM river_job j
	        WHERE j.id = ` + job + ` AND j.state IN ('` + string(rivertype.JobStateAvailable) + `', '` +
		string(rivertype.JobStateRunning) + `'))`
}

// HasOffload returns the SQL condition that the messages of the session with this key are being packed, or will be.
func HasOffload(key string) string { return HasLive(OffloadArgs{}.Kind(), "session", key) }

// HasLive returns the SQL condition that a job of this kind works or will work, whose argument has this value.
func HasLive(kind, argument, key string) string {
	return `EXISTS (
	       SELECT
	         FROM river_job j
	        WHERE j.kind = '` + kind + `'
	          AND j.state IN (` + liveSQL() + `)
	          AND j.args ->> '` + argument + `' = ` + key + `::text)`
}

func liveSQL() string {
	names := make([]string, len(live))
	for i, state := range live {
		names[i] = `'` + string(state) + `'`
	}
	return strings.Join(names, `, `)
}
