package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/embedded"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/process"
	"github.com/varve-dev/varve/internal/session"
)

// rowTables are the tables in which each session of a crowd has a row.
var rowTables = []string{"sessions", "session_metadata", "usage_sessions", "search_sessions", "messages"}

// addRowBytes adds rows for what a session takes in each table, indexes included.
func (b *bench) addRowBytes(ctx context.Context, c *crowd) error {
	for _, table := range rowTables {
		var all, indexes float64
		err := c.admin.QueryRow(ctx, `
			SELECT pg_total_relation_size($1::regclass), pg_indexes_size($1::regclass)`, table).Scan(&all, &indexes)
		if err != nil {
			return err
		}
		n := float64(c.sessions)
		name := fmt.Sprintf("a row of %s of %d sessions", table, c.sessions)
		b.add(row{Name: name + ", indexes included", Unit: "bytes", Value: all / n},
			row{Name: name + ", indexes", Unit: "bytes", Value: indexes / n})
	}
	return nil
}

const (
	operatorLogin = "varve_bench_admin"
	fleetPage     = 100
	fleetPages    = 20
)

// measureFleet adds rows for a page of each list of the sessions of all tenants, as the store reads it for operators.
func (b *bench) measureFleet(ctx context.Context, c *crowd) error {
	err := postgres.GrantTo(ctx, c.dsn, postgres.Grant{Login: operatorLogin, Role: postgres.AdminRole, Make: true})
	if err != nil {
		return err
	}
	dsn := strings.Replace(c.dsn, "user="+embedded.User, "user="+operatorLogin, 1)
	store, err := process.OpenStore(ctx, config.Database{URL: dsn, Connections: 1})
	if err != nil {
		return err
	}
	defer store.Pool().Close()
	for _, list := range session.FleetLists() {
		name := fmt.Sprintf("fleet of %d sessions by %s, page of %d", c.sessions, list, fleetPage)
		if !b.match.MatchString(name) {
			continue
		}
		took, err := fleetTimes(ctx, store, list)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		b.add(row{Name: name + ", p50", Unit: "ms", Value: median(took)},
			row{Name: name + ", longest", Unit: "ms", Value: percentile(took, 1)})
	}
	return nil
}

// fleetTimes reads the first pages of a list, twice, and returns how long each took the second time, in ms.
func fleetTimes(ctx context.Context, store *postgres.Store, list session.FleetList) (took []float64, err error) {
	for range 2 {
		took = nil
		var after *session.FleetPlace
		for range fleetPages {
			start := time.Now()
			found, _, err := store.Fleet(ctx, list, nil, after, fleetPage)
			if err != nil {
				return nil, err
			}
			took = append(took, float64(time.Since(start))/float64(time.Millisecond))
			if len(found) < fleetPage {
				break
			}
			after = &found[len(found)-1].Place
		}
	}
	return took, nil
}
