package compactor

import (
	"fmt"
	"slices"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// check inspects a rendition, once, and refuses it if it does not cover the messages that it was made of, one for one, with
// the same roles and parts, or breaks a rule of its provider more often than they do. If the plan evicts whole messages,
// one message of the user may cover one run of them. A log that breaks a rule by itself, with an orphan result for example,
// is compacted as it is; but the view that is read of it must break none.
func check(in *compact.Input, plan *compact.Plan, made *compact.Checkpoint) (*rendition, error) {
	r, err := newRendition(in.Format, made.Body)
	if err != nil {
		return nil, err
	}
	originals, err := originalsOf(in, made.Through)
	if err != nil {
		return nil, fmt.Errorf("base: %w", err)
	}
	return r, r.check(originals, evicts(plan))
}

// rendition is what a compaction made of a view's messages, message by message.
type rendition struct {
	format session.Format
	bodies [][]byte
	facts  []wire.Facts
}

func newRendition(f session.Format, joined []byte) (*rendition, error) {
	bodies, err := elements(joined)
	if err != nil {
		return nil, fmt.Errorf("rendition: %w", err)
	}
	facts, err := inspect(f, "rendition", bodies)
	return &rendition{format: f, bodies: bodies, facts: facts}, err
}

func (r *rendition) check(originals [][]byte, evicts bool) error {
	facts, err := inspect(r.format, "original", originals)
	if err != nil {
		return err
	}
	if err := r.covers(facts, evicts); err != nil {
		return err
	}
	known := map[string]int{}
	for _, v := range wire.ValidateMessages(r.format, facts) {
		known[v.Rule]++
	}
	for _, v := range wire.ValidateMessages(r.format, r.facts) {
		if known[v.Rule]--; known[v.Rule] < 0 {
			return fmt.Errorf("rendition breaks %s at its message %d: %s", v.Rule, v.Message, v.Detail)
		}
	}
	return r.checkView()
}

// checkView refuses a rendition of which no valid view can be read.
func (r *rendition) checkView() error {
	view := make([]wire.Stored, len(r.bodies))
	for i := range r.bodies {
		view[i] = wire.Stored{Format: r.format, Body: r.bodies[i]}
	}
	for _, v := range wire.Validate(r.format, wire.Render(r.format, view, wire.Options{}).Bodies, wire.Options{}) {
		return fmt.Errorf("the view of the rendition breaks %s at its message %d: %s", v.Rule, v.Message, v.Detail)
	}
	return nil
}

// ValidatorState returns what a reader must know of the rendition to tell whether it is valid as it is.
func (r *rendition) ValidatorState() []byte {
	validator := wire.NewFastValidator(r.format)
	for i := range r.facts {
		shape := wire.ShapeOf(r.format, &r.facts[i])
		validator.Add(&shape)
	}
	return validator.State()
}

func inspect(f session.Format, of string, bodies [][]byte) (facts []wire.Facts, err error) {
	facts = make([]wire.Facts, len(bodies))
	for i := range bodies {
		if facts[i], err = wire.Inspect(f, bodies[i]); err != nil {
			return nil, fmt.Errorf("%s: message %d: %w", of, i, err)
		}
	}
	return facts, nil
}

// evicts reports whether a plan evicts whole messages.
func evicts(plan *compact.Plan) bool {
	return slices.ContainsFunc(plan.Actions, func(a compact.Action) bool {
		return a.Kind == compact.Summarise || a.Kind == compact.Drop
	})
}

// covers compares from both ends. The originals between them are evicted: one message may replace them, and behind it may
// be the user's newest one, which is never evicted.
func (r *rendition) covers(originals []wire.Facts, evicts bool) error {
	now, was := r.facts, originals
	first := 0
	for first < min(len(now), len(was)) && alike(now[first], was[first]) {
		first++
	}
	n, w := len(now), len(was)
	for n > first && w > first && alike(now[n-1], was[w-1]) {
		n--
		w--
	}
	isOther := func(m wire.Facts) bool { return m.Role != "user" }
	switch {
	case n == first && w == first:
		return nil
	case !evicts && len(now) != len(was):
		return fmt.Errorf("rendition has %d messages instead of %d", len(now), len(was))
	case !evicts || n-first > 2 || slices.ContainsFunc(now[first:n], isOther):
		return fmt.Errorf("rendition: message %d has another role or other parts than its original", first)
	}
	return nil
}

func alike(a, b wire.Facts) bool {
	return a.Role == b.Role && slices.EqualFunc(a.Parts, b.Parts, func(a, b wire.Part) bool {
		return a.Kind == b.Kind && a.CallID == b.CallID && a.Name == b.Name
	})
}

// originalsOf returns the messages that the rendition covers, as the view had them before.
func originalsOf(in *compact.Input, through int64) (bodies [][]byte, err error) {
	if in.Base != nil {
		if bodies, err = elements(in.Base.Body); err != nil {
			return nil, err
		}
	}
	for _, entry := range in.Tail {
		if entry.Seq <= through {
			bodies = append(bodies, entry.Body)
		}
	}
	return bodies, nil
}

// elements splits messages that are joined by commas.
func elements(joined []byte) (bodies [][]byte, err error) {
	array := slices.Concat([]byte{'['}, joined, []byte{']'})
	if err := rawjson.Check(array, rawjson.Limits{}); err != nil {
		return nil, err
	}
	for span := range rawjson.Elements(array, 0) {
		bodies = append(bodies, span.Of(array))
	}
	return bodies, nil
}
