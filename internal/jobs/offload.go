package jobs

import (
	"context"
	"errors"
	"time"

	"github.com/riverqueue/river"

	"github.com/varve-dev/varve/internal/feature"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tier"
)

type offloadWorker struct {
	river.WorkerDefaults[queue.OffloadArgs]
	*tier.Packer
	Off bool // the operator's switch: what is packed stays packed, and nothing more is
}

// nextSlice is how long a session waits whose time was up, while others have their turn.
const nextSlice = time.Second

// Work packs the old messages of one session. Damage does not go away: the job ends, and the session's messages stay
// where they are.
func (w *offloadWorker) Work(ctx context.Context, job *river.Job[queue.OffloadArgs]) error {
	if w.Off {
		return nil
	}
	key := session.Key{Tenant: job.Args.Tenant, Key: job.Args.Session}
	var done bool
	err := feature.Recovered(func() (err error) {
		done, err = w.Session(ctx, key, job.ID)
		return err
	})
	switch {
	case errors.Is(err, session.ErrNotFound), err == nil && done:
		return nil
	case errors.Is(err, session.ErrDamaged):
		postgres.CountDamage(err)
		w.Log.ErrorContext(ctx, "messages cannot be packed",
			"tenant", key.Tenant, "session_key", key.Key, "error", err)
		return nil
	case err == nil:
		return river.JobSnooze(nextSlice)
	}
	return err
}
