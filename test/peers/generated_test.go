package peers

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

var generated = flag.Int("generated", 3000, "how many messages TestMessagesMadeFromSchemasAreTaken makes; make soak has 100,000")

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

// checkListed wants a repair for each message of which a view does not have all that was appended.
func checkListed(s *Suite, list []wire.Stored, made *wire.Rendition) {
	s.t.Helper()
	told := map[int64]bool{}
	for _, r := range made.Repairs {
		told[r.Seq] = true
	}
	there := map[string]bool{}
	for _, body := range made.Bodies {
		there[string(body)] = true
		addLeaves(there, body)
	}
	for _, m := range list {
		if there[string(m.Body)] || told[m.Seq] {
			continue
		}
		had := map[string]bool{}
		addLeaves(had, m.Body)
		for leaf := range had {
			if !there[leaf] {
				s.Found(string(m.Format), Violation{By: "repairs", What: "none tells what became of " + typeOfBody(m.Body)},
					fmt.Sprintf("%s in %s\n\tview %s\n\trepairs %v", leaf, m.Body, bytes.Join(made.Bodies, []byte("\n\t")), made.Repairs))
				break
			}
		}
	}
}

// addLeaves adds the members of a message with their values, as far as they are no objects or arrays.
func addLeaves(found map[string]bool, body []byte) {
	var value any
	if json.Unmarshal(body, &value) == nil {
		addLeavesOf(found, "", value)
	}
}

func addLeavesOf(found map[string]bool, name string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, member := range v {
			addLeavesOf(found, key, member)
		}
	case []any:
		for _, element := range v {
			addLeavesOf(found, name, element)
		}
	default:
		found[fmt.Sprintf("%s: %v", name, v)] = true
	}
}

func typeOfBody(body []byte) string {
	var m struct{ Type, Role string }
	_ = json.Unmarshal(body, &m)
	return cmp.Or(m.Type, "a message of role "+m.Role)
}

func joined(list []wire.Stored) []byte {
	var bodies [][]byte
	for _, m := range list {
		bodies = append(bodies, m.Body)
	}
	return bytes.Join(bodies, []byte(","))
}
