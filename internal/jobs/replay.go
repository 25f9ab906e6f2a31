package jobs

import (
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
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/replay"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tier"
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

type replayWorker struct {
	river.WorkerDefaults[queue.ReplayArgs]
	Admission *admission
	Store     *postgres.Store
	Thawer    *tier.Thawer
	CPU       *admit.Gate
	Log       *slog.Logger
	Trace     func(step string)
	Slice     time.Duration
}

// Work measures sessions of a replay until its slice of time is over. Then another job continues, behind those of other
// tenants. What was measured is stored at once, so a job that takes over from a dead worker measures nothing twice.
func (w *replayWorker) Work(ctx context.Context, job *river.Job[queue.ReplayArgs]) error {
	r := replaying{replayWorker: w, tenant: job.Args.Tenant, id: job.Args.Replay, job: job.ID}
	err := recovered(func() error { return r.work(ctx) })
	switch {
	case err == nil, errors.Is(err, session.ErrNotFound):
		return nil
	case stopping(ctx), job.Attempt < job.MaxAttempts:
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	reason, _, _ := strings.Cut(err.Error(), "\n") // the lines after it are a stack, which belongs in the log
	return errors.Join(err, w.Store.FailReplay(ctx, r.tenant, r.id, reason))
}

// stopping reports whether a job is over because its process stops, so that River hands it to another.
func stopping(ctx context.Context) bool {
	return ctx.Err() != nil && !errors.Is(context.Cause(ctx), context.DeadlineExceeded)
}

// replaying is a replay under way.
type replaying struct {
	*replayWorker
	session.Replay
	tenant     uuid.UUID
	id         uuid.UUID
	job        int64
	contenders []replay.Contender
}

func (r *replaying) work(ctx context.Context) (err error) {
	began := time.Now()
	r.Replay, err = r.Store.BeginReplay(ctx, r.tenant, r.id, reachedShare)
	if errors.Is(err, session.ErrEnded) {
		return nil
	}
	if err == nil {
		r.contenders, err = contendersOf(r.Replay)
	}
	if err != nil {
		return err
	}
	r.Trace("sampled")
	for measured := 0; measured == 0 || time.Since(began) < r.Slice; measured++ {
		step, err := r.Store.NextInReplay(ctx, r.tenant, r.id)
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
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout) // the job's time may be up
	defer cancel()
	return r.Store.ContinueReplay(ctx, r.tenant, r.id, r.job)
}

func contendersOf(r session.Replay) (list []replay.Contender, err error) {
	for _, c := range r.Contenders {
		var by replay.Contender
		if c.Source == session.FromYardstick {
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
func (r *replaying) session(ctx context.Context, step postgres.ReplayStep) error {
	skipped, err := r.measure(ctx, step)
	state, reason := "measured", ""
	var failed *measureError
	switch {
	case errors.Is(err, session.ErrEnded):
		return nil // it is cancelled, as the next step says
	case errors.Is(err, session.ErrNotFound):
		state, reason = "skipped", session.SkippedErased
	case errors.As(err, &failed):
		r.Log.ErrorContext(ctx, "replay of a session", "tenant", r.tenant, "replay", r.id, "session_key", step.Key.Key,
			"error", err)
		state = "failed"
		reason, _, _ = strings.Cut(err.Error(), "\n")
	case err != nil:
		return err
	case skipped != "":
		state, reason = "skipped", skipped
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout) // the job's time may be up
	defer cancel()
	if err := r.Store.EndReplaySession(ctx, step, state, reason); err != nil {
		return err
	}
	replayedTotal.WithLabelValues(state).Inc()
	r.Trace("session")
	return nil
}

// measureError is why a session cannot be measured, whoever tries.
type measureError struct{ error }

// measure measures a session under each contender in each window, except those that have their outcome already. It
// returns why the session was skipped, or "".
func (r *replaying) measure(ctx context.Context, step postgres.ReplayStep) (skipped string, err error) {
	if step.Attempts > replayAttempts {
		return "", &measureError{fmt.Errorf("its worker died %d times", replayAttempts)}
	}
	release, err := r.hold(ctx, step.Key)
	if err != nil {
		return "", err
	}
	defer release()
	log, err := r.Store.ReplayLog(ctx, step, r.Replay)
	if errors.Is(err, session.ErrDamaged) {
		return "", &measureError{err}
	}
	if err != nil || log.Skipped != "" {
		return log.Skipped, err
	}
	r.Trace("log")
	windows := r.Windows
	if len(windows) == 0 {
		windows = []int{step.Window}
	}
	tasks := replay.Tasks([]*replay.Session{r.sessionOf(step, log)}, r.contenders, windows)
	if len(tasks) == 0 {
		return session.SkippedShort, nil
	}
	for i, t := range tasks {
		pair := postgres.ReplayPair{Contender: r.place(t.By.Name), Window: t.Window}
		if slices.Contains(step.Measured, pair) {
			continue
		}
		outcome, err := outcomeOf(ctx, t)
		if err != nil {
			return "", err
		}
		next := tasks[(i+1)%len(tasks)].By.Name
		if err := r.Store.PutOutcome(ctx, step, pair, outcome, next); err != nil {
			return "", err
		}
		outcomesTotal.Inc()
		r.Trace("outcome")
	}
	return "", nil
}

// hold waits for the memory of a session that is to be measured, and brings it back if it is cold.
func (r *replaying) hold(ctx context.Context, key session.Key) (release func(), err error) {
	if err := r.Thawer.Read(ctx, key); err != nil {
		return nil, err
	}
	return r.Admission.hold(ctx, key)
}

// place returns the place of a contender in the replay's list.
func (r *replaying) place(name string) int {
	return slices.IndexFunc(r.contenders, func(c replay.Contender) bool { return c.Name == name })
}

func (r *replaying) sessionOf(step postgres.ReplayStep, log postgres.ReplayLog) *replay.Session {
	s := &replay.Session{
		Name: step.Key.Key.String(), Format: log.Format, CPU: admit.Processors{Gate: r.CPU, Tenant: r.tenant},
	}
	for _, m := range log.Messages {
		s.Messages = append(s.Messages, replay.Message{Seq: m.Seq, Body: m.Body, Tokens: m.Tokens, At: m.CreatedAt})
	}
	return s
}

// outcomeOf does a measurement. All errors but that of a process that stops are a *measureError.
func outcomeOf(ctx context.Context, t replay.Task) (json.RawMessage, error) {
	var outcome replay.Outcome
	err := recovered(func() (err error) {
		outcome, err = replay.Measure(ctx, t.Session, t.By, t.Window)
		return err
	})
	switch {
	case err != nil && stopping(ctx):
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
	stored, err := r.Store.ReplayOutcomes(ctx, r.tenant, r.id)
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
	if err := r.Store.EndReplay(ctx, r.tenant, r.id, report, r.job); err != nil {
		return err
	}
	r.Log.InfoContext(ctx, "replay ended", "tenant", r.tenant, "replay", r.id, "outcomes", len(outcomes))
	r.Trace("ended")
	return nil
}
