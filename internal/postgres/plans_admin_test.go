package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/features"
	"github.com/varve-dev/varve/internal/session"
)

// What concerns all of a tenant's sessions reads each of them, and nothing else for it: no checkpoint, no version of a
// policy. What is deleted is found without a look at what stays.
func TestEveryStatementOfAnAdministratorReadsWhatItConcerns(t *testing.T) {
	t.Parallel()
	p := newPlanned(t, *planRows)
	for _, target := range []int{1, 100} {
		p.analyze(t, target)
		p.checkCounts(t)
	}
	p.checkExpiry(t)
	p.checkTenant(t)
	p.checkChange(t)
	p.compare(t, "testdata/plans_admin.golden", p.prunes(t))
}

// checkTenant checks that what a tenant has is read without the rows of its sessions.
func (p *planned) checkTenant(t *testing.T) {
	t.Helper()
	ran := p.plansOf(t, func(ctx context.Context) error {
		found, err := p.Tenant(ctx, largeTenant)
		if err == nil && found.Usage.Sessions < int64(*planRows) {
			t.Errorf("the tenant has %+v", found.Usage)
		}
		return err
	})
	for i := range ran {
		e := &ran[i]
		t.Logf("what a tenant has: %6d pages %9.1f ms", e.pages(), e.Took)
		e.Plan.each(func(n *planNode) {
			if strings.HasSuffix(n.Relation, "sessions") && n.Type != "Index Only Scan" {
				t.Errorf("%s reads %s:\n%s", n.Type, n.Relation, e.short())
			}
		})
	}
}

// dryRunTime is what a dry run may take at the size of test/scale, in milliseconds.
const dryRunTime = 1000

// ofMetadata are the tables that a filter on metadata reads besides.
var ofMetadata = map[string]bool{"session_metadata": true, "tenant_tasks": true}

// checkCounts checks how what filters find is counted.
func (p *planned) checkCounts(t *testing.T) {
	t.Helper()
	version, tokens := int64(3), int64(2500)
	for name, filter := range map[string]session.SessionFilter{
		"all":                  {},
		"min_tokens":           {MinTokens: &tokens},
		"engine_version_below": {EngineVersionBelow: &version},
		"policy_version_below": {PolicyVersionBelow: &version},
		"metadata":             {Metadata: []byte(`{"user": "7"}`)},
	} {
		ran := p.plansOf(t, func(ctx context.Context) error {
			found, err := countFiltered(ctx, p.Store, largeTenant, filter)
			if err == nil && found == 0 {
				t.Errorf("%s finds nothing", name)
			}
			return err
		})
		for i := range ran {
			e := &ran[i]
			t.Logf("a filter, %-44s %6d pages %9.1f ms", name, e.pages(), e.Took)
			if *atScale && e.Took > dryRunTime {
				t.Errorf("a filter, %s: %.1f ms", name, e.Took)
			}
			// A lookup for each of them would read several pages of it besides.
			if e.pages() > 5*(*planRows)/4 {
				t.Errorf("%s: %d pages of the database for %d sessions:\n%s", name, e.pages(), *planRows, e.short())
			}
			e.Plan.each(func(n *planNode) {
				if n.Relation != "" && n.Relation != "sessions" && (filter.Metadata == nil || !ofMetadata[n.Relation]) {
					t.Errorf("%s reads %s:\n%s", name, n.Relation, e.short())
				}
			})
		}
	}
}

// expiryTime is what one statement of a look for expired sessions may take at the size of test/scale, in milliseconds.
const expiryTime = 20

// checkExpiry looks for expired sessions where none has expired, though each has a retention of its own: what is not
// expired is not read.
func (p *planned) checkExpiry(t *testing.T) {
	t.Helper()
	p.exec(t, fmt.Sprintf(`
		INSERT INTO session_retention (tenant_id, session_key, idle_seconds, look_at)
		SELECT tenant_id, key, %d, now() + interval '1 day'
		  FROM sessions
		 WHERE tenant_id = '%s'`, session.MaxRetention, largeTenant))
	p.exec(t, `ANALYZE session_retention`)
	long := session.Retention{IdleSeconds: new(session.MaxRetention), AgeSeconds: new(session.MaxRetention)}
	if _, err := p.SetRetention(t.Context(), largeTenant, long); err != nil {
		t.Fatal(err)
	}
	ran := p.plansOf(t, func(ctx context.Context) error {
		begun, err := p.EraseExpired(ctx, largeTenant)
		if err != nil || begun {
			return fmt.Errorf("an erasure has begun: %w", err)
		}
		_, err = p.ExpiredBy(ctx, largeTenant, &long)
		return err
	})
	for i := range ran {
		e := &ran[i]
		checkPlan(t, "expiry", e)
		if e.pages() > 100 || *atScale && e.Took > expiryTime {
			t.Errorf("expiry: %d pages, %.1f ms:\n%s", e.pages(), e.Took, e.short())
		}
	}
	p.exec(t, fmt.Sprintf(`UPDATE retention SET age_seconds = 3600 WHERE tenant_id = '%s'`, largeTenant))
	p.exec(t, `TRUNCATE session_retention`)
	for i, e := range p.plansOf(t, func(ctx context.Context) error {
		begun, err := p.EraseExpired(ctx, largeTenant)
		if err == nil && !begun {
			t.Error("all have expired, and no erasure begins")
		}
		return err
	}) {
		checkPlan(t, fmt.Sprint("expired ", i), &e)
	}
	p.exec(t, `DELETE FROM erasures; DELETE FROM river_job`)
}

// changeTime is what a change of a tenant's default may take at the size of test/scale, in milliseconds.
const changeTime = 1000

// checkChange checks how a tenant's default is changed, and how own policies are merged with it afterwards: each is
// looked at once.
func (p *planned) checkChange(t *testing.T) {
	t.Helper()
	own := *planRows / 10
	took := 0.0
	for _, e := range p.plansOf(t, func(ctx context.Context) error {
		_, _, err := p.ChangeTenantPolicy(ctx, largeTenant, toDefault(7))
		return err
	}) {
		took += e.Took
	}
	t.Logf("a change of a default under %d own policies %9.1f ms", own, took)
	if *atScale && took > changeTime {
		t.Errorf("a change of a default took %.1f ms", took)
	}
	removed, merged := 0, 0
	for _, e := range p.plansOf(t, func(ctx context.Context) (err error) {
		merged, err = p.MergePolicies(ctx, largeTenant)
		return err
	}) {
		e.Plan.each(func(n *planNode) { removed += n.removed() })
	}
	if merged != own || removed > own/10 {
		t.Errorf("%d of %d policies were merged, and rows looked at for nothing %d times", merged, own, removed)
	}
}

// pruneTime is what one statement of a bounded deletion may take at the size of test/scale, in milliseconds.
const pruneTime = 1000

// prunes prunes the tenant, of which much has had its time, checks how that is found, and returns the plans.
func (p *planned) prunes(t *testing.T) string {
	t.Helper()
	ran := p.plansOf(t, func(ctx context.Context) error { return p.Prune(ctx, largeTenant) })
	var plans strings.Builder
	seen := map[string]bool{}
	for i := range ran {
		checkPlan(t, "prune", &ran[i])
		if deleted, ok := strings.CutPrefix(strings.TrimSpace(ran[i].SQL), "DELETE FROM "); ok {
			t.Logf("prune: %-48s %6d pages %9.1f ms", strings.Fields(deleted)[0], ran[i].pages(), ran[i].Took)
			if *atScale && ran[i].Took > pruneTime {
				t.Errorf("prune: %s took %.1f ms", deleted, ran[i].Took)
			}
		}
		first, _, _ := strings.Cut(strings.TrimSpace(ran[i].SQL), "\n")
		// Which of two indexes that serve it a foreign key reads is a matter of their size.
		plan := fmt.Sprintf("== %s\n%s", first, ran[i].short())
		if !seen[plan] && !strings.HasPrefix(first, "SELECT 1 FROM ONLY") {
			seen[plan] = true
			plans.WriteString(plan)
		}
	}
	for _, f := range features.All() {
		for _, e := range p.plansOf(t, func(ctx context.Context) error { return p.Prune(ctx, largeTenant, f.Prunings...) }) {
			checkPlan(t, "what a feature prunes", &e)
		}
	}
	return plans.String()
}
