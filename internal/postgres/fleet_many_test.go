//go:build !race

package postgres_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/varve-dev/varve/internal/session"
)

// TestAPageOfTheFleetCostsThePage reads pages of every list in a database with many tenants.
func TestAPageOfTheFleetCostsThePage(t *testing.T) {
	t.Parallel()
	p := newPlanned(t, *planRows)
	p.exec(t, `
		SET session_replication_role = replica;
		UPDATE usage_sessions u
		   SET tokens = abs(hashint8(hashtext(session_key::text))), bytes = abs(hashint8(hashtext(session_key::text))) / 3,
		       over_window = hashtext(session_key::text) % 10 = 0;
		INSERT INTO usage_sessions (tenant_id, session_key, tokens)
		SELECT tenant_id, key, 1 FROM sessions WHERE tenant_id <> '`+largeTenant.String()+`'`)
	p.analyze(t, 100)
	small := p.idOf(t, "tenant7")
	for _, list := range session.FleetLists() {
		var after *session.FleetPlace
		for page := range 3 {
			ran := p.plansOf(t, func(ctx context.Context) error {
				found, _, err := p.Fleet(ctx, list, nil, after, planPage)
				if len(found) > 0 {
					after = new(found[len(found)-1].Place)
				}
				if len(found) < planPage && list != session.FleetQuarantined {
					t.Errorf("%s: page %d has %d sessions", list, page, len(found))
				}
				return err
			})
			checkFleet(t, fmt.Sprintf("fleet by %s, page %d", list, page+1), ran, 3*planPage)
		}
	}
	ran := p.plansOf(t, func(ctx context.Context) error {
		_, _, err := p.Fleet(ctx, session.FleetTokens, &small, nil, planPage)
		return err
	})
	checkFleet(t, "fleet of a small tenant", ran, 2**planRows)
}
