package request_test

import (
	"errors"
	"io"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/session"
)

// dripping is a body of which a byte has come, and the rest has not.
type dripping struct{ came, rest chan struct{} }

func (d *dripping) Read(p []byte) (int, error) {
	select {
	case <-d.came:
		<-d.rest
		return 0, io.ErrUnexpectedEOF
	default:
		close(d.came)
		p[0] = ' '
		return 1, nil
	}
}

func (d *dripping) Close() error { return nil }

// Of a body that claims to be large, as much is in memory as has come. (The test runs alone: it counts memory.)
func TestAClaimedLengthTakesNoMemory(t *testing.T) {
	const bodies, claimed = 200, 1_000_000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	rest, done := make(chan struct{}), make(chan struct{})
	for range bodies {
		body := &dripping{make(chan struct{}), rest}
		r := httptest.NewRequest("POST", "/", body)
		r.ContentLength = claimed
		go func() {
			req := request.New(httptest.NewRecorder(), r)
			req.Raw = req.W
			req.Body()
			done <- struct{}{}
		}()
		<-body.came
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	close(rest)
	for range bodies {
		<-done
	}
	if each := int64(after.HeapAlloc-before.HeapAlloc) / bodies; each > 64<<10 {
		t.Errorf("a byte of a body of %d takes %d bytes of memory", claimed, each)
	}
}

func TestALargeBodyDrawsFromTheMemory(t *testing.T) {
	t.Parallel()
	text := strings.Repeat(" ", 1<<20)
	for name, test := range map[string]struct {
		size   int
		memory int64
		want   error
	}{
		"a small body draws nothing":         {32 << 10, 1, nil},
		"a large one what it is":             {1 << 20, 16 << 20, nil},
		"a large one more than there is":     {1 << 20, 100 << 10, session.ErrTooHeavy},
		"a large one more than there is now": {1 << 20, 8 << 20, session.ErrOverCapacity},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			memory := admit.New(admit.Config{Name: "memory", Size: test.memory, Each: test.memory, Patience: time.Millisecond})
			if test.want == session.ErrOverCapacity {
				if _, err := memory.Acquire(t.Context(), uuid.New(), test.memory*3/4); err != nil {
					t.Fatal(err)
				}
			}
			used := request.NewBuffer() // another request left a large buffer behind
			used.B = slices.Grow(used.B, 2<<20)
			used.Free()
			req := request.New(httptest.NewRecorder(), httptest.NewRequest("POST", "/", strings.NewReader(text[:test.size])))
			req.Raw, req.Memory = req.W, memory
			if body := req.Body(); !errors.Is(req.Err(), test.want) || test.want == nil && len(body) != test.size {
				t.Errorf("%d bytes, %v, want %v", len(body), req.Err(), test.want)
			}
			req.Free()
			if test.want == nil { // all of it came back
				if _, err := memory.Acquire(t.Context(), uuid.New(), test.memory); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestABufferWithoutMemoryIsNotKept(t *testing.T) {
	t.Parallel()
	for range 100 {
		b := request.NewBuffer()
		b.B = nil
		b.Free()
		if next := request.NewBuffer(); cap(next.B) == 0 {
			t.Fatal("a body would never fit into this buffer")
		}
	}
}
