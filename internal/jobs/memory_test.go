package jobs_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/session"
)

// With the memory for one session, four slots compact four sessions one after the other, and all of them.
func TestSessionsAreCompactedAtOnceAsFarAsTheMemoryReaches(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		memory *admit.Gate
		peak   int64
	}{
		"for one":          {admit.New(admit.Config{Name: "memory", Size: 100 << 10, Each: 100 << 10, Patience: time.Millisecond}), 1}, // no session fits: each has it alone
		"without a bound":  {nil, 4},
		"for more than is": {admit.New(admit.Config{Name: "memory", Size: 1 << 40, Each: 1 << 40, Patience: time.Minute}), 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var at []session.Address
			for n := range 4 {
				at = append(at, w.session(fmt.Sprint("s", n)))
				w.fill(at[n])
			}
			var running, peak atomic.Int64
			enough := make(chan struct{})
			w.work(jobs.Config{Memory: test.memory, Trace: func(step string) {
				switch step {
				case "snapshot":
					now := running.Add(1)
					for was := peak.Load(); now > was && !peak.CompareAndSwap(was, now); was = peak.Load() {
					}
					if now == test.peak && test.peak > 1 {
						close(enough)
					}
					if test.peak > 1 {
						<-enough
					}
				case "committed":
					running.Add(-1)
				}
			}})
			w.settle()
			if peak.Load() != test.peak {
				t.Errorf("%d compactions ran at once, want %d", peak.Load(), test.peak)
			}
			for _, each := range at {
				if found, err := w.store.Session(t.Context(), each); err != nil || found.Checkpoint == 0 {
					t.Errorf("%s is not compacted: %+v, %v", each.ID, found, err)
				}
			}
		})
	}
}
