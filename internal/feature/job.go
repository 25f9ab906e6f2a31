package feature

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"
)

// Recovered calls do, and returns a panic of it as an error, with the stack behind the first line.
func Recovered(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return do()
}

// Stopping reports whether a job is over because its process stops, so that River hands it to another.
func Stopping(ctx context.Context) bool {
	return ctx.Err() != nil && !errors.Is(context.Cause(ctx), context.DeadlineExceeded)
}

// recordTimeout bounds how long an attempt may take to record how it ended.
const recordTimeout = 10 * time.Second

// Recording returns a context in which a job records how it ended, although its time may be up.
func Recording(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
}

// InfrastructureWait returns the time from a failure of the infrastructure to the next attempt: one second, two, then
// about four. Not all sessions that failed together shall come back together.
func InfrastructureWait(attempt int) time.Duration {
	wait := time.Second << min(max(attempt-1, 0), 2)
	return wait*3/4 + rand.N(wait/2)
}

// SomeSeconds returns the time to the next attempt of what is not counted by attempts.
func SomeSeconds() time.Duration { return InfrastructureWait(3) }
