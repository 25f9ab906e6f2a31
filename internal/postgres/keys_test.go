package postgres_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/session"
)

// TestAKeyThatHasEndedDoesNotLiveAgain changes the ends of keys as the logins of the API and of operators.
func TestAKeyThatHasEndedDoesNotLiveAgain(t *testing.T) {
	t.Parallel()
	admin, dsn := newStoreAt(t)
	tenant := newTenant(t, admin, "a")
	api := openStore(t, pgtest.API(dsn))
	hour := time.Hour
	made, err := api.CreateKey(t.Context(), tenant, session.NewKey{Text: session.NewAPIKey(tenant), Scopes: session.KeyScopes(), Lifetime: &hour})
	if err != nil {
		t.Fatal(err)
	}
	operator, err := openStore(t, pgtest.Admin(dsn)).CreateOperatorKey(t.Context(), "", session.NewOperatorKey(), &hour)
	if err != nil || operator.ExpiresAt == nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ set, refused string }{
		{`expires_at = expires_at + interval '1 s'`, "not be given more time"},
		{`expires_at = NULL`, "not be given more time"},
		{`expires_at = expires_at - interval '1 s'`, ""},
		{`revoked_at = now()`, ""},
		{`revoked_at = NULL`, "not be given more time"},
		{`revoked_at = now() + interval '1 day'`, "not be given more time"},
		{`last_used_at = now()`, ""},
	} {
		for table, store := range map[string]*postgres.Store{"api_keys": api, "operator_keys": openStore(t, pgtest.Admin(dsn))} {
			err := execInTenant(t, store, tenant, `UPDATE `+table+` SET `+step.set)
			if (step.refused == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), step.refused) {
				t.Errorf("%s: %s: %v, want %q", table, step.set, err, step.refused)
			}
		}
	}
	if _, err := api.RotateKey(t.Context(), tenant, made.ID, session.NewAPIKey(tenant), time.Hour, nil); !errors.Is(err, session.ErrKeyEnded) {
		t.Errorf("rotating it: %v", err)
	}
	if err := api.RevokeKey(t.Context(), uuid.New(), made.ID); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("another tenant revokes it: %v", err)
	}
}

// TestARotationThatIsRefusedChangesNothing has the caller lack what the key may do.
func TestARotationThatIsRefusedChangesNothing(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	day := 24 * time.Hour
	made, err := store.CreateKey(t.Context(), tenant, session.NewKey{Name: "ci", Text: session.NewAPIKey(tenant), Scopes: []session.Scope{session.ScopeErase}, Lifetime: &day})
	if err != nil {
		t.Fatal(err)
	}
	refused := errors.New("refused")
	_, err = store.RotateKey(t.Context(), tenant, made.ID, session.NewAPIKey(tenant), 0, func(scopes []session.Scope) error {
		if len(scopes) != 1 || scopes[0] != session.ScopeErase {
			t.Errorf("asked about %v", scopes)
		}
		return refused
	})
	keys, listed := store.Keys(t.Context(), tenant, session.Page{Limit: 10})
	if !errors.Is(err, refused) || listed != nil || len(keys) != 1 || !keys[0].ExpiresAt.Equal(*made.ExpiresAt) {
		t.Errorf("%v; %+v, %v", err, keys, listed)
	}
	fresh, err := store.RotateKey(t.Context(), tenant, made.ID, session.NewAPIKey(tenant), time.Hour, func([]session.Scope) error { return nil })
	if err != nil || fresh.ExpiresAt.Sub(fresh.CreatedAt) != day || fresh.Name != "ci" || *fresh.Replaces != made.ID {
		t.Errorf("%+v, %v", fresh, err)
	}
}

func TestAServingLoginOfOperatorsNeedsTheirRightsAndNoMore(t *testing.T) {
	t.Parallel()
	dsn := pgtest.New(t)
	for url, fits := range map[string]bool{pgtest.API(dsn): false, pgtest.Worker(dsn): false, dsn: false, pgtest.Admin(dsn): true} {
		pool, err := postgres.OpenServingAdmin(t.Context(), url, 2)
		if fits != (err == nil) || err != nil && !errors.Is(err, postgres.ErrLogin) {
			t.Errorf("%s: %v", url, err)
		}
		if err == nil {
			pool.Close()
		}
	}
}
