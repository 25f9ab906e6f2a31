package verify_test

import (
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/erasure"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/verify"
)

// erased erases a session, without a worker, and returns its key and the receipt.
func (w *world) erased(id string) (uuid.UUID, *session.Receipt) {
	w.Helper()
	at := session.Address{Tenant: w.tenant.ID, ID: id}
	made, _, err := w.store.Create(w.Context(), at, session.Change{}, nil)
	if err != nil {
		w.Fatal(err)
	}
	done, err := w.store.Delete(w.Context(), at, nil)
	if err != nil {
		w.Fatal(err)
	}
	work, err := erasure.Start(w.Context(), w.store, w.tenant.ID, done.Erasure)
	if err != nil {
		w.Fatal(err)
	}
	err = work.ObjectsErased(w.Context(), made.Session.Key, 0)
	if err == nil {
		err = work.Finish(w.Context(), 0)
	}
	if err != nil {
		w.Fatal(err)
	}
	found, err := erasure.Read(w.Context(), w.store, w.tenant.ID, done.Erasure)
	if err != nil {
		w.Fatal(err)
	}
	return made.Session.Key, found.Receipt
}

// TestAReceiptIsVerifiedWithWhatIsLeft brings a session back, as a restored backup would.
func TestAReceiptIsVerifiedWithWhatIsLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain)
	key, said := w.erased("s")
	v := verify.Verifier{Store: w.store}
	left, err := v.Receipt(t.Context(), said)
	if err != nil || len(left) > 0 || !slices.Equal(said.Sessions, []uuid.UUID{key}) {
		t.Fatalf("the receipt says %+v, and left is %q, %v", said, left, err)
	}
	if _, err := w.admin.Exec(t.Context(), `
		INSERT INTO sessions (tenant_id, key, id, window_tokens, policy_id)
		VALUES ($1, $2, 'back', 1000, '00000000-0000-0000-0000-000000000000')`, w.tenant.ID, key); err != nil {
		t.Fatal(err)
	}
	if left, err := v.Receipt(t.Context(), said); err != nil || !slices.Equal(left, []string{"table sessions"}) {
		t.Errorf("left is %q, %v", left, err)
	}
}
