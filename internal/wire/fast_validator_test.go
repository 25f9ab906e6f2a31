package wire_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/compact/compacttest"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

// shapeText returns a shape as the database writes it.
func shapeText(f *wire.MessageShape) string {
	return fmt.Sprintf("%d\x1f%d\x1f%s\x1f%s\x1f%s\x1f", f.Format.Number(), f.Flags, f.Role, strings.Join(f.Calls, "\x1d"), strings.Join(f.Answers, "\x1d"))
}

// validated goes over a view as a read does: over the first messages for the checkpoint, over the others by their
// facts.
func validated(f session.Format, view []wire.Stored, checkpoint int) *wire.FastValidator {
	base, open := wire.NewFastValidator(f), []string(nil)
	for _, m := range view[:checkpoint] {
		shape := wire.ShapeOfBody(m.Format, m.Body)
		base.Add(&shape)
		open = openAfter(open, &shape)
	}
	validator := wire.ResumeFastValidator(f, base.State(), []byte(strings.Join(open, "\x1d")))
	var shapes []string
	for _, m := range view[checkpoint:] {
		shape := wire.ShapeOfBody(m.Format, m.Body)
		shapes = append(shapes, shapeText(&shape))
	}
	validator.AddShapes([]byte(strings.Join(shapes, "\x1e")))
	return validator
}

func openAfter(open []string, f *wire.MessageShape) []string {
	open = append(open, f.Calls...)
	for _, id := range f.Answers {
		for i := len(open) - 1; i >= 0; i-- {
			if open[i] == id {
				open = append(open[:i:i], open[i+1:]...)
				break
			}
		}
	}
	return open
}

// TestAFastValidatorAcceptsOnlyViewsThatNeedNoRepair compares it with Render, over random conversations.
func TestAFastValidatorAcceptsOnlyViewsThatNeedNoRepair(t *testing.T) {
	t.Parallel()
	yes := map[session.Format]int{}
	for seed := range *views {
		rng := rand.New(rand.NewPCG(uint64(seed), 9))
		f := session.Formats()[rng.IntN(len(session.Formats()))]
		bodies := compacttest.Session(rng, f, compacttest.Options{Messages: 1 + rng.IntN(12), ResultTokens: 5, Wild: rng.IntN(3) > 0})
		bodies = renameRandomly(rng, bodies)
		view := stored(f, bodies[:1+rng.IntN(len(bodies))])
		if unusual := unusualMessages[f]; rng.IntN(3) == 0 {
			at := rng.IntN(len(view) + 1)
			view = slices.Insert(view, at, wire.Stored{Format: f, Body: []byte(unusual[rng.IntN(len(unusual))])})
		}
		model := models[rng.IntN(len(models))]
		if !validated(f, view, rng.IntN(len(view)+1)).Valid(model) {
			continue
		}
		yes[f]++
		made := wiretest.Render(f, view, wire.Options{Model: model})
		if len(made.Repairs) > 0 || len(made.Bodies) != len(view) {
			t.Fatalf("seed %d: %s: a valid view has %d messages of %d, repairs %v\n%s", seed, f, len(made.Bodies), len(view), made.Repairs, show(view))
		}
		for i := range view {
			if !bytes.Equal(made.Bodies[i], view[i].Body) {
				t.Fatalf("seed %d: %s: message %d of a valid view is rendered as %s", seed, f, i, made.Bodies[i])
			}
		}
	}
	for _, f := range session.Formats() {
		if yes[f] < *views/50 {
			t.Errorf("%s: only %d of %d views are valid", f, yes[f], *views/len(session.Formats()))
		}
	}
}

// TestAFastValidatorDistinguishesIDsThatTheDatabaseWouldNot answers one call by the two halves of its id, which a list
// of ids in a row would show as two answered calls, and another by an id that differs in what a text of the database
// cannot hold.
func TestAFastValidatorDistinguishesIDsThatTheDatabaseWouldNot(t *testing.T) {
	t.Parallel()
	for id, answers := range map[string][]string{`a\u001db`: {"a", "b"}, `a\u001eb`: {"a", "b"}, `a\u001fb`: {"a", "b"}, `a\u0000`: {"a\uFFFD"}, `a\ud800`: {"a\uFFFD"}} {
		bodies := [][]byte{
			[]byte(`{"role":"user","content":"go"}`),
			[]byte(`{"role":"assistant","content":null,"tool_calls":[{"id":"` + id + `","type":"function","function":{"name":"f","arguments":"{}"}}]}`),
		}
		for _, answer := range answers {
			bodies = append(bodies, []byte(`{"role":"tool","tool_call_id":"`+answer+`","content":"1"}`))
		}
		view := stored(session.OpenAIChat, append(bodies, []byte(`{"role":"user","content":"on"}`)))
		for checkpoint := range len(view) + 1 {
			if validated(session.OpenAIChat, view, checkpoint).Valid("") {
				t.Errorf("%s, checkpoint at %d: the view is called valid", id, checkpoint)
			}
		}
	}
}

// TestASystemPromptAloneIsNoView reads a session in which nobody has said anything yet: a list without messages is
// refused.
func TestASystemPromptAloneIsNoView(t *testing.T) {
	t.Parallel()
	for f, system := range map[session.Format]string{
		session.Anthropic: `{"role":"system","content":"Be brief."}`, session.Gemini: `{"role":"system","parts":[{"text":"Be brief."}]}`,
	} {
		view := stored(f, [][]byte{[]byte(system)})
		if validated(f, view, 0).Valid("") || validated(f, view, 1).Valid("") {
			t.Errorf("%s: a system prompt alone is called valid", f)
		}
		if made := wiretest.Render(f, view, wire.Options{}); len(made.Bodies) != 2 || made.System != 1 {
			t.Errorf("%s: the view is %s", f, made.Bodies)
		}
	}
}

// TestWhatWasAssessedByFewerRulesIsNotCalledValid reads shapes and states as versions stored them that did not look at all
// rules: they had one bit for that, first the one and then the other, and the last bit of a state of one byte.
func TestWhatWasAssessedByFewerRulesIsNotCalledValid(t *testing.T) {
	t.Parallel()
	const first, second = 1 << 8, -1 << 31
	now := wire.ShapeOfBody(session.OpenAIChat, []byte(`{"role":"user","content":"go"}`))
	assessedBy := func(flag wire.Flags) wire.MessageShape {
		old := now
		old.Flags = now.Flags&^wire.FlagAssessed | flag
		return old
	}
	old := assessedBy(first)
	for _, test := range []struct {
		name  string
		shape wire.MessageShape
		state func([]byte) []byte
		want  bool
	}{
		{"now", now, func(state []byte) []byte { return state }, true},
		{"a message of the first rules", old, func(state []byte) []byte { return state }, false},
		{"a message of the second rules", assessedBy(second), func(state []byte) []byte { return state }, false},
		{"a checkpoint of the second rules", now, func(state []byte) []byte { return append([]byte{state[0] | 0x80}, state[2:]...) }, false},
		{"a checkpoint of the next rules", now, func(state []byte) []byte { return append([]byte{state[0], state[1] + 1}, state[2:]...) }, false},
	} {
		validator := wire.NewFastValidator(session.OpenAIChat)
		validator.Add(&now)
		validator = wire.ResumeFastValidator(session.OpenAIChat, test.state(validator.State()), nil)
		validator.AddShapes([]byte(shapeText(&test.shape)))
		if got := validator.Valid(""); got != test.want {
			t.Errorf("%s: Valid = %t", test.name, got)
		}
	}
	if !old.Flags.Agree(now.Flags|wire.FlagMayNeedRepair) || (old.Flags ^ wire.FlagImage).Agree(now.Flags) || now.Flags.Agree(old.Flags) {
		t.Error("flags from before do not agree with those of now where both are known, or do where they differ")
	}
}

// TestAFastValidatorKnowsTheIDsOfItems repeats an id of an item, in a checkpoint, across its end and behind it.
func TestAFastValidatorKnowsTheIDsOfItems(t *testing.T) {
	t.Parallel()
	message := func(id string) []byte {
		return []byte(`{"id":"` + id + `","type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}`)
	}
	call := []byte(`{"id":"fc_1","type":"function_call","call_id":"c","name":"f","arguments":"{}"}`)
	output := []byte(`{"type":"function_call_output","call_id":"c","output":"r"}`)
	for _, test := range []struct {
		last []byte
		want bool
	}{{message("msg_3"), true}, {message("msg_1"), false}, {[]byte(`{"role":"assistant","content":"without"}`), true}, {message("x_3"), false}} {
		view := stored(session.OpenAIResponses, [][]byte{[]byte(`{"role":"user","content":"go"}`), message("msg_1"), call, output, message("msg_2"), test.last})
		for checkpoint := range len(view) + 1 {
			if got := validated(session.OpenAIResponses, view, checkpoint).Valid(""); got != test.want {
				t.Errorf("%s, checkpoint at %d: Valid = %t", test.last, checkpoint, got)
			}
		}
	}
}
