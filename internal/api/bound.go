package api

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// unit is a part of a view that stays or goes as a whole.
type unit struct {
	body     []byte           // of a checkpoint: its messages, joined by commas
	seq      int64            // of a checkpoint: that of its first message
	entries  []postgres.Entry // of a tail
	messages int
	tokens   int64
	pinned   bool // always stays
	tied     bool // it answers a call of the checkpoint
}

// open takes a unit apart into its messages. Those of a checkpoint are of the session's format.
func (u *unit) open(own session.Format) ([]wire.Stored, error) {
	if u.body == nil {
		return storedOf(u.entries), nil
	}
	array := append(append([]byte{'['}, u.body...), ']')
	if err := rawjson.Check(array, rawjson.Limits{}); err != nil {
		return nil, err
	}
	var list []wire.Stored
	for element := range rawjson.Elements(array, 0) {
		list = append(list, wire.Stored{Format: own, Body: element.Of(array), Seq: u.seq})
	}
	return list, nil
}

// bound leaves the oldest units of a view of so many tokens out until it has no more than most. The pinned head and the
// newest unit stay. A view of a provider that wants the user's message first has to begin with one: if the units that stay
// do not, the newest user message before them stays, too, which is what they answer.
//
// Errors: *session.CannotFitError.
func bound(units []unit, format session.Format, tokens, most int64) (kept []unit, left protocol.Omitted, err error) {
	first, anchor, least := cut(units, format, tokens, most)
	if first < 0 {
		return nil, protocol.Omitted{}, &session.CannotFitError{MaxTokens: most, Minimum: least}
	}
	for i, u := range units {
		if i >= first || i == anchor || u.pinned {
			kept = append(kept, u)
			continue
		}
		left.Units++
		left.Messages += u.messages
		left.Tokens += u.tokens
	}
	return kept, left, nil
}

// cut finds the first unit that stays, and the unit before it that has to, or -1. If no view is small enough, first is
// -1 and least the smallest there is.
func cut(units []unit, format session.Format, tokens, most int64) (first, anchor int, least int64) {
	least, rest := tokens, tokens
	user := -1 // the newest unit before i that a view may begin with
	tied := lastTied(units)
	for i, u := range units {
		if u.pinned {
			continue
		}
		anchor, size := -1, rest
		if wire.Apart(format) {
			if !u.tied && u.fromUser(format) {
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
func (u *unit) fromUser(own session.Format) bool {
	var first wire.Stored
	switch {
	case u.body != nil:
		start := rawjson.Start(u.body)
		first = wire.Stored{Format: own, Body: u.body[start:rawjson.Skip(u.body, start)]}
	case len(u.entries) > 0:
		first = storedOf(u.entries[:1])[0]
	}
	m, err := wire.Inspect(first.Format, first.Body)
	return err == nil && m.Role == "user" && m.StartsUnit
}

// unitsOf takes a view apart: the checkpoint's units as they were stored, then the tail's.
func unitsOf(whole *postgres.OpenedView) ([]unit, error) {
	units, err := storedUnits(whole)
	if err != nil {
		return nil, fmt.Errorf("checkpoint %d: %w", whole.Checkpoint, err)
	}
	return append(units, tailUnits(whole)...), nil
}

func storedUnits(whole *postgres.OpenedView) ([]unit, error) {
	if whole.Checkpoint == 0 {
		return nil, nil
	}
	var stored []compact.Unit
	if err := json.Unmarshal(whole.Units, &stored); err != nil {
		return nil, err
	}
	body, err := decompressed(whole)
	if err != nil {
		return nil, err
	}
	switch {
	case len(body) == 0:
		return nil, nil
	case len(stored) == 0:
		return []unit{{body: body, tokens: whole.Tokens, messages: 1}}, nil
	case stored[0].Offset != 0:
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
		units[i] = unit{body: body[s.Offset:end], seq: s.FirstSeq, messages: s.Messages, tokens: s.Tokens, pinned: s.Pinned}
	}
	return units, nil
}

// tailUnits groups the messages after the checkpoint. A unit begins with a message that does more than answer calls, and
// not between a call and its answer, nor between the items of one answer of OpenAI's Responses.
func tailUnits(whole *postgres.OpenedView) (units []unit) {
	answered, tied := pairs(whole.Entries, whole.Open)
	reach, first := -1, 0 // the last message that the unit must hold, and its first
	for i, e := range whole.Entries {
		pinned := e.Seq <= whole.Pinned
		goesOn := i > 0 && e.Format == session.OpenAIResponses && e.Role == "assistant" && whole.Entries[i-1].Role == "assistant"
		if i == 0 || pinned || units[len(units)-1].pinned || e.StartsUnit && reach < i && !goesOn {
			units = append(units, unit{pinned: pinned})
			first = i
		}
		u := &units[len(units)-1]
		u.entries = whole.Entries[first : i+1]
		u.messages++
		u.tokens += e.Tokens
		u.tied = u.tied || tied[i]
		reach = max(reach, answered[i])
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
