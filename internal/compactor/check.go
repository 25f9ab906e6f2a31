package compactor

import (
	"fmt"
	"slices"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// check refuses a rendition that does not stand for the messages that it was made of, one for one, with the same roles and
// parts, or that breaks a rule of its provider more often than they do. Where the plan lets messages leave as a whole,
// one message of the user may stand for one run of them. A log that breaks a rule by itself, with an orphan result for
// example, is compacted as it is; but the view that is read of it must break none.
func check(in compact.Input, plan *compact.Plan, made *compact.Checkpoint) error {
	now, err := inspected(in.Format, "rendition", func() ([][]byte, error) { return elements(made.Body) })
	if err != nil {
		return err
	}
	was, err := inspected(in.Format, "base", func() ([][]byte, error) { return covered(in, made.Through) })
	if err != nil {
		return err
	}
	if err := standsFor(now, was, departs(plan)); err != nil {
		return err
	}
	known := map[string]int{}
	for _, v := range wire.ValidateMessages(in.Format, was) {
		known[v.Rule]++
	}
	for _, v := range wire.ValidateMessages(in.Format, now) {
		if known[v.Rule]--; known[v.Rule] < 0 {
			return fmt.Errorf("rendition breaks %s at its message %d: %s", v.Rule, v.Message, v.Detail)
		}
	}
	return checkView(in.Format, made)
}

// checkView refuses a rendition of which no valid view can be read.
func checkView(f session.Format, made *compact.Checkpoint) error {
	bodies, err := elements(made.Body)
	if err != nil {
		return err
	}
	view := make([]wire.Stored, len(bodies))
	for i := range bodies {
		view[i] = wire.Stored{Format: f, Body: bodies[i]}
	}
	for _, v := range wire.Validate(f, wire.Render(f, view, wire.Options{}).Bodies, wire.Options{}) {
		return fmt.Errorf("the view of the rendition breaks %s at its message %d: %s", v.Rule, v.Message, v.Detail)
	}
	return nil
}

func inspected(format session.Format, of string, read func() ([][]byte, error)) ([]wire.Facts, error) {
	bodies, err := read()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", of, err)
	}
	messages := make([]wire.Facts, len(bodies))
	for i := range bodies {
		if messages[i], err = wire.Inspect(format, bodies[i]); err != nil {
			return nil, fmt.Errorf("%s: message %d: %w", of, i, err)
		}
	}
	return messages, nil
}

// departs reports whether messages leave as a whole.
func departs(plan *compact.Plan) bool {
	return slices.ContainsFunc(plan.Actions, func(a compact.Action) bool { return a.Kind == compact.Summarise || a.Kind == compact.Drop })
}

// standsFor compares from both ends. What is left between them has left: in its place may stand one message, and behind
// it the newest one of the user, which never leaves.
func standsFor(now, was []wire.Facts, departs bool) error {
	first := 0
	for first < min(len(now), len(was)) && alike(now[first], was[first]) {
		first++
	}
	n, w := len(now), len(was)
	for n > first && w > first && alike(now[n-1], was[w-1]) {
		n, w = n-1, w-1
	}
	switch {
	case n == first && w == first:
		return nil
	case !departs && len(now) != len(was):
		return fmt.Errorf("rendition has %d messages instead of %d", len(now), len(was))
	case !departs || n-first > 2 || slices.ContainsFunc(now[first:n], func(m wire.Facts) bool { return m.Role != "user" }):
		return fmt.Errorf("rendition: message %d has another role or other parts than the one it stands for", first)
	}
	return nil
}

func alike(a, b wire.Facts) bool {
	return a.Role == b.Role && slices.EqualFunc(a.Parts, b.Parts, func(a, b wire.Part) bool {
		return a.Kind == b.Kind && a.CallID == b.CallID && a.Name == b.Name
	})
}

// covered are the messages that the rendition stands for, as they stood in the view before.
func covered(in compact.Input, through int64) (bodies [][]byte, err error) {
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
	array := append(append(append(make([]byte, 0, len(joined)+2), '['), joined...), ']')
	if err := rawjson.Check(array, rawjson.Limits{}); err != nil {
		return nil, err
	}
	for span := range rawjson.Elements(array, 0) {
		bodies = append(bodies, span.Of(array))
	}
	return bodies, nil
}
