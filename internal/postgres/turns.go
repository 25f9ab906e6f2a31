package postgres

import (
	"context"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/session"
)

// turns are what a context carries: the gates of connections that its statements ask, and their class.
type turns struct {
	of    *admit.Connections
	class admit.Class
}

type turnsKey struct{}

// Sharing returns a context whose statements take their turns at connections. Work without one (a worker's, a
// command's) takes none.
func Sharing(ctx context.Context, of *admit.Connections, class admit.Class) context.Context {
	return context.WithValue(ctx, turnsKey{}, turns{of, class})
}

func turnsOf(ctx context.Context) turns {
	t, _ := ctx.Value(turnsKey{}).(turns)
	return t
}

// turnOf waits until a tenant may take one more connection for the work of a context.
//
// Errors: those of admit.Connections.Acquire.
func turnOf(ctx context.Context, tenant uuid.UUID) (admit.Turn, error) {
	t := turnsOf(ctx)
	return t.of.Acquire(ctx, t.class, tenant)
}

// penOf waits for a turn to write to a session.
//
// Errors: ErrSessionBusy.
func penOf(ctx context.Context, at session.Address) (admit.Pen, error) {
	return turnsOf(ctx).of.Write(ctx, at)
}
