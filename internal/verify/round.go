package verify

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/varve-dev/varve/internal/session"
)

var (
	violationsTotal = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "varve_verify_violations_total",
		Help: "Things that the periodic verification found to be wrong, by kind.",
	}, []string{"kind"})
	checkedTotal = promauto.NewCounter(prometheus.CounterOpts{
		Name: "varve_verify_checked_bytes_total", Help: "Bytes that the periodic verification has read.",
	})
	explainedTotal = promauto.NewCounter(prometheus.CounterOpts{
		Name: "varve_verify_explained_bytes_total",
		Help: "Of the checked bytes, those that are what they should be, and that something names.",
	})
	sessionsTotal = promauto.NewCounter(prometheus.CounterOpts{
		Name: "varve_verify_sessions_total", Help: "Sessions that the periodic verification has looked at.",
	})
)

// Rolling is the periodic verification: each slice looks at some sessions of every tenant, and continues where the
// slice before ended.
type Rolling struct {
	Verifier
	Log   *slog.Logger
	Round time.Duration // in which every session is looked at once
	Every time.Duration // from one slice to the next

	// Hold, if set, waits for the memory that a session takes, until release is called.
	Hold func(ctx context.Context, key session.Key) (release func(), err error)
}

// Slice looks at as many sessions of a tenant as one slice of a round has, or fewer if ctx ends.
func (r *Rolling) Slice(ctx context.Context, tenant uuid.UUID) error {
	at, err := r.Verification(ctx, tenant)
	if err != nil {
		return err
	}
	total, err := r.Store.CountSessions(ctx, tenant)
	if err != nil {
		return err
	}
	keys, err := r.Store.AuditKeys(ctx, tenant, at.Cursor, r.share(total))
	if err != nil {
		return err
	}
	for _, key := range keys {
		if err := r.session(ctx, session.Key{Tenant: tenant, Key: key}); err != nil {
			return err
		}
	}
	if len(keys) < r.share(total) {
		return r.endRound(ctx, tenant)
	}
	return nil
}

// share returns how many of all sessions one slice looks at: at least one.
func (r *Rolling) share(total int64) int {
	slices := max(int64(r.Round/max(r.Every, 1)), 1)
	return int((total + slices - 1) / slices)
}

// look verifies a session when there is the memory for it.
func (r *Rolling) look(ctx context.Context, key session.Key) (report Report, err error) {
	if r.Hold != nil {
		release, err := r.Hold(ctx, key)
		if errors.Is(err, session.ErrNotFound) {
			return r.archive(ctx, key) // it was erased, or is archived
		}
		if err != nil {
			return report, err
		}
		defer release()
	}
	return r.Session(ctx, key)
}

func (r *Rolling) session(ctx context.Context, key session.Key) error {
	report, err := r.look(ctx, key)
	if err != nil {
		return err
	}
	sessionsTotal.Inc()
	checkedTotal.Add(float64(report.Bytes))
	explainedTotal.Add(float64(max(report.Bytes-report.Unexplained, 0)))
	for i := range report.Findings {
		f := &report.Findings[i]
		violationsTotal.WithLabelValues(string(f.Kind)).Inc()
		r.Log.ErrorContext(ctx, "verification: something is wrong", "kind", f.Kind, "tenant", f.Tenant,
			"session", f.Session, "where", f.Where(), "what", f.What, "do", f.Do)
	}
	return r.record(ctx, key, &report)
}
