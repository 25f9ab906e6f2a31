package audit

import (
	"context"

	"github.com/google/uuid"
)

// Kind is what kind of caller did something.
type Kind string

// The kinds of callers.
const (
	ByKey      Kind = "key"      // of the tenant
	ByToken    Kind = "token"    // of a session
	ByOperator Kind = "operator" // a key of an operator
	ByCommand  Kind = "command"  // varve, with rights in the database
	ByVarve    Kind = "varve"    // nobody asked: a process of Varve itself
)

// Actor is who does something. The zero Actor is Varve itself.
type Actor struct {
	Kind    Kind
	ID      uuid.UUID // of the key or the session token
	Request string    // the id of the request
	Address string    // where it came from
}

type actorKey struct{}

// With returns a context in which the store does what it does for an actor, who may become known later.
func With(ctx context.Context, a *Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, a)
}

// From returns for whom the store works in a context.
func From(ctx context.Context) Actor {
	if a, ok := ctx.Value(actorKey{}).(*Actor); ok && a.Kind != "" {
		return *a
	}
	return Actor{Kind: ByVarve}
}
