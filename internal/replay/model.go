package replay

import (
	"errors"
	"fmt"

	"github.com/varve-dev/varve/internal/compact/summary"
	"github.com/varve-dev/varve/internal/tokens"
)

// Price is what a model for summaries costs for a token, in input tokens of the session's own model that no cache
// holds.
type Price struct{ Input, Output float64 }

// ownPrice is that of the session's own model: a model for summaries is usually cheaper.
var ownPrice = Price{Input: 1, Output: 5}

// Priced returns the contender with that price of the model that its policy names, if it names one. Otherwise the model
// costs as much as the session's own.
func (c Contender) Priced(p Price) Contender {
	c.price = p
	return c
}

// model stands for the model that a policy names, which a replay does not ask: it writes what Extract would. All else
// is as with a model: its answers are checked, and kept, so that each is paid once.
type model struct {
	name  string
	price Price
	kept  map[summary.Digest]summary.Answer
	paid  func(cost float64)
}

// errNothing is the model's failure to write anything shorter than what it is sent.
var errNothing = errors.New("there is no shorter summary")

// write answers a request.
func (m *model) write(r summary.Request) (summary.Answer, error) {
	digest := r.Digest()
	if a, ok := m.kept[digest]; ok {
		return a, nil
	}
	written := summary.Extract(r)
	text := "<summary>\n" + written.Retain + "\n" + written.Summary + "\n</summary>"
	m.paid(m.price.Input*float64(sent(r)) + m.price.Output*float64(tokens.Estimate([]byte(text))))
	if written.Retain+written.Summary == "" {
		return summary.Answer{}, fmt.Errorf("%w: %w", summary.ErrFailed, errNothing)
	}
	a, err := summary.Accept(text, r)
	if err != nil {
		return a, fmt.Errorf("%w: %w", summary.ErrFailed, err)
	}
	a.Writer = m.name
	m.kept[digest] = a
	return a, nil
}

// sent returns the tokens of what a model is sent for a request.
func sent(r summary.Request) int {
	const delimiter = "0123456789abcdef" // as long as the ones that are made up
	d := summary.DialogueOf(r, delimiter)
	n := tokens.Estimate([]byte(d.System))
	for _, message := range d.Messages {
		for _, p := range message.Parts {
			n += tokens.Estimate([]byte(p.Text))
		}
	}
	return n
}
