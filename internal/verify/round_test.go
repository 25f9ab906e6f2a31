package verify_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/verify"
)

func TestARoundLooksAtEverySessionOnceAndKeepsWhatItFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	recorded := conversation(t, "claude-code", "spotter-short")
	for _, id := range []string{"one", "two", "three"} {
		w.save(id, recorded, 20_000, 100, false)
	}
	if _, err := w.admin.Exec(t.Context(), `UPDATE sessions SET total_tokens = 7 WHERE id = 'two'`); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	rolling := verify.Rolling{
		Verifier: verify.Verifier{Store: w.store}, Log: slog.New(slog.NewTextHandler(&log, nil)),
		Round: 2 * time.Minute, Every: time.Minute,
	}
	for _, want := range []int64{2, 0} { // sessions of the round after each slice
		if err := rolling.Slice(t.Context(), w.tenant.ID); err != nil {
			t.Fatal(err)
		}
		at, err := rolling.Verification(t.Context(), w.tenant.ID)
		if err != nil || at.Sessions != want || (at.FinishedAt != nil) != (want == 0) {
			t.Errorf("after a slice: %+v, %v", at, err)
		}
	}
	at, err := rolling.Verification(t.Context(), w.tenant.ID)
	if err != nil || at.LastSessions != 3 || at.LastBytes == 0 {
		t.Errorf("the round had %+v, %v", at, err)
	}
	found, err := rolling.Findings(t.Context(), w.tenant.ID, 10)
	if err != nil || len(found) != 1 || found[0].Session != "two" {
		t.Errorf("found %+v, %v", found, err)
	}
	if !strings.Contains(log.String(), "kind=counter") || !strings.Contains(log.String(), "where=total_tokens") {
		t.Errorf("the log does not name the finding: %s", log.String())
	}
	if report := w.verify(true); len(report.Findings) != 1 || report.Findings[0].Repaired == "" {
		t.Errorf("the repair: %+v", report)
	}
	for range 2 {
		if err := rolling.Slice(t.Context(), w.tenant.ID); err != nil {
			t.Fatal(err)
		}
	}
	if found, err = rolling.Findings(t.Context(), w.tenant.ID, 10); err != nil || len(found) != 0 {
		t.Errorf("after the repair %+v, %v", found, err)
	}
}
