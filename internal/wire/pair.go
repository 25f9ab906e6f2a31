package wire

import (
	"slices"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/units"
)

// pairer gives the calls of a conversation numbers, and each result the number of the call that it answers.
type pairer struct {
	open  units.Pairer[*pairedCall]
	early units.Early[*Block]
	calls []*pairedCall
}

// pairedCall is a call, with the results before it that may be its own, the nearest one first.
type pairedCall struct {
	at       *Block
	answered bool
	before   []*Block
}

// pair pairs the calls and results of a list and returns how many calls there are. A result answers the nearest call
// before it that has no result, else one behind it, as package units says.
func pair(list []Message) int {
	var p pairer
	for i := range list {
		n := &list[i]
		if n.Role == User && n.flags&FlagPinned == 0 && !n.has(Result) {
			p.early.Said()
		}
		if beginsTurn(list, i) {
			p.open.Turn()
		}
		for j := range n.Blocks {
			switch b := &n.Blocks[j]; b.Kind {
			case Call:
				p.call(n, b)
			case Result:
				p.result(n, b)
			}
		}
	}
	for _, c := range p.calls {
		if !c.answered {
			c.answerEarly()
		}
	}
	return len(p.calls)
}

// beginsTurn reports whether message i begins a turn of the assistant. Each call of Responses is an item of its own.
func beginsTurn(list []Message, i int) bool {
	n := &list[i]
	if i == 0 || n.Role != Assistant || list[i-1].Role != Assistant {
		return n.Role == Assistant
	}
	return list[i-1].Origin != n.Origin && n.Format != session.OpenAIResponses
}

func (p *pairer) call(n *Message, b *Block) {
	c := &pairedCall{at: b, before: p.early.Call(b.CallID, n.Origin)}
	p.early.Called(b.CallID)
	p.calls = append(p.calls, c)
	b.pair = len(p.calls)
	p.open.Call(b.CallID, b.toolName(), c)
}

func (p *pairer) result(n *Message, b *Block) {
	if c, ok := p.open.Answer(b.CallID, b.toolName()); ok {
		c.answered = true
		b.pair = c.at.pair
		return
	}
	p.early.Result(b.CallID, n.Origin, b)
}

// answerEarly gives a call that no result behind it answers the nearest one before it that no other call took.
func (c *pairedCall) answerEarly() {
	isFree := func(b *Block) bool { return b.pair == 0 }
	if at := slices.IndexFunc(c.before, isFree); at >= 0 {
		c.before[at].pair = c.at.pair
	}
}
