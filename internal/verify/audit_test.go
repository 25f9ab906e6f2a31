package verify_test

import (
	"slices"
	"testing"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/verify"
)

// TestVerificationReadsTheTrails damages the trail of the tenant and that of the operators.
func TestVerificationReadsTheTrails(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain)
	at := session.Address{Tenant: w.tenant.ID, ID: "s"}
	if _, _, err := w.store.Create(t.Context(), at, session.Change{}, nil); err != nil {
		t.Fatal(err)
	}
	for range 1500 { // more than a page
		if err := w.store.RecordExport(t.Context(), at); err != nil {
			t.Fatal(err)
		}
	}
	exec := func(sql string) {
		if _, err := w.admin.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	report := w.clean()
	if report.Actions < 1500 {
		t.Errorf("%d rows were read", report.Actions)
	}
	exec(`ALTER TABLE audit_trail DISABLE TRIGGER USER`)
	exec(`DELETE FROM audit_trail WHERE n = 1200 AND tenant_id = '` + w.tenant.ID.String() + `'`)
	if found := w.found(false); !slices.Equal(found, []string{"audit: row 1200"}) {
		t.Errorf("found %q", found)
	}
	exec(`UPDATE audit_trail SET login = 'x' WHERE tenant_id = '` + audit.Operator.String() + `'`)
	var rows []int64
	v := verify.Verifier{Store: w.store}
	if err := v.Run(t.Context(), verify.Scope{Operator: true}, false, func(_, _ int64, r *verify.Report) error {
		for _, f := range r.Findings {
			rows = append(rows, f.Row)
		}
		return nil
	}); err != nil || !slices.Equal(rows, []int64{1}) {
		t.Errorf("of the operators' trail rows %v were found, %v", rows, err)
	}
}
