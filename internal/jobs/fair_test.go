package jobs_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/jobs/jobstest"
	"github.com/varve-dev/varve/internal/session"
)

// TestAnotherTenantsCompactionStartsAmongTheNext has one tenant request many compactions. While the workers are busy
// with the first, another tenant's session becomes due.
func TestAnotherTenantsCompactionStartsAmongTheNext(t *testing.T) {
	t.Parallel()
	const many, workers = 40, 2
	w := newWorld(t)
	for n := range many {
		if _, _, err := w.store.Compact(t.Context(), w.session(fmt.Sprint("s", n)), nil); err != nil {
			t.Fatal(err)
		}
	}
	other, err := w.store.CreateTenant(t.Context(), "other", settledPolicy())
	if err != nil {
		t.Fatal(err)
	}
	busy, goOn, held := make(chan struct{}), make(chan struct{}), atomic.Int32{}
	w.work(jobs.Config{Compactions: workers, Trace: func(step string) {
		if step != "snapshot" {
			return
		}
		n := held.Add(1)
		if n == workers {
			close(busy)
		}
		if n <= workers {
			<-goOn
		}
	}})
	jobstest.Await(w, busy)
	attacker := w.tenant
	w.tenant = other.ID
	w.fill(w.session("theirs"))
	w.tenant = attacker
	close(goOn)
	w.settle()
	rows, err := w.store.Pool().Query(t.Context(), `
		SELECT args ->> 'tenant'
		  FROM river_job
		 WHERE kind = 'compact'
		 ORDER BY attempted_at, id`)
	if err != nil {
		t.Fatal(err)
	}
	order, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(order) < many+1 {
		t.Fatalf("%d jobs, %v", len(order), err)
	}
	if at := slices.Index(order, other.ID.String()); at < workers || at >= workers+2*workers+1 {
		t.Errorf("it started after %d of the other tenant's, %d of which ran before it was there", at, workers)
	}
}

func settledPolicy() session.Policy {
	p := jobstest.Settled()
	return session.Policy{Trigger: p.Trigger, Hard: p.Hard, Document: p.Document()}
}
