package wire

import (
	"slices"

	"github.com/varve-dev/varve/internal/units"
)

// pairer gives the calls of a conversation numbers, and each result the number of the call that it answers.
type pairer struct {
	open    units.Pairer[*pairedCall]
	early   units.Early
	calls   []*pairedCall
	results []*Block // that answer no call before them
}

// pairedCall is a call, with the results that may stand before it as indexes of pairer.results, the nearest one first.
type pairedCall struct {
	at       *Block
	answered bool
	before   []int
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
		for j := range n.Blocks {
			switch b := &n.Blocks[j]; b.Kind {
			case Call:
				p.call(b)
			case Result:
				p.result(b)
			}
		}
	}
	for _, c := range p.calls {
		if !c.answered {
			p.answerEarly(c)
		}
	}
	return len(p.calls)
}

func (p *pairer) call(b *Block) {
	c := &pairedCall{at: b, before: p.early.Call(b.CallID)}
	p.calls = append(p.calls, c)
	b.pair = len(p.calls)
	p.open.Call(b.CallID, b.toolName(), c)
}

func (p *pairer) result(b *Block) {
	if c, ok := p.open.Answer(b.CallID, b.toolName()); ok {
		c.answered = true
		b.pair = c.at.pair
		return
	}
	p.early.Result(b.CallID, len(p.results))
	p.results = append(p.results, b)
}

// answerEarly gives a call that no result behind it answers the nearest one before it that no other call took.
func (p *pairer) answerEarly(c *pairedCall) {
	isFree := func(i int) bool { return p.results[i].pair == 0 }
	if at := slices.IndexFunc(c.before, isFree); at >= 0 {
		p.results[c.before[at]].pair = c.at.pair
	}
}
