package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
)

// pgxFloor returns a round of the least that a call costs from Go: the store's own statement behind the one for the
// tenant, in one pipeline. of returns the statement of a caller's turn and its arguments.
func (b *bench) pgxFloor(callers int, of func(caller, turn int) (string, []any)) sample {
	return func(ctx context.Context, d time.Duration) (float64, error) {
		return load(ctx, d, callers, func(caller int) func() error {
			turn := 0
			return func() error {
				turn++
				sql, args := of(caller, turn)
				return b.bareCall(ctx, sql, args)
			}
		})
	}
}

// bareCall throws the rows away as they come.
func (b *bench) bareCall(ctx context.Context, sql string, args []any) error {
	tenantSQL, tenantArgs := postgres.TenantStatement(b.here.tenant)
	batch := &pgx.Batch{}
	batch.Queue(tenantSQL, tenantArgs...)
	batch.Queue(sql, args...)
	results := b.store.Pool().SendBatch(ctx, batch)
	defer results.Close()
	if _, err := results.Exec(); err != nil {
		return err
	}
	rows, err := results.Query()
	if err != nil {
		return err
	}
	count := 0
	for ; rows.Next(); count++ {
		rows.RawValues()
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if count != 1 {
		return fmt.Errorf("floor: %d rows instead of 1", count)
	}
	return results.Close()
}
