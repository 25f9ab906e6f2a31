package wire

import (
	"bytes"
	"context"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/units"
)

// Translated is a message that Translate wrote.
type Translated struct {
	Stored
	Origins []Origin // of its parts, in the order of Inspect
}

// Origin is where a part of a translated message was appended: the number of its message in the run and its own number
// there, by which a ref names it. Part is -1 if no part was appended that became this one, as it is.
type Origin struct{ Message, Part int }

// Translate writes consecutive messages of other formats in one, for callers that continue to work on them. It repairs
// nothing, because Render will. Each message has the seq of the last one that is in it. Where the target has
// results in one message with their calls, several become one; otherwise one may become several of its seq.
//
// Its only error is that of a context that has ended.
func Translate(ctx context.Context, target session.Format, run []Stored) ([]Translated, error) {
	r := repairerOf(target, run)
	list := make([]Message, 0, len(run))
	for i := range run {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		list = append(list, r.decode(i, run[i].Body)...)
	}
	for i := range list {
		list[i].cite(target)
		for j := range list[i].Blocks {
			list[i].Blocks[j].origin = list[i].Origin
		}
	}
	nameResults(list)
	var out []Translated
	for len(list) > 0 {
		n := together(target, list)
		e := encoder{target: target, traced: true}
		if err := e.encode(ctx, list[:n]); err != nil {
			return nil, err
		}
		t := tracer{texts: textsOf(list[:n])}
		for i, body := range e.bodies {
			m := Stored{Format: target, Body: body, Seq: run[list[n-1].Origin].Seq}
			out = append(out, Translated{m, t.origins(m, e.sources[i])})
		}
		list = list[n:]
	}
	return out, nil
}

// TranslateMessage does what Translate does for one message, which nobody needs to interrupt.
func TranslateMessage(target session.Format, m Stored) []Translated {
	list, _ := Translate(context.Background(), target, []Stored{m}) // which never ends
	return list
}

// tracer finds where the parts of translated messages were appended. Texts pass unchanged and in their order.
type tracer struct{ texts []*Block }

func textsOf(list []Message) (texts []*Block) {
	for i := range list {
		for j := range list[i].Blocks {
			if p := &list[i].Blocks[j]; p.Kind == Text {
				texts = append(texts, p)
			}
		}
	}
	return texts
}

// origins returns the origins of a message's parts. sources are the calls and results that were written into it.
func (t *tracer) origins(m Stored, sources []*Block) []Origin {
	found, err := Inspect(m.Format, m.Body)
	if err != nil {
		return nil
	}
	calls := ofKind(sources, Call, found.Parts)
	results := ofKind(sources, Result, found.Parts)
	origins := make([]Origin, len(found.Parts))
	for i := range found.Parts {
		part := &found.Parts[i]
		var from *Block
		switch {
		case part.Kind == Text:
			from = t.text(part.Value.Of(m.Body))
		case part.Kind == Call && len(calls) > 0:
			from, calls = calls[0], calls[1:]
		case part.Kind == Result && len(results) > 0:
			from, results = results[0], results[1:]
		}
		origins[i] = Origin{Part: -1}
		if from != nil {
			origins[i] = Origin{Message: from.origin, Part: from.number - 1}
		}
	}
	return origins
}

// ofKind returns the sources of a kind, none if the parts are not as many: then nobody knows which is which.
func ofKind(sources []*Block, kind Kind, parts []Part) (list []*Block) {
	for _, p := range sources {
		if p.Kind == kind {
			list = append(list, p)
		}
	}
	n := 0
	for i := range parts {
		if parts[i].Kind == kind {
			n++
		}
	}
	if n != len(list) {
		return nil
	}
	return list
}

// text takes the next text off the list that has this literal. Some before it may have become something else.
func (t *tracer) text(literal []byte) *Block {
	const ahead = 16
	for i, p := range t.texts[:min(ahead, len(t.texts))] {
		if bytes.Equal(p.Text, literal) {
			t.texts = t.texts[i+1:]
			return p
		}
	}
	return nil
}

// nameResults gives results without a name the names of their tools.
func nameResults(list []Message) {
	var open units.Pairer[[]byte]
	for i := range list {
		if beginsTurn(list, i) {
			open.Turn()
		}
		for j := range list[i].Blocks {
			p := &list[i].Blocks[j]
			switch p.Kind {
			case Call:
				open.Call(p.CallID, p.toolName(), p.Name)
			case Result:
				if name, ok := open.Answer(p.CallID, p.toolName()); ok && p.Name == nil {
					p.Name = name
				}
			}
		}
	}
}

// together counts the Messages that one step of the assistant consists of where it is one message, or that were one.
func together(target session.Format, list []Message) int {
	n := 1
	for n < len(list) {
		a, b := &list[n-1], &list[n]
		step := b.Role == Tool || a.Role == Assistant && b.Role == Assistant
		if a.Origin != b.Origin && !(target == session.AISDK && list[0].Role == Assistant && step) {
			break
		}
		n++
	}
	return n
}
