package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// TestWhatIsBlankedIsStillInTheChain erases a session, whose rows lose its id, and changes blanked rows and others.
func TestWhatIsBlankedIsStillInTheChain(t *testing.T) {
	t.Parallel()
	store, dsn := newStoreAt(t)
	tenant := newTenant(t, store, "a")
	newSession(t, store, tenant, "kept")     // row 1
	at := newSession(t, store, tenant, "s1") // row 2
	for range 2 {                            // rows 3 and 4
		if err := store.RecordExport(t.Context(), at); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := store.Delete(t.Context(), at, nil); err != nil { // row 5
		t.Fatal(err)
	}
	if err := store.RecordExport(t.Context(), at); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("the export of what is gone: %v", err)
	}
	newSession(t, store, tenant, "s1") // row 6
	if found, head := breaks(t, store, tenant, nil); len(found) > 0 || head.N != 6 {
		t.Fatalf("the chain breaks at %v, and has %d rows", found, head.N)
	}
	rows, err := store.Trail(t.Context(), tenant, postgres.TrailFilter{Oldest: true, Limit: 20})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:5] {
		if *row.ObjectID == "s1" || strings.Contains(string(row.Detail), "s1") {
			t.Errorf("the trail still says %s %s", *row.ObjectID, row.Detail)
		}
	}
	if err := execInTenant(t, store, tenant, `SELECT audit_blank($1, 'kept', gen_random_uuid())`, tenant); err == nil {
		t.Error("the rows of a session that is there can be blanked")
	}
	conn := owner(t, dsn)
	execOwner(t, conn, `ALTER TABLE audit_trail DISABLE TRIGGER USER; CREATE TABLE kept AS TABLE audit_trail`)
	for change, n := range map[string]int{
		`address = 'elsewhere'`: 3, `object_id = 'another'`: 3, `blanked_by = NULL`: 3, `blanked_by = 6`: 3, `blanked_by = 99`: 3,
		`blanked_by = 1`: 3, `blanked_by = 5`: 1, `detail = NULL`: 5, `object_id = NULL, blanked_by = 6`: 1,
	} {
		execOwner(t, conn, fmt.Sprintf(`UPDATE audit_trail SET %s WHERE tenant_id = '%s' AND n = %d`, change, tenant, n))
		if found, _ := breaks(t, store, tenant, nil); len(found) == 0 {
			t.Errorf("%s of row %d is not found", change, n)
		}
		execOwner(t, conn, `DELETE FROM audit_trail; INSERT INTO audit_trail TABLE kept`)
	}
}
