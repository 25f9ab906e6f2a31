package modelcall

import (
	"strings"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/compact/summary"
	"github.com/varve-dev/varve/internal/llm"
	"github.com/varve-dev/varve/internal/session"
)

// Estimate returns what the model of that name would be asked for a request of which no answer is kept, and what that
// would use: tokens of the requests as they are estimated, and answers as long as they may be. An answer that is
// refused costs another call, which is not counted. Its error is ErrUnknownModel or ErrTooLarge.
func (a *Caller) Estimate(model string, r summary.Request) (session.ModelSpending, error) {
	run, err := a.newRun(uuid.Nil, uuid.Nil, model, r)
	if err != nil {
		return session.ModelSpending{}, err
	}
	var sum session.ModelSpending
	for range maxLevels {
		parts := summary.Chunks(r, run.room(r))
		for _, part := range parts {
			sum = sum.Plus(run.foreseen(part))
		}
		if len(parts) == 1 {
			return sum, nil
		}
		r = summary.Reduce(r, run.longest(parts))
	}
	return sum, ErrTooLarge
}

// foreseen returns what one call uses.
func (r *run) foreseen(request summary.Request) session.ModelSpending {
	d := summary.DialogueOf(request, delimiter())
	return r.spending(llm.Usage{Input: int64(d.Tokens()), Output: int64(r.model.Output(d))})
}

// longest returns answers as long as those to the parts may be: a word is a token.
func (r *run) longest(parts []summary.Request) []summary.Answer {
	answers := make([]summary.Answer, len(parts))
	for i := range parts {
		limit := r.model.Limit(summary.Dialogue{MaxTokens: parts[i].MaxTokens})
		answers[i] = summary.Answer{Summary: strings.Repeat("word ", limit)}
	}
	return answers
}
