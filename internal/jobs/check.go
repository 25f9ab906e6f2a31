package jobs

import (
	"fmt"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/wire"
)

// check refuses a rendition that is no JSON, or that breaks a rule of its provider more often than the messages that it was
// made of. A log that breaks a rule by itself, with an orphan result for example, is compacted as it is.
func check(in compact.Input, made *compact.Checkpoint) error {
	after, err := elements(made.Body)
	if err != nil {
		return fmt.Errorf("rendition: %w", err)
	}
	before, err := covered(in, made.Through)
	if err != nil {
		return fmt.Errorf("base: %w", err)
	}
	known := map[string]int{}
	for _, v := range wire.Validate(in.Format, before) {
		known[v.Rule]++
	}
	for _, v := range wire.Validate(in.Format, after) {
		if known[v.Rule]--; known[v.Rule] < 0 {
			return fmt.Errorf("rendition breaks %s at its message %d: %s", v.Rule, v.Message, v.Detail)
		}
	}
	return nil
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
