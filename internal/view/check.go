package view

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/compact/pin"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/units"
	"github.com/varve-dev/varve/internal/wire"
)

// Rendition is what a compaction made of a view's messages, message by message.
type Rendition struct {
	format session.Format
	bodies [][]byte
	facts  []wire.Facts
}

// NewRendition splits the messages that are joined by commas, and inspects them.
func NewRendition(ctx context.Context, f session.Format, joined []byte) (*Rendition, error) {
	bodies, err := Split(joined)
	if err != nil {
		return nil, fmt.Errorf("rendition: %w", err)
	}
	facts, err := inspect(ctx, f, "rendition", bodies)
	return &Rendition{format: f, bodies: bodies, facts: facts}, err
}

func inspect(ctx context.Context, f session.Format, of string, bodies [][]byte) (facts []wire.Facts, err error) {
	facts = make([]wire.Facts, len(bodies))
	for i := range bodies {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if facts[i], err = wire.Inspect(f, bodies[i]); err != nil {
			return nil, fmt.Errorf("%s: message %d: %w", of, i, err)
		}
	}
	return facts, nil
}

// Check refuses a rendition that does not cover the messages that it was made of, one for one, with the same roles
// and parts, or that breaks a rule of its provider more often than they do. If the plan evicts whole messages, one
// message of the user may cover one run of them. A log that breaks a rule by itself, with an orphan result for
// example, is compacted as it is; but the view that is read of it must break none.
func (r *Rendition) Check(ctx context.Context, originals [][]byte, evicts bool) error {
	facts, err := inspect(ctx, r.format, "original", originals)
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
	return r.checkView(ctx)
}

// covers compares from both ends. The originals between them are evicted: one message of the user may replace them,
// before those that stay: the user's newest one, and those that load tools.
func (r *Rendition) covers(originals []wire.Facts, evicts bool) error {
	now, was := r.facts, originals
	first := 0
	for first < min(len(now), len(was)) && alike(&now[first], &was[first]) {
		first++
	}
	n, w := len(now), len(was)
	for n > first && w > first && alike(&now[n-1], &was[w-1]) {
		n--
		w--
	}
	switch {
	case n == first && w == first:
		return nil
	case !evicts && len(now) != len(was):
		return fmt.Errorf("rendition has %d messages instead of %d", len(now), len(was))
	case !evicts || !isLeft(now[first:n], was[first:w]):
		return fmt.Errorf("rendition: message %d has another role or other parts than its original", first)
	}
	return nil
}

// isLeft reports whether messages are one of the user, or none, and then some of the originals in their order.
func isLeft(now, originals []wire.Facts) bool {
	return len(now) > 0 && now[0].Role == "user" && areOf(now[1:], originals) || areOf(now, originals)
}

// areOf reports whether messages are some of the originals in their order.
func areOf(now, originals []wire.Facts) bool {
	for i := range originals {
		if len(now) > 0 && alike(&now[0], &originals[i]) {
			now = now[1:]
		}
	}
	return len(now) == 0
}

func alike(a, b *wire.Facts) bool {
	return a.Role == b.Role && slices.EqualFunc(a.Parts, b.Parts, func(a, b wire.Part) bool {
		return a.Kind == b.Kind && a.CallID == b.CallID && a.Name == b.Name
	})
}

// checkView refuses a rendition of which no valid view can be read.
func (r *Rendition) checkView(ctx context.Context) error {
	stored := make([]wire.Stored, len(r.bodies))
	for i := range r.bodies {
		stored[i] = wire.Stored{Format: r.format, Body: r.bodies[i]}
	}
	made, err := wire.Render(ctx, r.format, stored, wire.Options{})
	if err != nil {
		return err
	}
	violations, err := wire.Validate(ctx, r.format, made.Bodies, wire.Options{})
	for _, v := range violations {
		return fmt.Errorf("the view of the rendition breaks %s at its message %d: %s", v.Rule, v.Message, v.Detail)
	}
	return err
}

// Text returns the texts of all messages as pin.TextOf joins those of one: a message of several steps may have become
// several.
func (r *Rendition) Text() string {
	var texts []string
	for i := range r.bodies {
		if text, ok := pin.TextOf(r.format, r.bodies[i], &r.facts[i], session.WholeMessage); ok {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n\n")
}

// ValidatorState returns what a reader must know of the rendition to tell whether it is valid as it is.
func (r *Rendition) ValidatorState() []byte {
	validator := wire.NewFastValidator(r.format)
	for i := range r.facts {
		shape := wire.ShapeOf(r.format, &r.facts[i])
		validator.Add(&shape)
	}
	return validator.State()
}

// OpenCalls returns the ids of the calls that no result answers, in their order.
func (r *Rendition) OpenCalls() (ids []string) {
	var open units.Pairer[int]
	var calls []string
	for i := range r.facts {
		for p := range r.facts[i].Parts {
			switch part := &r.facts[i].Parts[p]; part.Kind {
			case wire.Call:
				open.Call(part.CallID, part.Name, len(calls))
				calls = append(calls, part.CallID)
			case wire.Result:
				open.Answer(part.CallID, part.Name)
			}
		}
	}
	for _, n := range slices.Sorted(open.All()) {
		ids = append(ids, calls[n])
	}
	return ids
}
