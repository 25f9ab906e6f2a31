package compact

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/compact/pin"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// pinTrial compacts a session that grows, step by step, and looks for its pins after each.
type pinTrial struct {
	testing.TB
	in    Input
	tail  []Entry
	made  *Checkpoint
	texts []string // that every checkpoint must have from now on
}

// texts in which every character that JSON or a template could change stands.
const (
	markedRule = "Never push to main.\n\tUse \"make land\" \\ <b>ask</b> first: 提交前先运行测试 {ref} 🧪"
	askedRule  = "result 417 -> /srv/app/config.toml:88 \"exact\""
)

var pinPolicies = map[string]func(*policy.Policy){
	"the default":     func(*policy.Policy) {},
	"segments":        func(p *policy.Policy) { p.Summarise.Segments = 3 },
	"only truncation": func(p *policy.Policy) { p.Summarise.Enabled = false },
	"every stage": func(p *policy.Policy) {
		p.Trim.Enabled, p.Whitespace.Enabled, p.Budget.Enabled = true, true, true
		p.Trim.HotZoneMinTokens, p.Trim.HotZoneRatio, p.Protect.LastUnits = 0, 0, 0
	},
	"only trimming":       func(p *policy.Policy) { *p = only("trim", nil) },
	"only summaries":      func(p *policy.Policy) { *p = only("summarise", func(*policy.Policy) {}) },
	"one summary of all":  func(p *policy.Policy) { p.Summarise.All, p.Summarise.KeepTurns = true, 0 },
	"a model that is due": func(p *policy.Policy) { p.Summarise.Fallback = policy.KeepInstead },
}

func TestPinsStayWordForWord(t *testing.T) {
	t.Parallel()
	for _, f := range session.Formats() {
		for name, change := range pinPolicies {
			t.Run(string(f)+"/"+name, func(t *testing.T) {
				t.Parallel()
				p := policy.Default()
				change(&p)
				p.Pins.Markers, p.Pins.MaxTokens = true, 900
				newPinTrial(t, f, p).run()
			})
		}
	}
}

// newPinTrial returns a session of 20 tasks with a pinned rule in the first.
func newPinTrial(t testing.TB, f session.Format, p policy.Policy) *pinTrial {
	moves := []move{asks("Begin. " + pin.Open + markedRule + pin.Close + " And go on."), says("I will.")}
	moves = append(moves, returns("Read", "config.toml", askedRule+filler(300)))
	moves = append(moves, returns("Read", "other", "another"), says("Found it."))
	for i := range 80 {
		moves = append(moves, asks(fmt.Sprint("task ", i)), gives("Read", fmt.Sprint("f", i), 1200), says("done"))
	}
	in := Input{Format: f, Policy: p, WindowTokens: 8000}
	return &pinTrial{TB: t, in: in, tail: writtenIn(t, f, moves), texts: []string{markedRule}}
}

// writtenIn returns moves in any format.
func writtenIn(t testing.TB, f session.Format, moves []move) (entries []Entry) {
	var chat []wire.Stored
	for i, body := range then(moves...)(session.OpenAIChat) {
		chat = append(chat, wire.Stored{Format: session.OpenAIChat, Body: []byte(body), Seq: int64(i + 1)})
	}
	list, err := wire.Translate(t.Context(), f, chat)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		found, err := wire.Inspect(f, m.Body)
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, Entry{Seq: int64(len(entries) + 1), Tokens: found.Tokens, Body: m.Body})
	}
	return entries
}

func (l *pinTrial) run() {
	steps := 0
	for from := range slices.Chunk(l.tail, len(l.tail)/20+1) {
		l.in.Base = l.made
		if steps++; steps == 1 {
			l.pin(from)
		}
		l.in.Tail = after(l.in.Tail, l.made.through())
		for _, e := range from {
			l.in.Tail = append(l.in.Tail, Divide(l.in.Format, e)...)
		}
		if steps == 12 { // long after it has left the view
			l.in.Pins = append(l.in.Pins, Pin{Ref: "m2", Seq: 2, Part: session.WholeMessage, Text: "I will."})
			l.texts = append(l.texts, "I will.")
		}
		l.step()
	}
	evicts := l.in.Policy.Summarise.Enabled || l.in.Policy.Truncate.Enabled
	if evicts && !strings.Contains(string(l.made.Body), "## Pinned, word for word") {
		l.Fatal("nothing that is pinned has left the view: the test shows nothing")
	}
	l.in.Base, l.in.Tail = l.made, after(l.in.Tail, l.made.through())
	l.unpin()
}

// unpin lets the caller unpin all, which the next compaction obeys if it can write the message anew.
func (l *pinTrial) unpin() {
	if !l.in.Policy.Summarise.Enabled {
		return
	}
	l.in.Pins, l.texts = nil, []string{markedRule}
	l.step()
	if strings.Contains(string(l.made.Body), "I will.") {
		l.Fatalf("what was unpinned is carried on: %s", l.made.Body)
	}
}

// pin lets a caller pin all that the first messages have, through the first result: texts of the user and of the model, calls and a result, each
// part for itself and each message whole.
func (l *pinTrial) pin(entries []Entry) {
	kinds := map[wire.Kind]bool{}
	for _, e := range entries {
		found, err := wire.Inspect(l.in.Format, e.Body)
		if err != nil {
			l.Fatal(err)
		}
		for _, p := range found.Parts {
			if p.Kind == wire.Opaque {
				continue
			}
			kinds[p.Kind] = true
			l.pinPart(e, &found, p.Index)
		}
		l.pinPart(e, &found, session.WholeMessage)
		if kinds[wire.Result] && kinds[wire.Call] && kinds[wire.Text] {
			return
		}
	}
	l.Fatalf("there are only %v to pin", kinds)
}

func (l *pinTrial) pinPart(e Entry, found *wire.Facts, part int) {
	text, ok := pin.TextOf(l.in.Format, e.Body, found, part)
	if !ok {
		l.Fatalf("nothing to pin in part %d of %s", part, e.Body)
	}
	l.in.Pins = append(l.in.Pins, Pin{Ref: fmt.Sprintf("m%d.%d", e.Seq, part), Seq: e.Seq, Part: part, Text: text})
	l.texts = append(l.texts, text)
}

// step compacts, and looks for each pin in the view.
func (l *pinTrial) step() {
	plan, made, err := Run(context.Background(), l.in, nil)
	if err != nil {
		l.Fatal(err)
	}
	if len(plan.Unheld) > 0 {
		l.Fatalf("%d pins need the log", len(plan.Unheld))
	}
	l.made = made
	var view strings.Builder
	for _, m := range show(l, l.in.Format, made) {
		l.read(&view, m.body)
	}
	for _, e := range after(l.in.Tail, made.through()) {
		l.read(&view, e.Body)
	}
	for _, text := range l.texts {
		if !strings.Contains(view.String(), text) {
			l.Fatalf("after message %d the view lacks %q:\n%s", made.through(), text, view.String())
		}
	}
}

func (l *pinTrial) read(into *strings.Builder, body []byte) {
	found, err := wire.Inspect(l.in.Format, body)
	if err != nil {
		l.Fatal(err)
	}
	text, _ := pin.TextOf(l.in.Format, body, &found, session.WholeMessage)
	into.WriteString(text + "\n\n")
}
