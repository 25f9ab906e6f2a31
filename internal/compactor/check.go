package compactor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/view"
)

// check inspects a rendition, once, and refuses it if it does not cover the messages that it was made of, or if no
// valid view can be read of it: see view.Rendition.Check.
func check(ctx context.Context, in *compact.Input, evicts bool, made *compact.Checkpoint) (*view.Rendition, error) {
	r, err := view.NewRendition(ctx, in.Format, made.Body)
	if err != nil {
		return nil, err
	}
	originals, err := originalsOf(in, made.Through)
	if err != nil {
		return nil, fmt.Errorf("base: %w", err)
	}
	return r, r.Check(ctx, originals, evicts)
}

// checkPins returns an error unless a rendition has every pin of its plan, byte for byte.
func checkPins(r *view.Rendition, plan *compact.Plan) error {
	if len(plan.Pins) == 0 {
		return nil
	}
	text := r.Text()
	for i := range plan.Pins {
		if p := &plan.Pins[i]; !strings.Contains(text, p.Text) {
			return fmt.Errorf("the rendition lacks the pinned text of %s", p.Ref)
		}
	}
	return nil
}

// evicts reports whether a plan evicts whole messages.
func evicts(plan *compact.Plan) bool {
	return slices.ContainsFunc(plan.Actions, func(a compact.Action) bool {
		return a.Kind == compact.Summarise || a.Kind == compact.Drop
	})
}

// originalsOf returns the messages that the rendition covers, as the view had them before.
func originalsOf(in *compact.Input, through int64) (bodies [][]byte, err error) {
	if in.Base != nil {
		if bodies, err = view.Split(in.Base.Body); err != nil {
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
