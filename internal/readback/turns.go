package readback

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/session"
)

// Greps and searches of one tenant that this process runs at once, and how long another one waits for its turn.
const (
	maxTurns = 2
	turnWait = time.Second
)

// turns counts those that run or wait by their tenants.
var turns = struct {
	sync.Mutex
	of map[uuid.UUID]*turn
}{of: map[uuid.UUID]*turn{}}

type turn struct {
	running chan struct{}
	users   int
}

// takeTurn waits until the tenant may run another grep or search. The caller ends its turn with done.
//
// Errors: ErrBusy, ctx's.
func takeTurn(ctx context.Context, tenant uuid.UUID) (done func(), err error) {
	turns.Lock()
	t := turns.of[tenant]
	if t == nil {
		t = &turn{running: make(chan struct{}, maxTurns)}
		turns.of[tenant] = t
	}
	t.users++
	turns.Unlock()
	leave := func() {
		turns.Lock()
		defer turns.Unlock()
		if t.users--; t.users == 0 {
			delete(turns.of, tenant)
		}
	}
	wait := time.NewTimer(turnWait)
	defer wait.Stop()
	select {
	case t.running <- struct{}{}:
		return func() { <-t.running; leave() }, nil
	case <-wait.C:
		err = session.ErrBusy
	case <-ctx.Done():
		err = ctx.Err()
	}
	leave()
	return nil, err
}
