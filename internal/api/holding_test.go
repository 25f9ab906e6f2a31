package api_test

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/admit"
)

// hold takes as many connections of a class as a tenant gets, until release is called.
func (w *world) hold(class admit.Class, tenant uuid.UUID) (release func()) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	cancel() // what is not there at once is not there
	var held []admit.Turn
	for {
		turn, err := w.server.Gate.Acquire(ctx, class, tenant)
		if err != nil {
			break
		}
		held = append(held, turn)
	}
	return func() {
		for i := range held {
			held[i].Done()
		}
	}
}

// lock holds what a statement locks, as the tables' owner, until release is called.
func (w *world) lock(sql string) (release func()) {
	w.Helper()
	conn, err := pgx.Connect(w.Context(), w.dsn)
	if err != nil {
		w.Fatal(err)
	}
	_, err = conn.Exec(w.Context(), fmt.Sprintf(`BEGIN; SELECT set_config('app.tenant_id', '%s', true); %s`, w.tenant, sql))
	if err != nil {
		w.Fatal(err)
	}
	return func() { _ = conn.Close(context.WithoutCancel(w.Context())) }
}
