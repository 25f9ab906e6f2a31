package modelcall

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/varve-dev/varve/internal/compact/summary"
	"github.com/varve-dev/varve/internal/llm"
	"github.com/varve-dev/varve/internal/session"
)

// leaseTime is how long a process that dies at a call keeps others from making it. One that lives renews its lease
// three times within it, and gives a call up if it could not: the lease still lasts for a while then, so that two
// processes never make the same call at the same time.
const leaseTime = 20 * time.Second

// leaseTime returns that of the caller, which tests set.
func (a *Caller) leaseTime() time.Duration { return cmp.Or(a.lease, leaseTime) }

// leased asks the model, and renews the lease meanwhile. It gives the call up if the lease is lost.
func (r *run) leased(ctx context.Context, lease session.ModelLease, d summary.Dialogue) (llm.Reply, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		cancel(r.renew(ctx, lease))
	}()
	reply, err := r.model.Ask(ctx, r.tenant, d)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	cancel(nil)
	<-ended
	return reply, err
}

// renew renews a lease until ctx ends. It returns why it is lost.
func (r *run) renew(ctx context.Context, lease session.ModelLease) error {
	renewed, every := time.Now(), lease.Call.Time/4
	for {
		if err := pause(ctx, every); err != nil {
			return err
		}
		began := time.Now()
		within, cancel := context.WithTimeout(ctx, every)
		err := r.calls().Renew(within, lease)
		cancel()
		switch {
		case err == nil:
			renewed = began
		case errors.Is(err, session.ErrStale), time.Since(renewed) > 2*every:
			return err
		}
	}
}

// settleTime bounds how long a call is tried to be settled, also if its caller has gone: what was paid for is kept.
const settleTime = 30 * time.Second

// settle ends a call in the database. It tries again while the database is away.
func (r *run) settle(ctx context.Context, end func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	for wait := firstLook; ; wait = min(2*wait, nextLooks) {
		err := end(ctx)
		if err == nil || errors.Is(err, session.ErrStale) || pause(ctx, wait) != nil {
			return err
		}
	}
}
