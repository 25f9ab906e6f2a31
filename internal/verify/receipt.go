package verify

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/session"
)

// Receipt looks for what a receipt says was erased. left names what is there: tables with rows of the sessions, and
// stores with objects.
func (v *Verifier) Receipt(ctx context.Context, said *session.Receipt) (left []string, err error) {
	if said.Kind == session.ErasureOfTenant {
		return v.tenantLeft(ctx, said)
	}
	tables, err := v.Store.TablesWith(ctx, said.Tenant, said.Sessions)
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
	tables, again, err := v.Store.TablesOf(ctx, said.Tenant, said.FinishedAt)
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
