package wire

import (
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/units"
)

// Translate writes consecutive messages in another format, for callers that continue to work on them: nothing is
// repaired that Render would repair. Each message has the seq of the last one that is in it. Where the target has
// results in one message with their calls, several become one; otherwise one may become several of its seq.
func Translate(target session.Format, run []Stored) []Stored {
	r := &repairer{target: target, view: run}
	var list []Message
	for i := range run {
		list = append(list, r.decode(i)...)
	}
	nameResults(list)
	var out []Stored
	for len(list) > 0 {
		n := together(target, list)
		for _, body := range Encode(target, list[:n]) {
			out = append(out, Stored{Format: target, Body: body, Seq: run[list[n-1].Origin].Seq})
		}
		list = list[n:]
	}
	return out
}

// nameResults gives results without a name the names of their tools.
func nameResults(list []Message) {
	var open units.Pairer[[]byte]
	for i := range list {
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
