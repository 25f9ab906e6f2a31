package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/zframe"
)

// unit is a part of a view that stays or goes as a whole.
type unit struct {
	body     []byte // its messages, joined by commas
	messages int
	tokens   int64
	pinned   bool // always stays
	tied     bool // it answers a call of the checkpoint
}

// bound leaves the oldest units of a view out until it has no more than most tokens. The pinned head and the newest unit
// stay. An Anthropic view has to begin with a user message: if the units that stay do not, the newest user message before
// them stays, too, which is what they answer.
//
// Errors: *session.CannotFitError.
func bound(whole *postgres.Bounded, most int64) (*postgres.View, omitted, error) {
	units, err := unitsOf(whole)
	if err != nil {
		return nil, omitted{}, err
	}
	view := whole.View
	if view.Tokens <= most {
		return &view, omitted{}, nil
	}
	first, anchor, least := cut(units, whole.Format, view.Tokens, most)
	if first < 0 {
		return nil, omitted{}, &session.CannotFitError{MaxTokens: most, Minimum: least}
	}
	var left omitted
	var kept [][]byte
	for i, u := range units {
		if i >= first || i == anchor || u.pinned {
			kept = append(kept, u.body)
			continue
		}
		left.Units++
		left.Messages += u.messages
		left.Tokens += u.tokens
	}
	view.Tokens -= left.Tokens
	view.Body, view.Size, view.Tail = nil, 0, bytes.Join(kept, []byte{','})
	return &view, left, nil
}

// cut finds the first unit that stays, and the unit before it that has to, or -1. If no view is small enough, first is
// -1 and least the smallest there is.
func cut(units []unit, format session.Format, tokens, most int64) (first, anchor int, least int64) {
	least, rest := tokens, tokens
	user := -1 // the newest unit before i that an Anthropic view may begin with
	tied := lastTied(units)
	for i, u := range units {
		if u.pinned {
			continue
		}
		anchor, size := -1, rest
		if format == session.Anthropic {
			if !u.tied && fromUser(u.body) {
				user = i
			} else if anchor = user; anchor >= 0 {
				size += units[anchor].tokens
			}
		}
		rest -= u.tokens
		if i <= tied {
			continue
		}
		if least = min(least, size); size <= most {
			return i, anchor, least
		}
	}
	return -1, -1, least
}

// lastTied finds the last unit that must not be separated from the checkpoint, -1 for none: the call that it answers is
// somewhere in there.
func lastTied(units []unit) int {
	for i := len(units) - 1; i >= 0; i-- {
		if units[i].tied {
			return i
		}
	}
	return -1
}

// fromUser reports whether a unit begins with what the user said: a message that only answers calls does not count.
func fromUser(body []byte) bool {
	start := rawjson.Start(body)
	m, err := wire.Inspect(session.Anthropic, body[start:rawjson.Skip(body, start)])
	return err == nil && m.Role == "user" && m.StartsUnit
}

// unitsOf takes a view apart: the checkpoint's units as they were stored, then the tail's.
func unitsOf(whole *postgres.Bounded) ([]unit, error) {
	units, err := storedUnits(whole)
	if err != nil {
		return nil, fmt.Errorf("checkpoint %d: %w", whole.Checkpoint, err)
	}
	return append(units, tailUnits(whole)...), nil
}

func storedUnits(whole *postgres.Bounded) ([]unit, error) {
	if len(whole.Units) == 0 {
		return nil, nil
	}
	var stored []compact.Unit
	if err := json.Unmarshal(whole.Units, &stored); err != nil {
		return nil, err
	}
	body, err := zframe.Decompress(nil, whole.Body, whole.Size)
	if err != nil {
		return nil, err
	}
	if covered := len(stored) > 0 && stored[0].Offset == 0; !covered && len(body) > 0 {
		return nil, errors.New("its units do not begin where its body does")
	}
	units := make([]unit, len(stored))
	for i, s := range stored {
		end := len(body)
		if i+1 < len(stored) {
			end = stored[i+1].Offset - 1 // without the comma
		}
		if s.Offset < 0 || s.Offset > end || end > len(body) {
			return nil, fmt.Errorf("its unit %d lies outside of its body", i)
		}
		units[i] = unit{body: body[s.Offset:end], messages: s.Messages, tokens: s.Tokens, pinned: s.Pinned}
	}
	return units, nil
}

// tailUnits groups the messages after the checkpoint. A unit begins with a message that does more than answer calls, and
// not between a call and its answer.
func tailUnits(whole *postgres.Bounded) (units []unit) {
	answered, tied := pairs(whole.Entries, whole.OpenCalls)
	begin, end, reach := 0, 0, -1 // of the unit in the tail's bytes; the last message that it must hold
	for i, e := range whole.Entries {
		pinned := e.Seq <= whole.Pinned
		if i == 0 || pinned || units[len(units)-1].pinned || e.StartsUnit && reach < i {
			units = append(units, unit{pinned: pinned})
			begin = end
		}
		u := &units[len(units)-1]
		u.body = whole.Tail[begin : end+len(e.Body)]
		u.messages++
		u.tokens += e.Tokens
		u.tied = u.tied || tied[i]
		reach = max(reach, answered[i])
		end += len(e.Body) + 1 // with the comma
	}
	return units
}

// pairs finds for each message the last one that answers a call of it, -1 for none, and whether it answers a call that
// the checkpoint left open itself. Ids of calls repeat: an answer belongs to the nearest call before it that has none. A
// call without an answer holds nothing together.
func pairs(entries []postgres.Entry, openCalls []string) (answered []int, tied []bool) {
	answered, tied = make([]int, len(entries)), make([]bool, len(entries))
	const checkpoint = -1
	open := map[string][]int{}
	for _, id := range openCalls {
		open[id] = append(open[id], checkpoint)
	}
	for i, e := range entries {
		answered[i] = -1
		for _, id := range e.Answers {
			callers := open[id]
			if len(callers) == 0 {
				continue
			}
			caller := callers[len(callers)-1]
			open[id] = callers[:len(callers)-1]
			if caller == checkpoint {
				tied[i] = true
			} else {
				answered[caller] = i
			}
		}
		for _, id := range e.Calls {
			open[id] = append(open[id], i)
		}
	}
	return answered, tied
}
