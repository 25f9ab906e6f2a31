package jobs

import (
	"context"
	"log/slog"

	"github.com/varve-dev/varve/internal/postgres"
)

// Sweep does what the sweep's worker does.
func Sweep(ctx context.Context, store *postgres.Store) error {
	w := sweepWorker{Store: store, Log: slog.New(slog.DiscardHandler)}
	return w.Work(ctx, nil)
}
