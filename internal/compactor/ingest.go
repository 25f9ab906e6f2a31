package compactor

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// CapAtInsertion cuts the oversized results of a batch that is being appended, and persists them in the same transaction:
// a result that is too large never enters a view whole. It is a postgres.Cap.
func CapAtInsertion(ctx context.Context, tx pgx.Tx, batch postgres.Insertion) ([]postgres.Shown, error) {
	policy, err := policy.Parse(batch.Policy)
	if err != nil {
		return nil, fmt.Errorf("policy of session %s: %w", batch.Key.Key, err)
	}
	open, err := openCalls(ctx, tx, batch)
	if err != nil {
		return nil, err
	}
	views, results := make([]postgres.Shown, len(batch.Messages)), []persist.NewResult(nil)
	for i := range batch.Messages {
		m := &batch.Messages[i]
		if len(m.Answers) > 0 {
			capped, err := compact.CapAtIngest(&policy, batch.Format, batch.FirstSeq+int64(i), m.Body, open.tool)
			if err != nil {
				return nil, err
			}
			if capped != nil {
				views[i] = postgres.Shown{Body: capped.Body, Tokens: capped.Tokens}
				results = append(results, newResults(capped.Results)...)
			}
		}
		if err := open.read(batch.Format, m.Body); err != nil {
			return nil, err
		}
	}
	if results == nil {
		return nil, nil
	}
	return views, persist.PutIn(ctx, tx, batch.Key, results)
}

// calls are the tools of the calls that wait for a result, by the id of the call. A result of another call is none that
// the engine would pair, and is not touched.
type calls map[string]string

// openCalls are those before a batch that it may answer.
func openCalls(ctx context.Context, tx pgx.Tx, batch postgres.Insertion) (calls, error) {
	var ids []string
	for i := range batch.Messages {
		ids = append(ids, batch.Messages[i].Answers...)
	}
	bodies, err := postgres.Exchange(ctx, tx, batch.Key, batch.Format, batch.FirstSeq, ids)
	if err != nil {
		return nil, err
	}
	open := calls{}
	for _, body := range bodies {
		if err := open.read(batch.Format, body); err != nil {
			return nil, err
		}
	}
	return open, nil
}

func (c calls) tool(id string) (name string, ok bool) {
	name, ok = c[id]
	return name, ok
}

// read follows a message: its calls open, its results close.
func (c calls) read(f session.Format, body []byte) error {
	found, err := wire.Inspect(f, body)
	if err != nil {
		return err
	}
	for _, part := range found.Parts {
		switch part.Kind {
		case wire.Call:
			c[part.CallID] = part.Name
		case wire.Result:
			delete(c, part.CallID)
		}
	}
	return nil
}
