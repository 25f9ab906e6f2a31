package postgres_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/embedded"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/session"
)

func TestTry(t *testing.T) {
	primary := pgtest.NewDurable(t)
	standby := pgtest.NewStandby(t, primary)
	admin := openStore(t, pgtest.Admin(primary.DSN(embedded.Database)))
	store := openStore(t, pgtest.API(primary.DSN(embedded.Database)))
	err := store.ReadFromStandby(t.Context(), postgres.StandbyConfig{URL: pgtest.API(standby.DSN(embedded.Database)), Connections: 4, Wait: 100 * time.Millisecond, MaxLag: 10 * time.Second, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	tenant := newTenant(t, admin, "a")
	at := newSession(t, store, tenant, "s")
	for i := range 100 {
		if _, _, err := store.Append(t.Context(), batch(at, message("x", 10))); err != nil {
			t.Fatal(err)
		}
		store.Wrote(at)
		ctx, r := store.Reading(t.Context(), at)
		var v postgres.View
		err := store.ViewInto(ctx, at, postgres.ViewRead{}, &v)
		if err != nil || v.LastSeq != int64(i+1) || !r.Asked() {
			t.Fatal(err, v.LastSeq, r.Asked())
		}
	}
	_ = session.Address{}
}
