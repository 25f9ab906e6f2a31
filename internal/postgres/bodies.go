package postgres

import (
	"bytes"
	"sync"

	"github.com/google/uuid"
	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/varve-dev/varve/internal/session"
)

// cachedBodies bounds the memory for checkpoint bodies, in bytes.
const cachedBodies = 32 << 20

// heldBody is the body of a checkpoint, and what else a View has of it. A checkpoint never changes, and neither its
// session's key nor its number is ever used again, so a body that is held is right as long as the database still
// names it as the newest.
type heldBody struct {
	key                           uuid.UUID
	n                             int
	body, validator, calls, units []byte // as in View
}

func (b *heldBody) size() int { return len(b.body) + len(b.validator) + len(b.calls) + len(b.units) }

// copyTo copies what is held into a view's own memory, units aside, which most readers do not need.
func (b *heldBody) copyTo(v *View) {
	v.Body = append(v.Body[:0], b.body...)
	v.Validator = append(v.Validator[:0], b.validator...)
	v.OpenCalls = append(v.OpenCalls[:0], b.calls...)
	v.Units = b.units
	v.Proof = v.Proof[:0]
}

// bodyCache holds the bodies of the checkpoints that were read last, by the session's address: an agent reads the same
// checkpoint at every turn, and that body is most of what a read costs PostgreSQL.
type bodyCache struct {
	mu    sync.Mutex
	lru   *simplelru.LRU[session.Address, heldBody]
	size  int
	limit int
}

func newBodyCache(limit int) *bodyCache {
	c := &bodyCache{limit: limit}
	// Its only error is a limit of 0.
	c.lru, _ = simplelru.NewLRU(limit, func(_ session.Address, b heldBody) { c.size -= b.size() })
	return c
}

// get returns what is held for a session, the zero heldBody if nothing is.
func (c *bodyCache) get(at session.Address) heldBody {
	c.mu.Lock()
	defer c.mu.Unlock()
	held, _ := c.lru.Get(at)
	return held
}

// ForgetBody makes the next read of a session's view read its checkpoint again, because what is held makes no valid
// view: it may have been mended since.
func (s *Store) ForgetBody(at session.Address) {
	s.bodies.mu.Lock()
	defer s.bodies.mu.Unlock()
	s.bodies.lru.Remove(at)
}

// put holds a copy of a view's body, which was checked, unless it takes more than an eighth of the room.
func (c *bodyCache) put(at session.Address, v *View) {
	if len(v.Body) > c.limit/8 {
		return
	}
	held := heldBody{
		key: v.Key, n: v.Checkpoint, body: bytes.Clone(v.Body), validator: bytes.Clone(v.Validator),
		calls: bytes.Clone(v.OpenCalls), units: v.Units,
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lru.Remove(at)
	c.lru.Add(at, held)
	for c.size += held.size(); c.size > c.limit; {
		c.lru.RemoveOldest()
	}
}
