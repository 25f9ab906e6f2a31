package compact

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// shownMessage is a message of a rendition: of the log, or one that stands for others.
type shownMessage struct {
	message
	body  []byte
	found wire.Facts
	unit  int
	place int    // among the messages of the log as the engine takes them, -1 for one that stands for others
	parts []part // those that stages may shorten, as the state has them
}

// show reads the messages of a checkpoint, with the seqs and the parts that its state gives them.
func show(t testing.TB, f session.Format, c *Checkpoint) []shownMessage {
	t.Helper()
	h, err := readHistory(context.Background(), Input{Format: f, Base: c}, len(stages))
	if err != nil {
		t.Fatal(err)
	}
	array := append(append([]byte{'['}, c.Body...), ']')
	if !json.Valid(array) {
		t.Fatalf("the rendition is no JSON: %s", array)
	}
	all, unit := make([]shownMessage, 0, len(h.messages)), -1
	for element := range rawjson.Elements(array, 0) {
		if len(all) == len(h.messages) {
			t.Fatalf("the state has only %d messages", len(h.messages))
		}
		m, body := h.messages[len(all)], h.body(len(all))
		found, err := wire.Inspect(f, body)
		if err != nil || !bytes.Equal(element.Of(array), bytes.TrimSpace(body)) {
			t.Fatalf("the rendition of message %d is no message, or not where its state has it: %v\n%s", m.seq, err, body)
		}
		if m.whole {
			unit++
		}
		all = append(all, shownMessage{message: m, body: body, found: found, unit: unit, parts: h.parts[m.first:m.last]})
	}
	if len(all) != len(h.messages) {
		t.Fatalf("%d messages in the rendition, %d in its state", len(all), len(h.messages))
	}
	return all
}

// unitsWhole: the units are all messages, each once; a call is never in another unit than its answer; and a checkpoint
// ends at the end, or before the unit of the newest assistant message whose calls wait.
func (l *trial) unitsWhole() {
	for _, o := range l.all() {
		l.reachesThrough(o)
		l.unitsCover(o)
		l.pairsStay(o)
	}
}

func (l *trial) reachesThrough(o outcome) {
	n, _ := l.boundary(l.count(o.end()))
	want := o.in.Base.through()
	if n > 0 {
		want = max(want, l.in.Tail[n-1].Seq)
	}
	if o.made.Through != want || o.plan.Through != want {
		l.Errorf("through %d (plan %d), want %d of %d", o.made.Through, o.plan.Through, want, o.end())
	}
}

// end returns the last message of the input.
func (o *outcome) end() int64 {
	if n := len(o.in.Tail); n > 0 {
		return o.in.Tail[n-1].Seq
	}
	return o.in.Base.through()
}

func (l *trial) unitsCover(o outcome) {
	shown, messages, tokens := 0, 0, int64(0)
	for _, m := range o.view {
		if shown += m.messages; !m.coversOthers() && l.in.Tail[m.place].Part == 0 {
			shown++
		}
	}
	for i, u := range o.made.Units {
		if i > 0 && o.made.Body[u.Offset-1] != ',' {
			l.Errorf("unit %d does not begin at %d", i, u.Offset)
		}
		messages, tokens = messages+u.Messages, tokens+u.Tokens
	}
	if int64(shown) != o.made.Through || int64(messages) != o.made.Through || tokens != o.made.Tokens {
		l.Errorf("%d messages shown, %d of %d tokens in units; want %d of %d tokens", shown, messages, tokens, o.made.Through, o.made.Tokens)
	}
}

func (l *trial) pairsStay(o outcome) {
	unitOf, open := o.units(), 0
	answered := map[[2]int]bool{}
	for m := range l.count(o.made.Through) {
		unit, there := unitOf[m]
		for _, part := range l.originals[m].Parts {
			if part.Kind == wire.Call && there {
				open++
			}
			at, ok := l.nearest(m, part, answered)
			if !ok {
				continue
			}
			answered[at] = true
			asking, kept := unitOf[at[0]]
			if !kept {
				continue // a call may have left as abandoned before its late answer came
			}
			open--
			if asking != unit || !there {
				l.Errorf("message %d is in unit %d, its call in message %d is in unit %d", m+1, unit, at[0]+1, asking)
			}
		}
	}
	if open != len(o.made.OpenCalls) {
		l.Errorf("%d open calls, want %d", len(o.made.OpenCalls), open)
	}
}

// units returns the units of the messages of the log that the view has, by place.
func (o *outcome) units() map[int]int {
	units := map[int]int{}
	for _, m := range o.view {
		if !m.coversOthers() {
			units[m.place] = m.unit
		}
	}
	return units
}

// boundary says where a checkpoint of the first n messages must end, and in which unit, by order of beginning, each
// message is. It walks the messages as slowly and plainly as can be.
func (l *trial) boundary(n int) (through int, units []int) {
	pending := map[string]int{} // calls of the newest assistant message without an answer
	answered := map[[2]int]bool{}
	unit, asked := 0, -1
	for m := range n {
		found := &l.originals[m]
		waiting := 0
		for _, c := range pending {
			waiting += c
		}
		spoke := l.speaks(m)
		goesOn := spoke && m > 0 && l.in.Format == session.OpenAIResponses && l.speaks(m-1)
		if m == 0 || spoke && !goesOn || !spoke && found.StartsUnit && waiting == 0 {
			unit++
		}
		units = append(units, unit)
		own := map[string]int{} // calls that the message itself answers
		for _, part := range found.Parts {
			if at, ok := l.nearest(m, part, answered); ok {
				answered[at] = true
				if at[0] == m {
					own[part.CallID]++
				} else if asked >= 0 && units[at[0]] == units[asked] {
					pending[part.CallID]--
				}
			}
		}
		if !spoke {
			continue
		}
		if !goesOn {
			asked, pending = m, map[string]int{}
		}
		for _, part := range found.Parts {
			if part.Kind == wire.Call {
				pending[part.CallID]++
			}
		}
		for id, n := range own {
			pending[id] -= n
		}
	}
	goesOn := n > 0 && l.in.Format == session.OpenAIResponses && l.speaks(n-1)
	if goesOn || slices.ContainsFunc(slices.Collect(maps.Values(pending)), func(c int) bool { return c > 0 }) {
		return slices.Index(units, units[asked]), units
	}
	return n, units
}

// speaks reports whether message m is the assistant's.
func (l *trial) speaks(m int) bool {
	return l.originals[m].Role == "assistant" || l.originals[m].Role == "model"
}

// nearest finds the call that a result in message m answers: the first one with its id and without an answer of the
// nearest turn before it that has any.
func (l *trial) nearest(m int, result wire.Part, answered map[[2]int]bool) ([2]int, bool) {
	for last := m; last >= 0 && result.Kind == wire.Result; {
		first := last
		for l.in.Format == session.OpenAIResponses && first > 0 && l.speaks(first) && l.speaks(first-1) {
			first--
		}
		for c := first; c <= last; c++ {
			for i, part := range l.originals[c].Parts {
				before := c < m || i < result.Index
				if before && part.Kind == wire.Call && part.CallID == result.CallID && !answered[[2]int{c, i}] {
					return [2]int{c, i}, true
				}
			}
		}
		last = first - 1
	}
	return [2]int{}, false
}

// valid: the rendition breaks no rule of the provider that the originals keep.
func (l *trial) valid() {
	before := map[int]bool{} // messages that no provider takes anyway
	for _, v := range wire.ValidateMessages(l.in.Format, l.originals) {
		before[v.Message] = true
	}
	runs := l.all()
	if l.lateAnswers() {
		runs = runs[:2] // a call that left as abandoned before its late answer came leaves that behind
	}
	for _, o := range runs {
		var view []wire.Facts
		for _, m := range o.view {
			view = append(view, m.found)
		}
		for _, v := range wire.ValidateMessages(l.in.Format, view) {
			late := v.Rule == "V-R2" && len(o.made.OpenCalls) > 0 // there the answer may come at any time
			if m := &o.view[v.Message]; !before[m.place] && !late {
				l.Errorf("message %d of the rendition, number %d of the log, breaks %s: %s", v.Message+1, m.seq, v.Rule, v.Detail)
			}
		}
	}
}

// othersUntouched: a message that is shown has the bytes that it came with, but for the parts that have been shortened.
func (l *trial) othersUntouched() {
	for _, o := range l.all() {
		for _, m := range o.view {
			if m.coversOthers() {
				continue
			}
			original := l.in.Tail[m.place].Body
			var edits []wire.Edit
			for _, p := range m.parts {
				if p.action != Keep {
					at := l.original(m, p).Value
					edits = append(edits, wire.Edit{Span: at, With: l.wrapped(&o.in, m, p, at.Of(original))})
				}
			}
			if want := wire.Replace(nil, original, edits); !bytes.Equal(want, m.body) {
				l.Errorf("message %d has changed outside its parts:\n%s\n%s", m.seq, original, m.body)
			}
		}
	}
}

// wrapped returns the text of a part as it stands in the view. An earlier compaction may have replaced it under a policy
// that treats media in another way.
func (l *trial) wrapped(in *Input, m shownMessage, p part, original []byte) []byte {
	of := *in
	for _, keep := range []bool{true, false} {
		before, after := wrapping(&of, provider.Of(of.Format), original, keep)
		if p.kind == arguments {
			before, after = "", ""
		}
		with := slices.Concat([]byte(before), p.value.Of(m.body), []byte(after))
		if bytes.Contains(m.body, with) {
			return with
		}
	}
	return nil
}

// original returns a part as it was appended.
func (l *trial) original(m shownMessage, p part) wire.Part {
	l.Helper()
	for _, original := range l.originals[m.place].Parts {
		if original.Index+l.in.Tail[m.place].Part == p.index {
			return original
		}
	}
	l.Fatalf("message %d has no part %d", m.seq, p.index)
	return wire.Part{}
}

// at names a part for a message of a test.
func at(seq int64, p part) string {
	return fmt.Sprintf("message %d part %d (%s)", seq, p.index, p.action)
}
