package verify

import (
	"context"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/audit"
)

// shownBreaks is how many breaks of one audit trail are reported.
const shownBreaks = 100

// trail looks at the audit trail of a tenant, or of the operators, a page at a time.
func (v *Verifier) trail(ctx context.Context, tenant uuid.UUID) (report Report, err error) {
	chain := audit.Behind(audit.Head{})
	read := func(after int64, limit int) (audit.Page, error) {
		return v.Store.TrailPage(ctx, tenant, after, limit)
	}
	head, err := audit.Each(0, read, func(page *audit.Page) error {
		report.Actions += int64(len(page.Rows))
		report.broken(tenant, chain.Page(page))
		return nil
	})
	if err == nil {
		report.broken(tenant, chain.End(head))
	}
	return report, err
}

// broken adds what is not as it was written.
func (r *Report) broken(tenant uuid.UUID, found []audit.Break) {
	for _, b := range found {
		if len(r.Findings) == shownBreaks {
			return
		}
		r.Findings = append(r.Findings, Finding{
			Kind: Audit, Tenant: tenant, Row: b.N, What: b.What, Means: advices[Audit].means, Do: advices[Audit].do,
		})
	}
}
