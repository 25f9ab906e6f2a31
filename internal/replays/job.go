package replays

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/riverqueue/river"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/feature"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/replay"
	"github.com/varve-dev/varve/internal/session"
)

const (
	// reachedShare is the share of a window that a session must reach to be sampled: replay.Session.Reaches.
	reachedShare = 0.8

	// replayAttempts bounds how often a worker may die in one measurement.
	replayAttempts = 3
)

// The counters of this process's replays.
var (
	replayedTotal = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "varve_replay_sessions_total", Help: "Sessions of replays by how they ended.",
	}, []string{"state"})
	outcomesTotal = promauto.NewCounter(prometheus.CounterOpts{
		Name: "varve_replay_outcomes_total", Help: "Measurements of a session under one contender in one window.",
	})
)

// task is that of tenants with a replay that has not ended.
const task postgres.TaskKind = "replay"

// jobArgs name a replay that is measured.
type jobArgs struct {
	Tenant uuid.UUID `json:"tenant" river:"unique"`
	Replay uuid.UUID `json:"replay" river:"unique"`
}

// Kind returns the job's name in River's tables.
func (jobArgs) Kind() string { return "replay" }

// InsertOpts allows one live job for each replay, which is tried this often if its worker dies.
func (jobArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: "replay", Priority: queue.LowestPriority, MaxAttempts: 8, UniqueOpts: queue.OneLive}
}

// jobs returns what adds the job of replays to a worker; 0 for the slice that a job has of its time.
func jobs(slice time.Duration) func(*feature.Worker) {
	return func(w *feature.Worker) {
		s := store{w.Store}
		r := &worker{store: s, log: w.Log, trace: w.Trace, hold: w.Hold, cpu: w.CPU}
		r.slice = cmp.Or(slice, w.JobTimeout/4) // a measurement that begins at its end has the rest
		river.AddWorker(w.Workers, r)
		w.Queues["replay"] = river.QueueConfig{MaxWorkers: 1} // it takes a processor: the others are for compactions
		w.Duties = append(w.Duties, postgres.Duty{
			Kind: task, Do: r.requeue, Needed: `
				EXISTS (SELECT FROM replays WHERE tenant_id = $1 AND finished_at IS NULL)`,
		})
	}
}

type worker struct {
	river.WorkerDefaults[jobArgs]
	store store
	log   *slog.Logger
	trace func(step string)
	hold  func(context.Context, session.Key) (release func(), err error)
	cpu   *admit.Gate
	slice time.Duration
}

// requeue asks again for the job of a tenant's replay that was lost.
func (w *worker) requeue(ctx context.Context, tenant uuid.UUID) error {
	lost, err := w.store.Requeue(ctx, tenant)
	if lost > 0 {
		w.log.WarnContext(ctx, "a replay had lost its job", "tenant", tenant)
	}
	return err
}

// Work measures sessions of a replay until its slice of time is over. Then another job continues, behind those of other
// tenants. What was measured is stored at once, so a job that takes over from a dead worker measures nothing twice.
func (w *worker) Work(ctx context.Context, job *river.Job[jobArgs]) error {
	r := replaying{worker: w, tenant: job.Args.Tenant, id: job.Args.Replay, job: job.ID}
	err := feature.Recovered(func() error { return r.work(ctx) })
	switch {
	case err == nil, errors.Is(err, session.ErrNotFound):
		return nil
	case feature.Stopping(ctx), job.Attempt < job.MaxAttempts:
		return err
	}
	ctx, cancel := feature.Recording(ctx)
	defer cancel()
	reason, _, _ := strings.Cut(err.Error(), "\n") // the lines after it are a stack, which belongs in the log
	return errors.Join(err, w.store.Fail(ctx, r.tenant, r.id, reason))
}

// replaying is a replay under way.
type replaying struct {
	*worker
	Stored
	tenant     uuid.UUID
	id         uuid.UUID
	job        int64
	contenders []replay.Contender
}

func (r *replaying) work(ctx context.Context) (err error) {
	began := time.Now()
	r.Stored, err = r.store.Begin(ctx, r.tenant, r.id, reachedShare)
	if errors.Is(err, session.ErrEnded) {
		return nil
	}
	if err == nil {
		r.contenders, err = contendersOf(r.Stored)
	}
	if err != nil {
		return err
	}
	r.trace("sampled")
	for measured := 0; measured == 0 || time.Since(began) < r.slice; measured++ {
		step, err := r.store.Next(ctx, r.tenant, r.id)
		if errors.Is(err, session.ErrEnded) {
			return r.end(ctx)
		}
		if err == nil {
			err = r.session(ctx, step)
		}
		if err != nil {
			return err
		}
	}
	ctx, cancel := feature.Recording(ctx) // the job's time may be up
	defer cancel()
	return r.store.Continue(ctx, r.tenant, r.id, r.job)
}

func contendersOf(r Stored) (list []replay.Contender, err error) {
	for _, c := range r.Contenders {
		var by replay.Contender
		if c.Source == FromYardstick {
			by, err = replay.Yardstick(c.Name)
		} else {
			by.Policy, err = policy.Parse(c.Policy)
			by = replay.Under(c.Name, by.Policy)
		}
		if err != nil {
			return nil, fmt.Errorf("contender %s: %w", c.Name, err)
		}
		list = append(list, by)
	}
	return list, nil
}

// session measures one session and records how that ended. It returns the errors of the database, and that the process
// stops: all others are the session's.
func (r *replaying) session(ctx context.Context, step Step) error {
	skipped, err := r.measure(ctx, step)
	state, reason := "measured", ""
	var failed *measureError
	switch {
	case errors.Is(err, session.ErrEnded):
		return nil // it is cancelled, as the next step says
	case errors.Is(err, session.ErrNotFound):
		state, reason = "skipped", SkippedErased
	case errors.As(err, &failed):
		r.log.ErrorContext(ctx, "replay of a session", "tenant", r.tenant, "replay", r.id, "session_key", step.Key.Key,
			"error", err)
		state = "failed"
		reason, _, _ = strings.Cut(err.Error(), "\n")
	case err != nil:
		return err
	case skipped != "":
		state, reason = "skipped", skipped
	}
	ctx, cancel := feature.Recording(ctx) // the job's time may be up
	defer cancel()
	if err := r.store.EndSession(ctx, step, state, reason); err != nil {
		return err
	}
	replayedTotal.WithLabelValues(state).Inc()
	r.trace("session")
	return nil
}

// measureError is why a session cannot be measured, whoever tries.
type measureError struct{ error }

// measure measures a session under each contender in each window, except those that have their outcome already. It
// returns why the session was skipped, or "".
func (r *replaying) measure(ctx context.Context, step Step) (skipped string, err error) {
	if step.Attempts > replayAttempts {
		return "", &measureError{fmt.Errorf("its worker died %d times", replayAttempts)}
	}
	release, err := r.hold(ctx, step.Key)
	if err != nil {
		return "", err
	}
	defer release()
	log, err := r.store.Log(ctx, step, r.Stored)
	if errors.Is(err, session.ErrDamaged) {
		return "", &measureError{err}
	}
	if err != nil || log.Skipped != "" {
		return log.Skipped, err
	}
	r.trace("log")
	windows := r.Windows
	if len(windows) == 0 {
		windows = []int{step.Window}
	}
	tasks := replay.Tasks([]*replay.Session{r.sessionOf(step, log)}, r.contenders, windows)
	if len(tasks) == 0 {
		return SkippedShort, nil
	}
	for i, t := range tasks {
		pair := Pair{Contender: r.numberOf(t.By.Name), Window: t.Window}
		if slices.Contains(step.Measured, pair) {
			continue
		}
		outcome, err := outcomeOf(ctx, t)
		if err != nil {
			return "", err
		}
		next := tasks[(i+1)%len(tasks)].By.Name
		if err := r.store.PutOutcome(ctx, step, pair, outcome, next); err != nil {
			return "", err
		}
		outcomesTotal.Inc()
		r.trace("outcome")
	}
	return "", nil
}

// numberOf returns the number of a contender in the replay's list.
func (r *replaying) numberOf(name string) int {
	return slices.IndexFunc(r.contenders, func(c replay.Contender) bool { return c.Name == name })
}

func (r *replaying) sessionOf(step Step, log Log) *replay.Session {
	s := &replay.Session{
		Name: step.Key.Key.String(), Format: log.Format, CPU: admit.Processors{Gate: r.cpu, Tenant: r.tenant},
	}
	for _, m := range log.Messages {
		s.Messages = append(s.Messages, replay.Message{Seq: m.Seq, Body: m.Body, Tokens: m.Tokens, At: m.CreatedAt})
	}
	return s
}

// outcomeOf does a measurement. All errors but that of a process that stops are a *measureError.
func outcomeOf(ctx context.Context, t replay.Task) (json.RawMessage, error) {
	var outcome replay.Outcome
	err := feature.Recovered(func() (err error) {
		outcome, err = replay.Measure(ctx, t.Session, t.By, t.Window)
		return err
	})
	switch {
	case err != nil && feature.Stopping(ctx):
		return nil, err
	case err != nil && ctx.Err() != nil:
		err = errors.New("it took longer than a job may take")
		fallthrough
	case err != nil:
		return nil, &measureError{fmt.Errorf("%s in a window of %d: %w", t.By.Name, t.Window, err)}
	}
	return json.Marshal(outcome)
}

// end makes the report of what was measured, and ends the replay.
func (r *replaying) end(ctx context.Context) error {
	stored, err := r.store.OutcomesOf(ctx, r.tenant, r.id)
	if err != nil {
		return err
	}
	outcomes := make([]replay.Outcome, len(stored))
	for i := range stored {
		if err := json.Unmarshal(stored[i], &outcomes[i]); err != nil {
			return err
		}
	}
	report, err := json.Marshal(replay.Summarise(outcomes, replay.Options{Baseline: r.Contenders[0].Name}))
	if err != nil {
		return err
	}
	if err := r.store.End(ctx, r.tenant, r.id, report, r.job); err != nil {
		return err
	}
	r.log.InfoContext(ctx, "replay ended", "tenant", r.tenant, "replay", r.id, "outcomes", len(outcomes))
	r.trace("ended")
	return nil
}
