package llm

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/varve-dev/varve/internal/compact/summary"

	"github.com/google/uuid"
)

// How long a retry waits at least if the provider says nothing, see pause.
const (
	firstPause = 500 * time.Millisecond
	maxPause   = 30 * time.Second
)

// ask makes a call with its retries. A slot is held meanwhile: a provider that limits the rate gets fewer calls.
func (c *Configured) ask(ctx context.Context, tenant uuid.UUID, d summary.Dialogue) (Reply, error) {
	if left := c.breaker.rest(); left > 0 {
		return Reply{}, c.open(left)
	}
	slot, err := c.slots.Await(ctx, tenant, 1)
	if err != nil {
		return Reply{}, err
	}
	defer slot.Done()
	within, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	for attempt := 1; ; attempt++ {
		reply, err := c.attempt(ctx, within, d)
		var failed *Error
		if err == nil || !errors.As(err, &failed) || attempt == c.attempts || !again(failed) {
			return reply, err
		}
		if wait(within, pause(attempt, failed.RetryAfter)) != nil || c.breaker.rest() > 0 {
			return Reply{}, orGone(ctx, err)
		}
	}
}

// orGone returns the error of ctx if the caller has gone, else err.
func orGone(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// again reports whether the same call may succeed soon, and costs nothing twice.
func again(e *Error) bool {
	return e.Free && (errors.Is(e, ErrLimited) || errors.Is(e, ErrUnavailable))
}

// attempt makes one attempt of a call.
func (c *Configured) attempt(ctx, within context.Context, d summary.Dialogue) (Reply, error) {
	reply, err := c.breaker.do(func() (Reply, error) {
		reply, err := c.wire.Ask(within, d)
		if err == nil {
			return reply, nil
		}
		var failed *Error
		if ctx.Err() == nil && !errors.As(err, &failed) {
			err = &Error{Kind: ErrUnavailable, Model: c.Name, Reason: "no answer within " + c.timeout.String()}
		}
		return Reply{}, orGone(ctx, err)
	})
	if errors.Is(err, errRests) {
		return Reply{}, c.open(c.breaker.rest())
	}
	return reply, err
}

func (c *Configured) open(left time.Duration) *Error {
	return &Error{Kind: ErrOpen, Model: c.Name, RetryAfter: left, Free: true}
}

// pause returns how long to wait before the next attempt: a random part of a time that doubles, so that the callers of
// a provider that has failed do not all return at once, after the time that the provider asked for.
func pause(attempt int, asked time.Duration) time.Duration {
	return asked + rand.N(min(firstPause<<(attempt-1), maxPause))
}

// wait waits for a time. Its error is not nil, at once, if ctx ends before.
func wait(ctx context.Context, d time.Duration) error {
	if end, ok := ctx.Deadline(); ok && time.Until(end) < d {
		return context.DeadlineExceeded
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
