package postgres_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/varve-dev/varve/internal/session"
)

// TestAPageOfAllSessionsCostsThePage reads pages of every list in a database with many tenants.
func TestAPageOfAllSessionsCostsThePage(t *testing.T) {
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
	for _, order := range session.SessionOrders() {
		var after *session.SessionPlace
		for page := range 3 {
			ran := p.plansOf(t, func(ctx context.Context) error {
				found, _, err := p.AllSessions(ctx, order, nil, after, planPage)
				if len(found) > 0 {
					after = new(found[len(found)-1].Place)
				}
				if len(found) < planPage && order != session.ByQuarantined {
					t.Errorf("%s: page %d has %d sessions", order, page, len(found))
				}
				return err
			})
			checkAllSessions(t, fmt.Sprintf("all sessions by %s, page %d", order, page+1), ran, 3*planPage)
		}
	}
	ran := p.plansOf(t, func(ctx context.Context) error {
		_, _, err := p.AllSessions(ctx, session.ByTokens, &small, nil, planPage)
		return err
	})
	checkAllSessions(t, "sessions of a small tenant", ran, 2**planRows)
}
