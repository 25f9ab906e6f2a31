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
	listedPage    = 100
	listedPages   = 20
)

// measureAllSessions adds rows for a page of the sessions of all tenants in each order, as the store reads it for
// operators.
func (b *bench) measureAllSessions(ctx context.Context, c *crowd) error {
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
	for _, order := range session.SessionOrders() {
		name := fmt.Sprintf("all of %d sessions by %s, page of %d", c.sessions, order, listedPage)
		if !b.match.MatchString(name) {
			continue
		}
		took, err := orderTimes(ctx, store, order)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		b.add(row{Name: name + ", p50", Unit: "ms", Value: median(took)},
			row{Name: name + ", longest", Unit: "ms", Value: percentile(took, 1)})
	}
	return nil
}

// orderTimes reads the first pages of an order, twice, and returns how long each took the second time, in ms.
func orderTimes(ctx context.Context, store *postgres.Store, order session.SessionOrder) (took []float64, err error) {
	for range 2 {
		took = nil
		var after *session.SessionPlace
		for range listedPages {
			start := time.Now()
			found, _, err := store.AllSessions(ctx, order, nil, after, listedPage)
			if err != nil {
				return nil, err
			}
			took = append(took, float64(time.Since(start))/float64(time.Millisecond))
			if len(found) < listedPage {
				break
			}
			after = &found[len(found)-1].Place
		}
	}
	return took, nil
}
