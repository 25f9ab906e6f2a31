package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/session"
)

// Scope says for whom a Store works: at which gate its statements wait for a connection, and in which class. Work
// without a gate (a worker's, a command's) does not wait. It also says which sessions the statements see.
type Scope struct {
	Gate  *admit.Connections
	Class admit.Class
	sees  Sessions
	outer pgx.Tx // that the Store's transactions are parts of; nil for none
	once  bool   // transactions are not run again
}

// Sessions are those that a transaction sees. Row policies hide the others (varve.frozen in migrations).
type Sessions string

// Which sessions a transaction sees.
const (
	Served      Sessions = ""     // those whose messages are in the tables
	WithCold    Sessions = "cold" // and cold ones: for what needs the session's row and nothing of what was said
	AllSessions Sessions = "all"  // and archived ones: for what erases, holds, verifies, counts, archives or restores
)

// seeMore has the transaction see sessions that are not served.
const seeMore = `SELECT set_config('varve.frozen', $1, true)`

// In returns a Store on the same connections that works in another scope.
func (s *Store) In(scope Scope) *Store {
	scoped := *s
	scope.sees = s.scope.sees
	scope.outer, scope.once = s.scope.outer, s.scope.once
	scoped.scope = scope
	return &scoped
}

// Seeing returns a Store whose statements see these sessions, too.
func (s *Store) Seeing(more Sessions) *Store {
	if s.scope.sees == AllSessions || s.scope.sees == more {
		return s
	}
	seeing := *s
	seeing.scope.sees = more
	return &seeing
}

// TurnToWrite waits for the caller's turn to write to a session.
//
// Errors: ErrSessionBusy.
func (s *Store) TurnToWrite(ctx context.Context, at session.Address) (admit.Pen, error) {
	return s.scope.Gate.Write(ctx, at)
}
