package postgres_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
)

func TestUUIDsComeBackAsTheyWereSent(t *testing.T) {
	t.Parallel()
	pool, err := postgres.Open(t.Context(), pgtest.API(pgtest.New(t)), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	sent := uuid.Must(uuid.NewV7())
	list := []uuid.UUID{sent, uuid.Nil, uuid.Max}
	var text string
	var got uuid.UUID
	var missing, pointed *uuid.UUID
	var gotList []uuid.UUID
	var pointers []*uuid.UUID
	kept := sent
	err = pool.QueryRow(t.Context(), `
		SELECT $1::uuid::text, $1::uuid, $2::uuid, $1::uuid, $3::uuid[], $4::uuid[], NULL::uuid`,
		sent, missing, list, []*uuid.UUID{nil, &sent}).
		Scan(&text, &got, &missing, &pointed, &gotList, &pointers, &kept)
	if err != nil {
		t.Fatal(err)
	}
	if text != sent.String() || got != sent || missing != nil || *pointed != sent || kept != sent {
		t.Errorf("sent %s, got %s as text, %s, %v, %s, %s", sent, text, got, missing, pointed, kept)
	}
	if len(gotList) != 3 || gotList[0] != sent || gotList[1] != uuid.Nil || gotList[2] != uuid.Max {
		t.Errorf("sent %s, got %s", list, gotList)
	}
	if len(pointers) != 2 || pointers[0] != nil || *pointers[1] != sent {
		t.Errorf("got %v", pointers)
	}
}
