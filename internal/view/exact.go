package view

import (
	"context"
	"math"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tokens"
	"github.com/varve-dev/varve/internal/wire"
)

// exact counts messages by a vocabulary, too, as long as nobody has reported how the session's provider counts: the
// estimate may be a fraction of the tokens of some texts. A nil exact is the estimate alone.
type exact struct {
	ctx         context.Context // of the request, as long as which it lives
	calibration float64         // the provider's tokens for each estimated one
	read        int             // bytes, of which there are tokens.MaxExact
	estimated   int             // tokens of what was counted
	counted     int             // the same by the vocabulary, in estimated ones
}

// vocabulary is what messages are counted by whose provider's is not known.
const vocabulary = "o200k"

// mayHide reports whether a view that must fit may have more tokens than the estimate tells: a text has no more than
// bytes.
func (r *Request) mayHide(v *postgres.View) bool {
	bytes := int64(v.Size+len(v.System)) + v.TailBytes
	return r.Fit != nil && v.Guess > 0 && bytes > r.limit(v)
}

// inspect inspects a message whose tokens are those of the estimate or, if they are more, those of the vocabulary in
// estimated ones. Its errors are those of wire.Inspect and of the context.
func (x *exact) inspect(f session.Format, body []byte) (wire.Facts, error) {
	facts, err := wire.Inspect(f, body)
	switch {
	case err != nil || x == nil:
		return facts, err
	case x.read > tokens.MaxExact:
		x.raise(&facts)
		return facts, nil
	}
	x.read += len(body)
	counted, err := wire.Count(f, body, func(text string) (int, error) { return tokens.Count(x.ctx, vocabulary, text) })
	if err != nil {
		return facts, err
	}
	x.estimated += facts.Tokens
	if n := int(math.Ceil(float64(counted.Tokens) / x.calibration)); n > facts.Tokens {
		facts.Tokens = n
		for i := range facts.Parts {
			p := &facts.Parts[i]
			p.Tokens = max(p.Tokens, int(math.Ceil(float64(counted.Parts[i].Tokens)/x.calibration)))
		}
	}
	x.counted += facts.Tokens
	return facts, nil
}

// raise gives a message that is not counted as many tokens as the estimate tells of such as were.
func (x *exact) raise(facts *wire.Facts) {
	times := float64(x.counted) / float64(max(x.estimated, 1))
	facts.Tokens = int(math.Ceil(float64(facts.Tokens) * times))
	for i := range facts.Parts {
		facts.Parts[i].Tokens = int(math.Ceil(float64(facts.Parts[i].Tokens) * times))
	}
}
