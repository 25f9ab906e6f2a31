package peers

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

var generated = flag.Int("generated", 1000, "how many messages TestMessagesMadeFromSchemasAreTaken makes; make soak has 100,000")

// TestMessagesMadeFromSchemasAreTaken makes lists of messages from what providers publish, as a program may append
// them, and wants that their views are taken, in their own format and in others, and that repairs list each message
// that differs from what was appended.
func TestMessagesMadeFromSchemasAreTaken(t *testing.T) {
	t.Parallel()
	s := NewSuite(t)
	random := rand.New(rand.NewPCG(15, 7))
	makers := map[session.Format]*Generator{}
	for _, f := range session.Formats() {
		makers[f] = NewGenerator(t, string(f), random)
	}
	accepted, made := 0, 0
	for made < *generated {
		f := pick(random, session.Formats())
		var list []wire.Stored
		for range 1 + random.IntN(6) {
			body := makers[f].Message(t)
			made++
			if _, err := wire.Accept(f, body); err == nil {
				list = append(list, wire.Stored{Format: f, Body: body, Seq: int64(len(list) + 1)})
			}
		}
		accepted += len(list)
		for _, target := range []session.Format{f, pick(random, session.Formats())} {
			o := wire.Options{Model: pick(random, Models), Pending: pick(random, pendings)}
			checkGenerated(s, f, target, list, o)
		}
	}
	t.Logf("%d messages made, %d of them can be appended", made, accepted)
	if accepted < made/2 {
		t.Errorf("only %d of %d messages can be appended", accepted, made)
	}
	s.Report()
}

// pendings has what leaves no calls open first: what it makes need not be checked for open ones again.
var pendings = []wire.Pending{wire.SynthesizePending, wire.DropPending, wire.KeepPending}

// checkGenerated renders a list and checks it by our own rules, by those of others, and for repairs that are not listed.
func checkGenerated(s *Suite, f, target session.Format, list []wire.Stored, o wire.Options) {
	s.t.Helper()
	if len(list) == 0 {
		return
	}
	name := fmt.Sprintf("messages of %s: %s", f, joined(list))
	rendition := wiretest.Render(target, list, o)
	s.checkOwn(name, target, rendition, o)
	if f == target {
		checkListed(s, list, rendition)
	}
	s.Check(name, ViewOf(string(target), o.Model, rendition.Bodies, rendition.System, o.Pending == wire.KeepPending))
}

// checkOwn holds a view to our own rules.
func (s *Suite) checkOwn(name string, target session.Format, made *wire.Rendition, o wire.Options) {
	s.t.Helper()
	for _, v := range wiretest.Validate(target, made.Bodies, o) {
		s.Found(string(target), Violation{By: "our rules", What: v.Rule}, fmt.Sprintf("message %d: %s: %s", v.Message, v.Detail, name))
	}
}

// checkListed wants a repair for each message that a view does not have as it was appended.
func checkListed(s *Suite, list []wire.Stored, made *wire.Rendition) {
	s.t.Helper()
	told := map[int64]bool{}
	for _, r := range made.Repairs {
		told[r.Seq] = true
		for seq := int64(1); r.Kind == "compacted" && seq < r.Seq; seq++ { // one repair tells of all that is left out
			told[seq] = true
		}
	}
	s.CheckListed(string(list[0].Format), bodiesOf(list), made.Bodies, told, made.Repairs)
}

func joined(list []wire.Stored) []byte { return bytes.Join(bodiesOf(list), []byte(",")) }

func bodiesOf(list []wire.Stored) (bodies [][]byte) {
	for _, m := range list {
		bodies = append(bodies, m.Body)
	}
	return bodies
}
