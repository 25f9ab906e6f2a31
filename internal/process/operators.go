package process

import (
	"context"
	"errors"
	"log/slog"

	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/postgres"
)

// operatorConnections is how many connections a process has for the routes of operators, which are rarely asked.
const operatorConnections = 4

// openStores connects for the routes of tenants and, where there is a login for them, for those of operators. Without
// one, operators is nil.
func openStores(
	ctx context.Context, settings config.API, db config.Database, log *slog.Logger,
) (tenants, operators *postgres.Store, err error) {
	if settings.AdminURL == "" && settings.AdminAddr != "" {
		return nil, nil, errors.New("VARVE_ADMIN_ADDR is set, but VARVE_ADMIN_DATABASE_URL is not: the routes of " +
			"operators need a login with the rights of role varve_admin")
	}
	tenants, err = WhenThere(ctx, log, func() (*postgres.Store, error) {
		return openServing(ctx, db, postgres.AppRole)
	})
	if err != nil || settings.AdminURL == "" {
		return tenants, nil, err
	}
	db.URL, db.Connections = settings.AdminURL, operatorConnections
	operators, err = WhenThere(ctx, log, func() (*postgres.Store, error) {
		return openDatabase(ctx, db, postgres.OpenServingAdmin, postgres.AdminRole)
	})
	if err != nil {
		closeStores(tenants)
	}
	return tenants, operators, err
}

// closeStores closes the stores that there are.
func closeStores(stores ...*postgres.Store) {
	for _, store := range stores {
		if store != nil {
			store.Close()
		}
	}
}
