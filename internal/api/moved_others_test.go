package api_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/session"
)

// beside returns a world of another tenant of the same process.
func (w *world) beside() *world {
	w.Helper()
	other := *w
	other.tenant, other.key = w.newTenant("other")
	return &other
}

// TestAStreamOfATenantThatMovesEndsAndOthersGoOn moves one of two tenants that have streams.
func TestAStreamOfATenantThatMovesEndsAndOthersGoOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.beside()
	gone, second := w.openStream(w.key, "/v1/events"), w.openStream(other.key, "/v1/events")
	w.tell("a", 1)
	other.tell("a", 1)
	for _, s := range []*stream{gone, second} {
		if got, _ := s.next(); got != "1 session.due" {
			t.Fatalf("got %q", got)
		}
	}
	w.tell("b", 1)
	w.moving("moved")
	other.tell("b", 1)
	if got, _ := second.next(); got != "2 session.due" {
		t.Errorf("the stream of the other tenant has %q", got)
	}
	for {
		got, data := gone.next()
		if got == "2 session.due" { // it was sent before
			w.exec(`DELETE FROM event_heads WHERE tenant_id = '` + w.tenant.String() + `'`)
			continue
		}
		if got != "stream.closed" || data != `{"reason":"tenant_moved"}` {
			t.Errorf("the stream of the tenant that has moved has %q %s", got, data)
		}
		break
	}
}

// TestARunOfATenantThatMovesIsNotWaitedFor moves one of two tenants whose runs are waited for.
func TestARunOfATenantThatMovesIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.beside()
	asked := map[uuid.UUID][]uuid.UUID{}
	for _, of := range []*world{w, other} {
		of.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"format":"openai-chat"}`)
		run := decoded[session.Run](of.must(http.StatusAccepted, "POST", "/v1/sessions/s/compact", ""))
		asked[of.tenant] = []uuid.UUID{run.ID}
	}
	w.moving("moved")
	endings, err := w.store.Endings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer endings.Close(t.Context())
	live, err := endings.Live(t.Context(), asked)
	if want := fmt.Sprint(asked[other.tenant]); err != nil || fmt.Sprint(live) != want {
		t.Errorf("live are %v, %v, want %s", live, err, want)
	}
}
