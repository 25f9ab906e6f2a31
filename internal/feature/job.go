package feature

import (
	"context"
	"errors"
	"fmt"
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
