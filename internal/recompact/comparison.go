package recompact

import (
	"context"
	_ "embed"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
)

//go:embed compare.sql
var compareSQL string

// Compare returns what the sessions that a recompaction changed served before it and since, and what the
// tenant's other sessions served since; ErrNotFound.
func (s store) Compare(ctx context.Context, tenant, id uuid.UUID) (Comparison, error) {
	return postgres.ReadTx(ctx, s.Store, tenant, func(tx pgx.Tx) (Comparison, error) {
		_, err := postgres.RowIn(ctx, tx, pgx.RowTo[uuid.UUID], `
			SELECT id
			  FROM recompactions
			 WHERE tenant_id = $1 AND id = $2`, tenant, id)
		if err != nil {
			return Comparison{}, err
		}
		return compareIn(ctx, tx, tenant, id)
	})
}

func compareIn(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID) (c Comparison, err error) {
	var found Comparison
	b, a := &found.Before, &found.After
	o := &found.Others
	err = tx.QueryRow(ctx, compareSQL, pgx.NamedArgs{"tenant": tenant, "recompaction": id}).Scan(&found.Sessions,
		&b.ViewTokens, &b.Views, &b.TokensServed, &b.ReadBacks,
		&a.ViewTokens, &a.Views, &a.TokensServed, &a.ReadBacks,
		&o.Views, &o.TokensServed, &o.ReadBacks)
	c.Add(found)
	return c, err
}
