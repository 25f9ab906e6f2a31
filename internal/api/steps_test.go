package api_test

import (
	"math/rand/v2"
	"net/http"
	"testing"

	"github.com/varve-dev/varve/internal/compact/compacttest"
	"github.com/varve-dev/varve/internal/session"
)

// A message of several steps is several in a checkpoint. The items of each have ids of their own.
func TestTheItemsOfDividedMessagesHaveIDsOfTheirOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s",
		`{"window_tokens":20000,"policy":{"summarise":{"enabled":false},"truncate":{"enabled":false}}}`)
	said := strs(compacttest.Session(rand.New(rand.NewPCG(7, 7)), session.AISDK, compacttest.Options{Messages: 20, ResultTokens: 300, Steps: 12}))
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("ai-sdk", said...))
	w.must(http.StatusOK, "POST", "/v1/sessions/s/compact?wait=60", "")
	type item = map[string]any
	full := map[string]item{}
	for _, it := range w.items("s", "?order=asc&limit=100").Data {
		full[it["id"].(string)] = it
	}
	short, ids := w.items("s", "?order=asc&limit=100&view=compacted"), map[string]bool{}
	for _, it := range short.Data {
		id := it["id"].(string)
		if ids[id] {
			t.Errorf("%s is the id of two items", id)
		}
		ids[id] = true
		if was := full[id]; was != nil && (was["type"] != it["type"] || was["call_id"] != it["call_id"]) {
			t.Errorf("%s is the id of %v and of %v", id, was, it)
		}
	}
	v := decoded[view](w.must(http.StatusOK, "GET", "/v1/sessions/s/context", ""))
	if len(v.bodies()) < 2*len(said) || len(ids) < 50 {
		t.Errorf("%d messages are %d in the view, %d items", len(said), len(v.bodies()), len(ids))
	}
}
