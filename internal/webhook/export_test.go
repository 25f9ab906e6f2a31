package webhook

import (
	"context"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/postgres"
)

// Waiting returns the feature with another bound for a request.
var Waiting = waiting

// MaxWebhooks is how many a tenant may have.
const MaxWebhooks = maxWebhooks

// Next returns how many events a webhook gets next.
func Next(ctx context.Context, s *postgres.Store, tenant, id uuid.UUID) (int, error) {
	next, err := store{s}.nextDeliveries(ctx, tenant, id, deliveredAtOnce)
	return len(next.Events), err
}

// Prune prunes a tenant as a worker with the feature does.
func Prune(ctx context.Context, s *postgres.Store, tenant uuid.UUID) error {
	return s.Prune(ctx, tenant, Feature().Prunings...)
}
