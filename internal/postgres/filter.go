package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// FilteredSQL is a statement on the sessions s that a filter finds, in its variants: only a filter that needs another
// table reads it.
type FilteredSQL map[filteredBy]string

// filteredBy is what a filter needs beside the sessions.
type filteredBy struct {
	failing bool // the table of failures
	paired  bool // the pairs of metadata
}

// Filtered returns the variants of a statement that has {filter} and {paired} among its conditions.
func Filtered(text string) FilteredSQL {
	variants := FilteredSQL{}
	for _, by := range []filteredBy{{}, {failing: true}, {paired: true}, {failing: true, paired: true}} {
		failing, paired := `true`, `true`
		if by.failing {
			failing = `EXISTS (
	SELECT
	  FROM session_failures f
	 WHERE f.tenant_id = s.tenant_id AND f.session_key = s.key)`
		}
		if by.paired {
			paired = pairedSQL
		}
		filter := statement("session_filter", "{over}", overWindow, "{failing}", failing)
		variants[by] = strings.NewReplacer("{filter}", filter, "{paired}", paired).Replace(text)
	}
	return variants
}

// In returns the variant of the statement for a filter, and the arguments of its condition.
func (variants FilteredSQL) In(
	ctx context.Context, tx pgx.Tx, tenant uuid.UUID, f session.SessionFilter,
) (string, pgx.NamedArgs, error) {
	args := pgx.NamedArgs{
		"tenant": tenant, "sessions": f.Sessions, "metadata": f.Metadata, "created_before": f.CreatedBefore,
		"created_after": f.CreatedAfter, "min_tokens": f.MinTokens, "engine_version": f.EngineVersionBelow,
		"policy_version": f.PolicyVersionBelow, "model": orNone(f.Model), "format": orNone(f.Format.Number()),
		"forked_from": orNone(f.ForkedFrom), "updated_after": f.UpdatedAfter, "over_window": f.OverWindow,
		"percent": orNone(f.Percent),
	}
	pair, err := RarestPair(ctx, tx, tenant, f.Metadata)
	if pair != nil {
		args["pair"] = pair.Hash
	}
	return variants[filteredBy{failing: f.Failing, paired: pair != nil}], args, err
}

// orNone returns a value as an argument that is NULL if the value is zero.
func orNone[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}

// RequireNamed returns ErrNotFound if a filter names sessions none of which exists.
func RequireNamed(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, f session.SessionFilter) error {
	if f.Sessions == nil {
		return nil
	}
	found, err := RowIn(ctx, tx, pgx.RowTo[bool], `
		SELECT EXISTS (
		       SELECT
		         FROM sessions
		        WHERE tenant_id = $1 AND id = ANY ($2))`, tenant, f.Sessions)
	if err == nil && !found {
		err = fmt.Errorf("none of the sessions in filter exists: %w", session.ErrNotFound)
	}
	return err
}
