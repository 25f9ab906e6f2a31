package jobs

import (
	"fmt"
	"slices"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/wire"
)

// check refuses a rendition that does not stand for the messages that it was made of, one for one, with the same roles and
// parts, or that breaks a rule of its provider more often than they do. A log that breaks a rule by itself, with an orphan
// result for example, is compacted as it is.
func check(in compact.Input, made *compact.Checkpoint) error {
	after, err := elements(made.Body)
	if err != nil {
		return fmt.Errorf("rendition: %w", err)
	}
	before, err := covered(in, made.Through)
	if err != nil {
		return fmt.Errorf("base: %w", err)
	}
	if len(after) != len(before) {
		return fmt.Errorf("rendition has %d messages instead of %d", len(after), len(before))
	}
	now, was := make([]wire.Message, len(after)), make([]wire.Message, len(before))
	for i := range after {
		if now[i], err = wire.Inspect(in.Format, after[i]); err != nil {
			return fmt.Errorf("rendition: message %d: %w", i, err)
		}
		if was[i], err = wire.Inspect(in.Format, before[i]); err != nil {
			return fmt.Errorf("base: message %d: %w", i, err)
		}
		if !alike(now[i], was[i]) {
			return fmt.Errorf("rendition: message %d has another role or other parts than the one it stands for", i)
		}
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
	return nil
}

func alike(a, b wire.Message) bool {
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
