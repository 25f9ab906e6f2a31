package jobs

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// CapAtInsertion cuts the oversized results of a batch that is being appended, and persists them in the same transaction:
// a result that is too large never enters a view whole. It is a postgres.Cap.
func CapAtInsertion(ctx context.Context, tx pgx.Tx, batch postgres.Insertion) ([]postgres.Shown, error) {
	policy, err := compact.ParsePolicy(batch.Policy)
	if err != nil {
		return nil, fmt.Errorf("policy of session %s: %w", batch.Key.Key, err)
	}
	tools, err := toolsOf(ctx, tx, batch)
	if err != nil {
		return nil, err
	}
	views, results := make([]postgres.Shown, len(batch.Messages)), []persist.New(nil)
	for i := range batch.Messages {
		m := &batch.Messages[i]
		if len(m.Answers) == 0 {
			continue
		}
		capped, err := compact.CapAtInsertion(&policy, batch.Format, batch.FirstSeq+int64(i), m.Body, func(id string) (string, bool) {
			tool, ok := tools[id]
			return tool, ok
		})
		if err != nil {
			return nil, err
		}
		if capped != nil {
			views[i] = postgres.Shown{Body: capped.Body, Tokens: capped.Tokens}
			results = append(results, newResults(capped.Results)...)
		}
	}
	if results == nil {
		return nil, nil
	}
	return views, persist.PutIn(ctx, tx, batch.Key, results)
}

// toolsOf names the tools of the calls that a batch answers, by the id of the call: of the newest call where ids repeat.
func toolsOf(ctx context.Context, tx pgx.Tx, batch postgres.Insertion) (map[string]string, error) {
	var ids []string
	var bodies [][]byte
	for i := range batch.Messages {
		ids = append(ids, batch.Messages[i].Answers...)
	}
	stored, err := postgres.Callers(ctx, tx, batch.Key, batch.FirstSeq, ids)
	if err != nil {
		return nil, err
	}
	for i := len(stored) - 1; i >= 0; i-- {
		bodies = append(bodies, stored[i])
	}
	for i := range batch.Messages {
		if len(batch.Messages[i].Calls) > 0 {
			bodies = append(bodies, batch.Messages[i].Body)
		}
	}
	return toolsIn(batch.Format, bodies)
}

func toolsIn(f session.Format, bodies [][]byte) (map[string]string, error) {
	tools := map[string]string{}
	for _, body := range bodies {
		found, err := wire.Inspect(f, body)
		if err != nil {
			return nil, err
		}
		for _, part := range found.Parts {
			if part.Kind == wire.Call {
				tools[part.CallID] = part.Name
			}
		}
	}
	return tools, nil
}
