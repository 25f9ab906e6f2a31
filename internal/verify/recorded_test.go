package verify_test

import (
	"slices"
	"testing"

	"github.com/varve-dev/varve/internal/replay"
)

func TestRecordedSessionsAreCleanAfterCompactionsAndOffload(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	recorded := corpus(t, "")
	if testing.Short() {
		recorded = slices.DeleteFunc(recorded, func(s *replay.Session) bool { return s.Tokens() < 14_000 || s.Tokens() > 25_000 })
	}
	for _, s := range recorded {
		w.offload(w.save(named(s), s, 20_000, 40, false))
	}
	report := w.clean()
	var packs, holes int
	err := w.admin.QueryRow(t.Context(), `
		SELECT count(*), sum(raw - octet_length(body)) FROM message_packs`).Scan(&packs, &holes)
	if err != nil || packs == 0 || int(report.Sessions) < len(recorded)/2 || report.Unexplained != 0 {
		t.Errorf("looked at %+v, %d packs, %v", report, packs, err)
	}
}
