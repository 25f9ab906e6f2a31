package api_test

import (
	"crypto/ed25519"
	"net/http"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/receipt"
)

// TestAReceiptIsVerifiedByTheKeyThatSignedIt replaces the key, and reads receipts of before and after.
func TestAReceiptIsVerifiedByTheKeyThatSignedIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sign := func() string {
		t.Helper()
		key, err := w.admin.ReceiptKey(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		text, err := receipt.Sign(&receipt.Receipt{Version: receipt.Version, ID: uuid.New()}, key)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	before := sign()
	type webKey struct{ KID string }
	var made []string
	for range 2 {
		answer := w.must(http.StatusCreated, "POST", "/v1/admin/receipts/keys", "")
		made = append(made, decoded[webKey](answer).KID)
	}
	listed := decoded[struct{ Keys []webKey }](w.must(http.StatusOK, "GET", "/v1/receipts/keys", "")).Keys
	if len(listed) != 3 || !slices.Contains(listed, webKey{made[0]}) || !slices.Contains(listed, webKey{made[1]}) {
		t.Errorf("%v are listed, %v were made", listed, made)
	}
	keys, err := w.store.PublicReceiptKeys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	used := ""
	for _, text := range []string{before, sign()} {
		if _, err := receipt.Read(text, func(id string) ed25519.PublicKey { used = id; return keys[id] }); err != nil {
			t.Error(err)
		}
	}
	if used != made[1] {
		t.Errorf("%s has signed, and %v were made", used, made)
	}
	rows, err := w.admin.Trail(t.Context(), audit.Operator, postgres.TrailFilter{Action: audit.ReceiptKeyRotate, Limit: 10})
	if err != nil || len(rows) != 2 || rows[0].Actor != audit.ByOperator {
		t.Errorf("the operators' trail: %+v, %v", rows, err)
	}
	w.must(http.StatusForbidden, "POST", "/v1/admin/receipts/keys", "", "Authorization", "Bearer "+w.key)
}
