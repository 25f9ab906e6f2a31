package readback

import (
	"context"
	"math"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// DefaultList and MaxList are how many results a list has.
const (
	DefaultList = 20
	MaxList     = 100
)

// ListWanted says which results to list. Zero fields mean the defaults.
type ListWanted struct {
	persist.Filter
	After string // a ref: those after it
	Limit int
}

// List returns those of a session's results that left a view or were uploaded, by seq and part. next is the ref to
// continue after, "" at the end.
//
// Errors: InvalidError, ErrNotFound for the session.
func List(ctx context.Context, store *postgres.Store, at session.Address, want ListWanted) (
	found []persist.Result, next string, err error,
) {
	if want.Limit == 0 {
		want.Limit = DefaultList
	}
	for _, field := range []bound{
		{"limit", int64(want.Limit), 1, MaxList}, {"from_seq", want.FromSeq, 0, math.MaxInt64},
		{"to_seq", want.ToSeq, 0, math.MaxInt64},
	} {
		if err := field.check(); err != nil {
			return nil, "", err
		}
	}
	after := persist.Place{Part: -1}
	if want.After != "" {
		ref, err := session.ParseResultRef(want.After)
		if err != nil {
			return nil, "", session.Invalid("after", invalidRequest, "must be the ref of a result: %s", err)
		}
		after = persist.Place{Seq: ref.Seq, Part: ref.Part}
	}
	found, err = store.Results(ctx, at, want.Filter, after, want.Limit+1)
	if len(found) > want.Limit {
		found = found[:want.Limit]
		next = found[want.Limit-1].Ref
	}
	return found, next, err
}
