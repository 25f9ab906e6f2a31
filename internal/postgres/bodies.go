package postgres

import (
	"bytes"
	"sync"

	"github.com/google/uuid"
	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/zframe"
)

// The memory for checkpoint bodies, in bytes: as they are stored, and decompressed for readers without zstd.
const (
	cachedBodies = 32 << 20
	cachedPlain  = 32 << 20
)

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

// plainBody is the body of a checkpoint, decompressed.
type plainBody struct {
	key  uuid.UUID
	n    int
	body []byte
}

func (b *plainBody) size() int { return len(b.body) }

// bodyCache holds the bodies of the checkpoints that were read last, by the session's address: an agent reads the same
// checkpoint at every turn, and that body is most of what a read costs PostgreSQL or, without zstd, the API.
type bodyCache[B any] struct {
	mu    sync.Mutex
	lru   *simplelru.LRU[session.Address, B]
	size  func(*B) int
	held  int
	limit int
}

func newBodyCache[B any](limit int, size func(*B) int) *bodyCache[B] {
	c := &bodyCache[B]{limit: limit, size: size}
	// Its only error is a limit of 0.
	c.lru, _ = simplelru.NewLRU(limit, func(_ session.Address, b B) { c.held -= size(&b) })
	return c
}

// get returns what is held for a session, the zero value if nothing is.
func (c *bodyCache[B]) get(at session.Address) B {
	c.mu.Lock()
	defer c.mu.Unlock()
	held, _ := c.lru.Get(at)
	return held
}

func (c *bodyCache[B]) forget(at session.Address) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lru.Remove(at)
}

// put holds the body that makes returns, unless one of that many bytes takes more than an eighth of the room.
func (c *bodyCache[B]) put(at session.Address, bytes int, makes func() B) {
	if bytes > c.limit/8 {
		return
	}
	b := makes()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lru.Remove(at)
	c.lru.Add(at, b)
	for c.held += c.size(&b); c.held > c.limit; {
		c.lru.RemoveOldest()
	}
}

// hold holds a copy of a view's body, which was checked.
func (s *Store) hold(at session.Address, v *View) {
	s.bodies.put(at, len(v.Body), func() heldBody {
		return heldBody{
			key: v.Key, n: v.Checkpoint, body: bytes.Clone(v.Body), validator: bytes.Clone(v.Validator),
			calls: bytes.Clone(v.OpenCalls), units: v.Units,
		}
	})
}

// ForgetBody makes the next read of a session's view read its checkpoint again, because what is held makes no valid
// view: it may have been mended since.
func (s *Store) ForgetBody(at session.Address) {
	s.bodies.forget(at)
	s.plain.forget(at)
}

// PlainBody returns the body of a view's checkpoint, decompressed, which is heavy work unless another reader has it. It
// must not be changed. Errors: a *session.DamagedError, and those of heavy.
func (s *Store) PlainBody(
	at session.Address, v *View, heavy func(bytes int64, work func() error) error,
) (body []byte, err error) {
	if held := s.plain.get(at); held.key == v.Key && held.n == v.Checkpoint && len(held.body) == v.Size {
		return held.body, nil
	}
	err = heavy(int64(v.Size), func() (err error) {
		if body, err = zframe.Decompress(nil, v.Body, v.Size); err != nil {
			return session.DamagedCheckpoint(v.Checkpoint, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.plain.put(at, v.Size, func() plainBody { return plainBody{key: v.Key, n: v.Checkpoint, body: body} })
	return body, nil
}
