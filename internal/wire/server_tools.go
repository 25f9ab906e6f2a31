package wire

import (
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/session"
)

// serverTools pairs the calls of tools that Anthropic itself runs with their results. B is what the caller needs of a
// block.
type serverTools[B any] struct {
	open  []serverCall[B]
	alone []B // calls that got no result, and results of no call
}

type serverCall[B any] struct {
	id    string
	block B
}

// add adds the next block, whatever it is.
func (s *serverTools[B]) add(raw []byte, block B) {
	kind := stringMember(raw, "type")
	switch {
	case isServerCall(kind):
		s.open = append(s.open, serverCall[B]{stringMember(raw, "id"), block})
	case strings.HasSuffix(kind, "_tool_result"):
		s.answer(stringMember(raw, "tool_use_id"), block)
	}
}

// isServerCall reports whether a block of a type is a call of a tool that Anthropic itself runs.
func isServerCall(kind string) bool { return kind == "server_tool_use" || kind == "mcp_tool_use" }

// isPause reports whether a block is one behind which the API continues: a call of its own tool, or a compaction behind
// which it was to pause.
func isPause(block []byte) bool { return isServerCall(stringMember(block, "type")) || isSummary(block) }

func (s *serverTools[B]) answer(id string, block B) {
	at := slices.IndexFunc(s.open, func(c serverCall[B]) bool { return c.id == id })
	if at < 0 {
		s.alone = append(s.alone, block)
		return
	}
	s.open = slices.Delete(s.open, at, at+1)
}

// said ends the turn of the assistant: what is open gets no result.
func (s *serverTools[B]) said() {
	for _, c := range s.open {
		s.alone = append(s.alone, c.block)
	}
	s.open = nil
}

// serverToolsAnswered checks V-A15. Where Anthropic paused, the last turn has calls without results.
func (c *checker) serverToolsAnswered() {
	var tools serverTools[int]
	for i := c.head; i < len(c.messages); i++ {
		m := &c.messages[i]
		if m.Role == "user" && m.count(Result) < len(m.Parts) {
			tools.said()
		}
		for _, p := range c.partsOf(run{start: i, end: i + 1}) {
			if p.Kind == Opaque && m.Role == "assistant" {
				tools.add(c.raw(i, p), i)
			}
		}
	}
	for _, i := range tools.alone {
		c.report(i, "a call of a tool that the API runs, and its result, are not both there")
	}
}

// settleServerTools turns calls of tools that Anthropic runs into texts if they got no result, and results without a
// call.
func (r *repairer) settleServerTools(list []Message) {
	if r.target != session.Anthropic {
		return
	}
	type place struct {
		n *Message
		p *Block
	}
	var tools serverTools[place]
	for i := range list {
		n := &list[i]
		if n.Role == User && n.count(Result) < len(n.Blocks) {
			tools.said()
		}
		for j := range n.Blocks {
			if p := &n.Blocks[j]; p.Kind == Opaque && p.Format == r.target && n.Role == Assistant {
				tools.add(p.Raw, place{n, p})
			}
		}
	}
	r.paused = endsInPause(list)
	if !r.paused && r.willAddUser(list) {
		tools.said()
	}
	for _, at := range tools.alone {
		at.n.makeText(at.p, substitute(at.p))
		r.repaired("V-A15", "server_tool_as_note", at.n,
			"a call of a tool that the API runs, or its result, is a text: the other of the two is not there")
	}
}

// endsInPause reports whether the last block of a list is one behind which the API continues.
func endsInPause(list []Message) bool {
	if len(list) == 0 {
		return false
	}
	last := &list[len(list)-1]
	if last.Role != Assistant || len(last.Blocks) == 0 {
		return false
	}
	end := &last.Blocks[len(last.Blocks)-1]
	return end.Kind == Opaque && end.Format == session.Anthropic && isPause(end.Raw)
}

// willAddUser reports whether ends will add a message of the user to a list.
func (r *repairer) willAddUser(list []Message) bool {
	spoke := len(list) > 0 && list[len(list)-1].Role == Assistant && !r.inFlight
	return spoke && r.refusesLastAssistant() != ""
}

// serverToolsAlone reports whether a message has a call of a tool that Anthropic runs without its result, or the other
// way round.
func (s *scanner) serverToolsAlone() bool {
	var tools serverTools[struct{}]
	for i := range s.facts.Parts {
		if p := &s.facts.Parts[i]; p.Kind == Opaque {
			tools.add(p.Raw.Of(s.body), struct{}{})
		}
	}
	return len(tools.open)+len(tools.alone) > 0
}
