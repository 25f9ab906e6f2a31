package jobs_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/session"
)

// packSteps are where a packer fails.
var packSteps = []string{
	"packs_planned", "packed", "pack_committed", "",
}

// packHistory is a random history of sessions that are packed.
type packHistory struct {
	*world
	random *rand.Rand
	logs   map[session.Address][][]byte
	made   int
	killed map[string]int // by step
}

func (h *packHistory) begin() {
	h.made++
	at := h.session(fmt.Sprint("s", h.made))
	h.logs[at] = turns(40, 1500)
	h.appendLog(at, session.OpenAIChat, h.logs[at])
}

func (h *packHistory) one() session.Address {
	ats := h.all()
	return ats[h.random.IntN(len(ats))]
}

func (h *packHistory) all() (ats []session.Address) {
	for at := range h.logs {
		ats = append(ats, at)
	}
	slices.SortFunc(ats, func(a, b session.Address) int { return strings.Compare(a.ID, b.ID) })
	return ats
}

// packUntil packs a session until a step, as a process does that is killed there.
func (h *packHistory) packUntil(at session.Address, step string) {
	h.Helper()
	type killed struct{}
	came := func(now string) {
		if now == step {
			h.killed[step]++
			panic(killed{})
		}
	}
	defer func() {
		if by := recover(); by != nil && by != (killed{}) {
			panic(by)
		}
	}()
	if err := h.pack(at, came); err != nil {
		h.Fatal(err)
	}
}

// TestPacksSurviveRandomHistories packs with workers that are killed at every step, forks, erases, freezes and
// collects, and compares every session with what was appended. In the end no object is left, without a collection.
func TestPacksSurviveRandomHistories(t *testing.T) {
	t.Parallel()
	w, _ := newWorldOfPacks(t)
	w.work(jobs.Config{KeepWhole: true})
	h := &packHistory{world: w, random: rand.New(rand.NewPCG(*archiveSeed, 95)), logs: map[session.Address][][]byte{}, killed: map[string]int{}}
	h.begin()
	h.begin()
	for n := range 40 {
		if len(h.logs) == 0 {
			h.begin()
		}
		at := h.one()
		w.settled()
		before := w.served(at)
		switch kind := h.random.IntN(11); kind {
		default:
			more := append(turn(100+n, 1500), turn(200+n, 1500)...)
			h.logs[at] = append(h.logs[at], more...)
			w.appendLog(at, session.OpenAIChat, more)
			if _, _, err := w.store.Compact(t.Context(), at, nil); err != nil {
				t.Fatal(err)
			}
			w.settled()
			before = w.served(at)
			h.packUntil(at, packSteps[n%len(packSteps)])
		case 0, 1:
			h.made++
			seq := 1 + h.random.IntN(len(h.logs[at]))
			fork := w.fork(at, fmt.Sprint("s", h.made), int64(seq))
			h.logs[fork] = slices.Clone(h.logs[at][:seq])
		case 2:
			w.frozen(at)
		case 3:
			w.collected()
		case 4:
			if len(h.logs) > 2 {
				w.erase(at)
				delete(h.logs, at)
				continue
			}
		}
		if after := w.served(at); after != before {
			t.Errorf("%s was %s, and is %s", at.ID, before, after)
		}
		w.same(at, session.OpenAIChat, h.logs[at])
	}
	w.settled()
	for at, log := range h.logs {
		w.used(at)
		w.whole(at, log)
	}
	w.verified()
	t.Logf("packers were killed at %v, %d sessions", h.killed, h.made)
	if len(h.killed) < 3 {
		t.Errorf("packers were killed at %v", h.killed)
	}
	for at := range h.logs {
		w.erase(at)
	}
	if left := w.objects(); len(left) > 0 {
		t.Errorf("after all was erased there are %q", left)
	}
}
