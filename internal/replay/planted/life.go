package planted

import (
	"context"
	"fmt"
	"strings"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/compact/summary"
	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/due"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/replay"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// windows is how many summaries the window has room for: half of it is the target, which a summary and pins fit into.
const windows = 4

// spare is how many tokens of the limit no writer uses: the engine counts a text in a message a little higher.
const spare = 16

// life is a session that grows step by step and is compacted after each.
type life struct {
	session   *replay.Session
	steps     [][]compact.Entry
	facts     []fact
	maxTokens int // of a summary
	base      *compact.Checkpoint
	tail      []compact.Entry

	compactions int
}

// measure lets the engine compact a session after each step with a writer, and counts what the view has of the facts.
func (r *Row) measure(ctx context.Context, l *life, by *Writer) error {
	write := by.begin(l.facts)
	due := map[int][]fact{} // by the number of the compaction after which they are looked for
	for i := range l.steps {
		for _, f := range l.facts {
			if f.step == i {
				due[l.compactions+1+later] = append(due[l.compactions+1+later], f)
			}
		}
		l.tail = append(l.tail, l.steps[i]...)
		if len(l.steps[i]) > 0 {
			if err := l.compact(ctx, l.pins(by, i), write); err != nil {
				return err
			}
		}
		view, err := l.view()
		if err != nil {
			return err
		}
		for _, f := range due[l.compactions] {
			r.count(f.kind, strings.Contains(view, f.says))
		}
		delete(due, l.compactions)
		if i == len(l.steps)-1 {
			r.Tokens += cost(view)
			r.Compactions += l.compactions
		}
	}
	return nil
}

// everything is the policy that summarises everything in each compaction, and has nothing beside the summary.
var everything = func() policy.Policy {
	y, err := replay.Yardstick("summarise-95")
	if err != nil {
		panic(err) // there is a yardstick of that name
	}
	return y.Policy
}()

// policy returns that policy with the limit of the summaries.
func (l *life) policy() policy.Policy {
	p := everything
	p.Pins = policy.Default().Pins
	p.Summarise.MaxTokens, p.Summarise.MinTokens = l.maxTokens, 1
	p.Summarise.Retain = false
	p.OnlySmaller = false // else the limit would be a quarter of the target
	return p
}

// compact makes the next checkpoint as a worker does.
func (l *life) compact(ctx context.Context, pins []compact.Pin, write write) error {
	tokens := int64(0)
	if l.base != nil {
		tokens = int64(cost(string(l.base.Body)))
	}
	for i := range l.tail {
		tokens += int64(l.tail[i].Tokens)
	}
	made, _, err := compactor.Rehearse(ctx, compactor.Rehearsal{
		Input: compact.Input{
			Format: l.session.Format, Policy: l.policy(), WindowTokens: windows * l.maxTokens,
			Base: l.base, Tail: l.tail, Pins: pins,
		},
		Context: tokens, Reached: due.Hard,
		Write: func(r summary.Request) (summary.Answer, error) {
			r.MaxTokens -= spare
			text := strings.ToValidUTF8(write(r), "")
			if text == "" {
				return summary.Answer{}, summary.ErrFailed
			}
			return summary.Answer{Summary: text}, nil
		},
	})
	if err != nil || made.Made == nil {
		return err
	}
	l.base = made.Made
	l.compactions++
	for len(l.tail) > 0 && l.tail[0].Seq <= l.base.Through {
		l.tail = l.tail[1:]
	}
	return nil
}

// pins returns the facts up to a step, each pinned by a caller, if the writer's row is that of pins.
func (l *life) pins(by *Writer, step int) (pins []compact.Pin) {
	for _, f := range l.facts {
		if by.pins && f.step <= step {
			pins = append(pins, compact.Pin{
				Ref: fmt.Sprintf("m%d", f.seq), Seq: f.seq, Part: session.WholeMessage,
				Text: strings.TrimSpace(f.line), Asked: true,
			})
		}
	}
	return pins
}

// view returns the texts of the newest checkpoint.
func (l *life) view() (string, error) {
	if l.base == nil {
		return "", nil
	}
	var all strings.Builder
	list := append(append([]byte{'['}, l.base.Body...), ']')
	for span := range rawjson.Elements(list, 0) {
		body := span.Of(list)
		found, err := wire.Inspect(l.session.Format, body)
		if err != nil {
			return "", err
		}
		for _, p := range decoded(l.session.Format, 0, body, &found).Parts {
			all.WriteString(p.Text + "\n")
		}
	}
	return all.String(), nil
}

// bodies returns the messages of each step, those with facts as they are with them.
func bodies(s *replay.Session, parts, with [][]summary.Message) [][]compact.Entry {
	all := make([][]compact.Entry, len(parts))
	next := 0
	for step := range parts {
		for i := range parts[step] {
			m := &s.Messages[next]
			next++
			e := compact.Entry{Seq: m.Seq, Tokens: m.Tokens, Body: m.Body}
			if step < withFacts {
				e = planted(s.Format, e, parts[step][i], with[step][i])
			}
			all[step] = append(all[step], e)
		}
	}
	return all
}

// planted returns a message with the texts of another one that differ from its own.
func planted(format session.Format, e compact.Entry, from, to summary.Message) compact.Entry {
	found, err := wire.Inspect(format, e.Body)
	if err != nil {
		return e
	}
	var edits []wire.Edit
	for k := range found.Parts {
		if from.Parts[k].Text == to.Parts[k].Text {
			continue
		}
		if at := literal(e.Body, found.Parts[k].Value, from.Parts[k].Text); at.End > 0 {
			edits = append(edits, wire.Edit{Span: at, With: rawjson.Quote(nil, []byte(to.Parts[k].Text))})
		}
	}
	if len(edits) > 0 {
		e.Body = wire.Replace(nil, e.Body, edits)
		e.Tokens = cost(string(e.Body))
	}
	return e
}

// literal returns the longest string in a JSON value that a text has, the zero Span for none.
func literal(body []byte, value rawjson.Span, text string) (best rawjson.Span) {
	longer := func(found rawjson.Span) {
		if found.End-found.Start > best.End-best.Start {
			best = found
		}
	}
	switch body[value.Start] {
	case '"':
		if words, _ := rawjson.Unquote(nil, value.Of(body)); strings.Contains(text, string(words)) {
			return value
		}
	case '[':
		for element := range rawjson.Elements(body, value.Start) {
			longer(literal(body, element, text))
		}
	case '{':
		for _, member := range rawjson.Members(body, value.Start) {
			longer(literal(body, member, text))
		}
	}
	return best
}
