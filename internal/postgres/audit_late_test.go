package postgres_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// trailOfTwoPages makes a trail in which both pages have rows of the session that is returned: 1, 2, 1001 and 1002.
func trailOfTwoPages(t testing.TB, store *postgres.Store, tenant uuid.UUID) session.Address {
	t.Helper()
	gone := newSession(t, store, tenant, "gone")
	export := func() {
		if err := store.RecordExport(t.Context(), gone); err != nil {
			t.Fatal(err)
		}
	}
	export()
	act(t, store, tenant, 998)
	export()
	export()
	if err := store.RecordExport(t.Context(), session.Address{Tenant: tenant, ID: "s ü"}); err != nil {
		t.Fatal(err)
	}
	return gone
}

// exportedWhile returns the export of a trail, with something that happens when the first page was read.
func exportedWhile(t testing.TB, store *postgres.Store, tenant uuid.UUID, do func()) string {
	t.Helper()
	var out bytes.Buffer
	pages := 0
	err := audit.Copy(&out, 0, func(after int64, limit int) (audit.Page, error) {
		if pages++; pages == 2 {
			do()
		}
		return store.TrailPage(t.Context(), tenant, after, limit)
	})
	if err != nil || pages != 2 {
		t.Fatal(pages, err)
	}
	return out.String()
}

// TestASessionThatIsErasedWhileTheTrailIsReadIsNoBreak erases one between two pages, of which both have rows of it, and
// damages rows then. Row 1004 is the erasure's.
func TestASessionThatIsErasedWhileTheTrailIsReadIsNoBreak(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ set, want string }{
		"nothing else":         {"", "[]"},
		"a blanked row":        {`address = 'x' WHERE n = 1002`, "[1002]"},
		"a row said blanked":   {`blanked_by = 1004, detail = NULL, address = 'x' WHERE n = 1003`, "[1003]"},
		"a row said not to be": {`blanked_by = NULL WHERE n = 1001`, "[1001]"},
		"the number of those":  {`detail = replace(detail::text, '"blanked":4', '"blanked":3')::json WHERE n = 1004`, "[1004]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, dsn := newStoreAt(t)
			tenant := newTenant(t, store, "a")
			gone := trailOfTwoPages(t, store, tenant)
			conn := owner(t, dsn)
			text := exportedWhile(t, store, tenant, func() {
				if _, err := store.Delete(t.Context(), gone, nil); err != nil {
					t.Fatal(err)
				}
				if test.set != "" {
					execOwner(t, conn, `ALTER TABLE audit_trail DISABLE TRIGGER USER; UPDATE audit_trail SET `+test.set)
				}
			})
			if first, rows := readTrail(t, text, nil); first != (audit.Head{}) || fmt.Sprint(rows) != test.want {
				t.Errorf("it breaks at %v, want %s", rows, test.want)
			}
			if found, _ := breaks(t, store, tenant, nil); test.set == "" && len(found) > 0 {
				t.Errorf("read again, it breaks at %v", found)
			}
			// Who forges an export cannot have a row pass as blanked by what it says of others.
			before, row, _ := strings.Cut(text, `"n":1002,"at"`)
			forged := before + `"n":1002,"at"` + strings.Replace(row, `"object_id":"`, `"object_id":"x`, 1)
			if _, rows := readTrail(t, forged, nil); len(rows) == 0 {
				t.Error("a row that was changed in the export is not found")
			}
		})
	}
}

// TestRowsThatAreErasedAndRemovedWhileTheTrailIsReadAreNoBreak has the rows of an erased session removed at once.
func TestRowsThatAreErasedAndRemovedWhileTheTrailIsReadAreNoBreak(t *testing.T) {
	t.Parallel()
	store, dsn := newStoreAt(t)
	tenant := newTenant(t, store, "a")
	gone := trailOfTwoPages(t, store, tenant)
	age(t, owner(t, dsn), tenant, 1, 500, 40)
	text := exportedWhile(t, store, tenant, func() {
		if _, err := store.Delete(t.Context(), gone, nil); err != nil {
			t.Fatal(err)
		}
		keepTrails(t, store, tenant, 31*24*time.Hour)
	})
	if _, rows := readTrail(t, text, nil); len(rows) > 0 {
		t.Errorf("it breaks at %v", rows)
	}
	if got := trailOf(t, store, tenant); !strings.HasPrefix(got, "501 to ") {
		t.Errorf("there are rows %s", got)
	}
}
