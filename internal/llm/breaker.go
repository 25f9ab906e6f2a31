package llm

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sony/gobreaker/v2"
)

// errRests is the error of a call that a breaker does not let through.
var errRests = errors.New("the breaker is open")

// breaker stops the calls of a provider's model that keeps failing. After a time it lets one call through: if that
// succeeds, the model is asked again, otherwise it rests once more.
type breaker struct {
	circuit *gobreaker.CircuitBreaker[Reply]
	resting time.Duration
	until   atomic.Pointer[time.Time] // the end of the rest, by a clock that does not jump
}

// The states of a breaker, as its metric shows them.
const (
	closed = iota
	halfOpen
	open
)

func newBreaker(provider, model string, b Breaker, log *slog.Logger) *breaker {
	made := &breaker{resting: seconds(b.Seconds)}
	state := breakerState.WithLabelValues(provider, model)
	opened := openedTotal.WithLabelValues(provider, model)
	state.Set(closed)
	made.circuit = gobreaker.NewCircuitBreaker[Reply](gobreaker.Settings{
		Timeout:      made.resting,
		ReadyToTrip:  func(c gobreaker.Counts) bool { return int(c.ConsecutiveFailures) >= b.Failures },
		IsSuccessful: func(err error) bool { return !sick(err) },
		// A call whose caller has gone says nothing about the model.
		IsExcluded: func(err error) bool {
			return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
		},
		OnStateChange: func(_ string, _, to gobreaker.State) {
			made.changed(to, state, opened)
			log.Warn("the breaker of a model", "provider", provider, "model", model, "state", to.String())
		},
	})
	return made
}

// changed notes a change of state.
func (b *breaker) changed(to gobreaker.State, state prometheus.Gauge, opened prometheus.Counter) {
	switch to {
	case gobreaker.StateOpen:
		b.until.Store(new(time.Now().Add(b.resting)))
		state.Set(open)
		opened.Inc()
	case gobreaker.StateHalfOpen:
		state.Set(halfOpen)
	case gobreaker.StateClosed:
		state.Set(closed)
	}
}

// sick reports whether an error speaks against the provider or its model, and not against the request.
func sick(err error) bool {
	for _, kind := range []error{ErrUnavailable, ErrLimited, ErrMalformed} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// do makes a call if the breaker lets it through. Its error is errRests if not.
func (b *breaker) do(call func() (Reply, error)) (Reply, error) {
	reply, err := b.circuit.Execute(call)
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		return Reply{}, errRests
	}
	return reply, err
}

// rest returns how long no call is let through.
func (b *breaker) rest() time.Duration {
	if b.circuit.State() != gobreaker.StateOpen {
		return 0
	}
	return max(time.Until(*b.until.Load()), time.Nanosecond)
}
