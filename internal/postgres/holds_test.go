package postgres_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/erasure"
	"github.com/varve-dev/varve/internal/session"
)

// TestTheDatabaseItselfKeepsWhatIsHeld deletes rows as a login that serves could, without what Varve checks before.
func TestTheDatabaseItselfKeepsWhatIsHeld(t *testing.T) {
	t.Parallel()
	store, _ := newStoreAt(t)
	tenant := newTenant(t, store, "a")
	held, other := newSession(t, store, tenant, "held"), newSession(t, store, tenant, "other")
	if _, err := erasure.HoldSession(t.Context(), store, held, "case 7"); err != nil {
		t.Fatal(err)
	}
	remove := func(at session.Address, want string) {
		t.Helper()
		err := execInTenant(t, store, tenant, `DELETE FROM sessions WHERE tenant_id = $1 AND id = $2`, tenant, at.ID)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", at.ID, err, want)
		}
	}
	remove(held, "session_holds_session")
	if _, err := erasure.HoldTenant(t.Context(), store, tenant, "case 8"); err != nil {
		t.Fatal(err)
	}
	remove(other, "legal hold")
	for _, at := range []session.Address{held, other} {
		if _, err := store.Delete(t.Context(), at, nil); !errors.Is(err, session.ErrHeld) {
			t.Errorf("%s: %v", at.ID, err)
		}
	}
	if err := erasure.ReleaseTenant(t.Context(), store, tenant); err != nil {
		t.Fatal(err)
	}
	remove(other, "")
	remove(held, "session_holds_session")
	if err := erasure.ReleaseSession(t.Context(), store, held); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Delete(t.Context(), held, nil); err != nil {
		t.Error(err)
	}
}
