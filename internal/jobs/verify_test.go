package jobs_test

import (
	"context"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/verify"
)

func TestAWorkerVerifiesSessionsAllTheTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.session("s")
	w.append(at, []byte(`{"role":"user","content":"hello"}`))
	w.work(jobs.Config{VerifyEvery: 20 * time.Millisecond})
	verifier := verify.Verifier{Store: w.store}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for tick := time.NewTicker(20 * time.Millisecond); ; <-tick.C {
		at, err := verifier.Verification(ctx, w.tenant)
		if err != nil {
			t.Fatal(err)
		}
		if at.LastSessions == 1 {
			break
		}
	}
	if _, err := verifier.Findings(ctx, w.tenant, 10); err != nil {
		t.Error(err)
	}
}
