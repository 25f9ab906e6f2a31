package api_test

import (
	"net/http"
	"testing"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/session"
)

func TestInventedKeysAreRefusedBeforeTheDatabase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	victim := *w
	victim.tenant, victim.key = w.newTenant("victim")
	victim.must(http.StatusOK, "GET", "/v1/sessions", "")
	taken := w.store.Pool().Stat().AcquireCount()
	invented := session.NewAPIKey(w.tenant)
	for range 20 {
		w.must(http.StatusUnauthorized, "GET", "/v1/sessions", "", "Authorization", "Bearer "+invented)
	}
	if asked := w.store.Pool().Stat().AcquireCount() - taken; asked > 10 { // once a second
		t.Errorf("the database was asked %d times for one key that does not exist", asked)
	}
	limited := 0
	for range 200 {
		switch a := w.ask("GET", "/v1/sessions", "", "Authorization", "Bearer "+session.NewAPIKey(uuid.New())); a.Code {
		case http.StatusTooManyRequests:
			if p := decoded[problem](a); p.Code != "rate_limited" {
				t.Errorf("%s", a.Body)
			}
			limited++
		case http.StatusUnauthorized:
		default:
			t.Errorf("an invented key: %d %s", a.Code, a.Body)
		}
	}
	if limited == 0 {
		t.Error("200 invented keys of one address were all looked up")
	}
	victim.must(http.StatusOK, "GET", "/v1/sessions", "") // its key was confirmed before
}

func TestAKeyThatWasKnownDoesNotWaitBehindInventedOnes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusOK, "GET", "/v1/sessions", "")
	turn, err := w.server.Gate.Acquire(t.Context(), admit.Keys, uuid.New()) // a lookup of an invented key that takes long
	if err != nil {
		t.Fatal(err)
	}
	defer turn.Done()
	w.server.ExpireKeys()
	w.must(http.StatusOK, "GET", "/v1/sessions", "")
}
