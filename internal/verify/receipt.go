package verify

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// Receipt looks for what a receipt says was erased. left names what is there: tables with rows of the sessions, and
// stores with objects.
func (v *Verifier) Receipt(ctx context.Context, said *session.Receipt) (left []string, err error) {
	if said.Kind == session.ErasureOfTenant {
		return v.tenantLeft(ctx, said)
	}
	tables, err := v.tablesWith(ctx, said.Tenant, said.Sessions)
	if err != nil {
		return nil, err
	}
	for _, table := range tables {
		left = append(left, "table "+table)
	}
	stores, err := v.objectsLeft(ctx, said.Tenant, said.Sessions)
	return append(left, stores...), err
}

// objectsLeft names the stores that have objects below the prefixes of erased sessions, other than those of forks.
func (v *Verifier) objectsLeft(ctx context.Context, tenant uuid.UUID, sessions []uuid.UUID) (left []string, err error) {
	used, err := v.Store.UsedResultStores(ctx)
	if err != nil {
		return nil, err
	}
	for _, kind := range used {
		n := 0
		for _, key := range sessions {
			found, err := v.unnamedBelow(ctx, kind, session.Key{Tenant: tenant, Key: key})
			if err != nil {
				return left, err
			}
			n += found
		}
		if n > 0 {
			left = append(left, fmt.Sprintf("%d objects in the store %s", n, kind))
		}
	}
	return left, nil
}

// unnamedBelow counts the objects below a session's prefix that no row names.
func (v *Verifier) unnamedBelow(ctx context.Context, kind persist.Kind, key session.Key) (int, error) {
	store, err := v.Store.ResultStores().Store(kind)
	if err != nil {
		return 0, err
	}
	objects := 0
	var ids []uuid.UUID
	for info, err := range store.List(ctx, persist.Prefix(key)) {
		if err != nil {
			return 0, err
		}
		objects++
		if _, id, ok := persist.ObjectOf(info.Name); ok {
			ids = append(ids, id)
		}
	}
	named, err := v.Store.NamedObjects(ctx, key.Tenant, []uuid.UUID{key.Key}, ids)
	return objects - len(named), err
}

// tenantLeft names the tables and stores that have something of a deleted tenant, unless its id was given again.
func (v *Verifier) tenantLeft(ctx context.Context, said *session.Receipt) (left []string, err error) {
	tables, again, err := v.tablesOf(ctx, said.Tenant, said.FinishedAt)
	if err != nil || again {
		return nil, err
	}
	for _, table := range tables {
		left = append(left, "table "+table)
	}
	used, err := v.Store.UsedResultStores(ctx)
	if err != nil {
		return left, err
	}
	for _, kind := range used {
		n, err := v.objectsOf(ctx, kind, said.Tenant)
		if err != nil {
			return left, err
		}
		if n > 0 {
			left = append(left, fmt.Sprintf("%d objects in the store %s", n, kind))
		}
	}
	return left, nil
}

// objectsOf counts the objects of a tenant in a store.
func (v *Verifier) objectsOf(ctx context.Context, kind persist.Kind, tenant uuid.UUID) (objects int, err error) {
	store, err := v.Store.ResultStores().Store(kind)
	if err != nil {
		return 0, err
	}
	for _, err := range store.List(ctx, tenant.String()) {
		if err != nil {
			return objects, err
		}
		objects++
	}
	return objects, nil
}

// tablesWith returns the tables that have rows of some sessions of a tenant, other than what says that they were
// erased.
func (v *Verifier) tablesWith(ctx context.Context, tenant uuid.UUID, sessions []uuid.UUID) ([]string, error) {
	return postgres.ReadTx(ctx, v.Store, tenant, func(tx pgx.Tx) ([]string, error) {
		return tablesWhere(ctx, tx, `(column_name IN ('session_key', 'held_in')
			OR table_name = 'sessions' AND column_name = 'key') AND table_name <> 'erasure_sessions'`,
			func(column string) string { return ` AND ` + column + ` = ANY ($2)` }, tenant, sessions)
	})
}

// tablesOf returns the tables that have rows of a tenant that was deleted at a time, and whether there is one again
// with its id.
func (v *Verifier) tablesOf(ctx context.Context, tenant uuid.UUID, at time.Time) (
	found []string, again bool, err error,
) {
	found, err = postgres.ReadTx(ctx, v.Store, tenant, func(tx pgx.Tx) ([]string, error) {
		again, err = postgres.RowIn(ctx, tx, pgx.RowTo[bool], `
			SELECT EXISTS (SELECT FROM tenants WHERE id = $1 AND created_at >= $2)`, tenant, at)
		if err != nil {
			return nil, err
		}
		return tablesWhere(ctx, tx, `column_name = 'tenant_id'`, func(string) string { return `` }, tenant)
	})
	return found, again, err
}

// tablesWhere returns the tables with a row of the tenant $1 for which a condition on some columns holds.
func tablesWhere(
	ctx context.Context, tx pgx.Tx, columns string, condition func(column string) string, args ...any,
) (found []string, err error) {
	all, err := postgres.RowsIn(ctx, tx, pgx.RowToStructByPos[struct{ Table, Column string }], `
		SELECT table_name::text, column_name::text
		  FROM information_schema.columns c
		 WHERE table_schema = current_schema() AND `+columns+`
		 ORDER BY 1, 2`)
	for _, c := range all {
		if err != nil {
			break
		}
		var has bool
		has, err = postgres.RowIn(ctx, tx, pgx.RowTo[bool], `
			SELECT EXISTS (
			       SELECT
			         FROM `+pgx.Identifier{c.Table}.Sanitize()+`
			        WHERE tenant_id = $1`+condition(pgx.Identifier{c.Column}.Sanitize())+`)`, args...)
		if has {
			found = append(found, c.Table)
		}
	}
	return found, err
}
