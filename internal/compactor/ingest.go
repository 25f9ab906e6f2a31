package compactor

import (
	"fmt"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/units"
	"github.com/varve-dev/varve/internal/wire"
)

// CapAtIngest cuts the oversized results of a batch that is being appended: a result that is too large never enters a
// view whole. It is a postgres.IngestCap.
func CapAtIngest(batch postgres.IngestBatch) ([]postgres.ViewMessage, []persist.NewResult, error) {
	policy, err := policy.Parse(batch.Policy)
	if err != nil {
		return nil, nil, fmt.Errorf("policy: %w", err)
	}
	var calls OpenCalls
	for _, body := range batch.Earlier {
		if err := calls.read(batch.Format, body); err != nil {
			return nil, nil, err
		}
	}
	views := make([]postgres.ViewMessage, len(batch.Messages))
	var results []persist.NewResult
	for i := range batch.Messages {
		m := &batch.Messages[i]
		if len(m.Answers) == 0 {
			if err := calls.read(batch.Format, m.Body); err != nil {
				return nil, nil, err
			}
			continue
		}
		capped, err := compact.CapAtIngest(&policy, batch.Format, batch.FirstSeq+int64(i), m.Body, calls.Tool)
		if err != nil {
			return nil, nil, err
		}
		if capped != nil {
			views[i] = postgres.ViewMessage{Body: capped.Body, Tokens: capped.Tokens}
			results = append(results, newResults(capped.Results)...)
		}
	}
	if results == nil {
		return nil, nil, nil
	}
	return views, results, nil
}

// OpenCalls follows a conversation, part by part, to find the tools of the calls that its results answer.
type OpenCalls struct{ tools units.Pairer[string] }

// Tool takes the next part and returns the tool of the call that it answers; ok is false if it answers none.
func (c *OpenCalls) Tool(part *wire.Part) (tool string, ok bool) {
	switch part.Kind {
	case wire.Call:
		c.tools.Call(part.CallID, part.Name, part.Name)
	case wire.Result:
		return c.tools.Answer(part.CallID, part.Name)
	}
	return "", false
}

func (c *OpenCalls) read(f session.Format, body []byte) error {
	found, err := wire.Inspect(f, body)
	for i := range found.Parts {
		c.Tool(&found.Parts[i])
	}
	return err
}
