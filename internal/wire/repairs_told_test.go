package wire_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/provider"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

// TestRepairsTellOfEveryMessageThatDiffers renders random conversations for every server of their own format. Each
// message that a view does not have as it was appended must be named by a repair.
func TestRepairsTellOfEveryMessageThatDiffers(t *testing.T) {
	t.Parallel()
	pendings := []wire.Pending{wire.KeepPending, wire.SynthesizePending, wire.DropPending}
	for _, f := range session.Formats() {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			servers := append(provider.DialectsOf(f), "")
			for seed := range *views {
				rng := rand.New(rand.NewPCG(uint64(seed), 26))
				o := wire.Options{
					Dialect: servers[rng.IntN(len(servers))], Model: models[rng.IntN(len(models))],
					Pending: pendings[rng.IntN(len(pendings))],
				}
				view := dialectView(rng, f)
				for i := range view {
					view[i].Seq = int64(i + 1)
				}
				checkTold(t, f, o, view)
				if t.Failed() {
					t.Fatalf("seed %d", seed)
				}
			}
		})
	}
}

func checkTold(t *testing.T, f session.Format, o wire.Options, view []wire.Stored) {
	t.Helper()
	made := wiretest.Render(f, view, o)
	told := map[int64]bool{}
	for _, r := range made.Repairs {
		told[r.Seq] = true
	}
	left := map[string]int{}
	for _, body := range made.Bodies {
		left[string(body)]++
	}
	for _, m := range view {
		if m.Format != f || told[m.Seq] {
			continue
		}
		if left[string(m.Body)]--; left[string(m.Body)] < 0 {
			t.Errorf("%v: no repair names message %d, %s\nthe view has\n%s\nrepairs %v\nof\n%s",
				o, m.Seq, m.Body, bytes.Join(made.Bodies, []byte("\n")), made.Repairs, show(view))
			return
		}
	}
}
