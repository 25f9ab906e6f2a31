package wire_test

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/varve-dev/varve/internal/compact/compacttest"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

// ignored are the facts of a shape, each with what takes it away from a message of a view of a format.
var ignored = map[string]func(f session.Format, m *wire.MessageShape){
	"the format":             func(f session.Format, m *wire.MessageShape) { m.Format = f },
	"the role":               func(_ session.Format, m *wire.MessageShape) { m.Role = "user" },
	"what needs repair":      func(_ session.Format, m *wire.MessageShape) { m.Flags &^= wire.FlagMayNeedRepair },
	"system messages":        func(_ session.Format, m *wire.MessageShape) { m.Flags &^= wire.FlagPinned },
	"reasoning":              func(_ session.Format, m *wire.MessageShape) { m.Flags &^= wire.FlagReasoning },
	"Gemini's signatures":    func(_ session.Format, m *wire.MessageShape) { m.Flags &^= wire.FlagUnsigned },
	"what is beside results": func(_ session.Format, m *wire.MessageShape) { m.Flags &^= wire.FlagMixed },
	"custom tools":           func(_ session.Format, m *wire.MessageShape) { m.Flags &^= wire.FlagCustom },
	"other forms of calls":   func(_ session.Format, m *wire.MessageShape) { m.Flags &^= wire.FormFlags },
	"the calls":              func(_ session.Format, m *wire.MessageShape) { m.Calls = nil },
	"the results":            func(_ session.Format, m *wire.MessageShape) { m.Answers = nil },
	"Gemini's names": func(f session.Format, m *wire.MessageShape) {
		if f == session.Gemini {
			m.Flags &^= wire.NameFlags
		}
	},
	"what not every server takes": func(f session.Format, m *wire.MessageShape) {
		if f == session.OpenAIChat || f == session.AISDK {
			m.Flags |= wire.FlagCommon
		}
	},
	"the ids": func(_ session.Format, m *wire.MessageShape) {
		for i := range m.Calls {
			m.Calls[i] = "id"
		}
		for i := range m.Answers {
			m.Answers[i] = "id"
		}
	},
}

// TestEveryFactThatAFastValidatorIgnoresIsCaught takes the facts away one by one. The validator then calls some view
// valid that Render would change, so the comparison of TestAFastValidatorAcceptsOnlyViewsThatNeedNoRepair sees it.
func TestEveryFactThatAFastValidatorIgnoresIsCaught(t *testing.T) {
	t.Parallel()
	left := maps.Clone(ignored)
	for seed := uint64(0); seed < 20_000 && len(left) > 0; seed++ {
		rng := rand.New(rand.NewPCG(seed, 15))
		f, view := viewToMisjudge(rng)
		o := wire.Options{Model: models[rng.IntN(len(models))]}
		for name, ignore := range left {
			validator := wire.NewFastValidator(f)
			for _, m := range view {
				shape := wire.ShapeOfBody(m.Format, m.Body)
				ignore(f, &shape)
				validator.Add(&shape)
			}
			if validator.ValidFor(o) && isChanged(f, view, o) {
				t.Logf("%s: caught by view %d of %s for %q", name, seed, f, o.Model)
				delete(left, name)
			}
		}
	}
	for name := range left {
		t.Errorf("nothing catches a validator that ignores %s", name)
	}
}

// viewToMisjudge returns a view of a few messages, some of them unusual, of another format or out of order.
func viewToMisjudge(rng *rand.Rand) (session.Format, []wire.Stored) {
	if names := slices.Sorted(maps.Keys(namesAndForms)); rng.IntN(20) == 0 {
		c := namesAndForms[names[rng.IntN(len(names))]]
		var bodies [][]byte
		for _, body := range c.bodies {
			bodies = append(bodies, []byte(body))
		}
		return c.f, stored(c.f, bodies)
	}
	formats := session.Formats()
	f := formats[rng.IntN(len(formats))]
	bodies := compacttest.Session(rng, f, compacttest.Options{Messages: 1 + rng.IntN(8), ResultTokens: 5, Wild: rng.IntN(3) > 0})
	view := stored(f, bodies)
	for range rng.IntN(3) {
		other := f
		if rng.IntN(3) == 0 {
			other = formats[rng.IntN(len(formats))]
		}
		list := unusualMessages[other]
		view = slices.Insert(view, rng.IntN(len(view)+1), wire.Stored{Format: other, Body: []byte(list[rng.IntN(len(list))])})
	}
	for i := range view {
		view[i].Seq = int64(i + 1)
	}
	return f, view
}

// isChanged reports whether Render makes another view of this one.
func isChanged(f session.Format, view []wire.Stored, o wire.Options) bool {
	made := wiretest.Render(f, view, o)
	return len(made.Repairs) > 0 || !slices.EqualFunc(made.Bodies, view, func(body []byte, m wire.Stored) bool { return bytes.Equal(body, m.Body) })
}
