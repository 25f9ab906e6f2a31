package wire_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/varve-dev/varve/internal/compact/compacttest"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

var views = flag.Int("views", 1000, "how many random views TestEveryRandomViewIsValid renders")

// models are those whose providers mind other things than most.
var models = []string{"", "", "claude-sonnet-4-5", "anthropic/claude-opus-4-6", "mistral-large-latest", "gemini-2.5-pro", "gemini-3-pro"}

// TestEveryRandomViewIsValid renders conversations with everything that agents get wrong, of several formats one after
// another, cut anywhere, in all formats.
func TestEveryRandomViewIsValid(t *testing.T) {
	t.Parallel()
	const chunks = 8
	for chunk := range chunks {
		t.Run(fmt.Sprint(chunk), func(t *testing.T) {
			t.Parallel()
			for seed := chunk; seed < *views && !t.Failed(); seed += chunks {
				rng := rand.New(rand.NewPCG(uint64(seed), 7))
				checkViews(t, seed, randomView(rng), rng)
			}
		})
	}
}

// randomView is what one to three programs said, each in its format.
func randomView(rng *rand.Rand) (view []wire.Stored) {
	for range 1 + rng.IntN(3) {
		f := session.Formats()[rng.IntN(len(session.Formats()))]
		options := compacttest.Options{Messages: 1 + rng.IntN(12), ResultTokens: 5, Wild: rng.IntN(5) > 0}
		said := compacttest.Session(rng, f, options)
		if rng.IntN(2) == 0 {
			said = said[:1+rng.IntN(len(said))]
		}
		for _, body := range said {
			view = append(view, wire.Stored{Format: f, Body: body, Seq: int64(len(view) + 1)})
		}
	}
	return view
}

func checkViews(t *testing.T, seed int, view []wire.Stored, rng *rand.Rand) {
	t.Helper()
	pendings := []wire.Pending{wire.KeepPending, wire.SynthesizePending, wire.DropPending}
	o := wire.Options{Model: models[rng.IntN(len(models))], Pending: pendings[rng.IntN(3)]}
	for _, target := range session.Formats() {
		made := wire.Render(target, view, o)
		for _, v := range wire.Validate(target, made.Bodies, o) {
			t.Errorf("seed %d, %s: message %d breaks %s: %s\n%s\nof\n%s", seed, target, v.Message, v.Rule, v.Detail,
				made.Bodies[v.Message], bytes.Join(made.Bodies[:v.Message], []byte("\n")))
			return
		}
		again := stored(target, made.Bodies)
		if err := same(made.Bodies, wire.Render(target, again, o)); err != nil {
			t.Errorf("seed %d, %s: what was rendered is rendered otherwise: %v", seed, target, err)
			return
		}
	}
}

func show(view []wire.Stored) string {
	var b bytes.Buffer
	for _, m := range view {
		fmt.Fprintf(&b, "%d %s %s\n", m.Seq, m.Format, m.Body)
	}
	return b.String()
}

func stored(f session.Format, bodies [][]byte) []wire.Stored {
	list := make([]wire.Stored, len(bodies))
	for i, body := range bodies {
		list[i] = wire.Stored{Format: f, Body: body, Seq: int64(i + 1)}
	}
	return list
}

// same wants a rendition of bodies, every one of which is JSON, to be those bytes, without repairs.
func same(bodies [][]byte, got *wire.Rendition) error {
	if len(got.Repairs) > 0 {
		return fmt.Errorf("repair %+v", got.Repairs[0])
	}
	if len(got.Bodies) != len(bodies) {
		return fmt.Errorf("%d messages are %d", len(bodies), len(got.Bodies))
	}
	for i := range bodies {
		if err := rawjson.Check(bodies[i], rawjson.Limits{}); err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
		if !bytes.Equal(bodies[i], got.Bodies[i]) {
			return fmt.Errorf("message %d is\n%s\nafter\n%s", i, got.Bodies[i], bodies[i])
		}
	}
	return nil
}

// TestAViewInItsOwnFormatKeepsItsBytes renders what is well-formed: nothing may change.
func TestAViewInItsOwnFormatKeepsItsBytes(t *testing.T) {
	t.Parallel()
	for _, f := range session.Formats() {
		for seed := range uint64(50) {
			bodies := compacttest.Session(rand.New(rand.NewPCG(seed, 3)), f, compacttest.Options{Messages: 30})
			made := wire.Render(f, stored(f, bodies), wire.Options{Model: "gemini-2.5-pro"})
			if f == session.Gemini && len(made.Bodies) == len(bodies)+1 {
				made.Bodies, made.Repairs = made.Bodies[:len(bodies)], made.Repairs[:len(made.Repairs)-1] // the user's word at the end
			}
			if err := same(bodies, made); err != nil {
				t.Fatalf("%s, seed %d: %v", f, seed, err)
			}
		}
	}
}
