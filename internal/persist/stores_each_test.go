package persist_test

import (
	"errors"
	"testing"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tier"
)

func TestResultsComeBackFromEachStore(t *testing.T) {
	onEach(t, func(w *world) {
		want := someResults()
		for range 2 {
			put(w.TB, w.store, w.key, want...)
		}
		w.mustRead(want)
		w.mustBeTidy()
		stats, err := tier.ResultStats(w.Context(), w.store, w.key.Tenant, nil)
		if err != nil || len(stats) != 1 || stats[0].Store != w.New || stats[0].Bodies != 4 || stats[0].Stored < 100_000 || stats[0].Stored > 9<<20 {
			w.Errorf("%+v, %v", stats, err)
		}
		body := logLines(10 << 20)[5:]
		id := write(w.TB, w.store, w.key, w.New, body)
		mustHave(w.TB, w.store, w.key, id, body)
		if same := write(w.TB, w.store, w.key, w.New, body); same != id {
			w.Errorf("an equal body is kept twice")
		}
		w.collect()
		w.mustBeTidy()
		w.mustRead(want)
		if _, err := w.store.OpenBody(w.Context(), w.key, id); !errors.Is(err, session.ErrNotFound) {
			w.Errorf("a body that nothing names is there: %v", err)
		}
	})
}
