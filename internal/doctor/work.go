package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/varve-dev/varve/internal/postgres"
)

// results looks at the stores outside the database.
func results(ctx context.Context, store *postgres.Store) Finding {
	const subject = "results"
	outside := len(store.ResultStores().Outside)
	if outside == 0 {
		return Finding{subject, OK, "in the database", ""}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := store.ProbeResultStores(ctx); err != nil {
		return failed(subject, err, "look at VARVE_RESULTS, VARVE_OBJECTS and VARVE_S3_…, and at the rights of "+
			"the process there")
	}
	return Finding{subject, OK, fmt.Sprintf("stores that answer and can be written to: %d", outside), ""}
}

// longestWait is how long a job may wait before there are too few workers.
const longestWait = 5 * time.Minute

// queues looks at the workers and what waits for them.
func queues(ctx context.Context, store *postgres.Store, role string) []Finding {
	if role == postgres.AppRole {
		return []Finding{{"queues", Skipped, "a login of an API does not see those of all tenants",
			"run it with the worker's DATABASE_URL, too"}}
	}
	backlog, err := store.Backlog(ctx)
	if err != nil {
		return []Finding{failed("queues", err, "")}
	}
	workers, err := store.LiveWorkers(ctx)
	if err != nil {
		return []Finding{failed("workers", err, "")}
	}
	return append(waiting(backlog, workers), compactions(backlog))
}

// waiting looks at the workers and the jobs that wait for them.
func waiting(backlog postgres.Backlog, workers int) []Finding {
	var count int
	var oldest float64
	for _, jobs := range backlog.Jobs {
		if jobs.State == "available" {
			count, oldest = count+jobs.Count, max(oldest, jobs.Oldest)
		}
	}
	age := time.Duration(oldest * float64(time.Second)).Round(time.Second)
	text := fmt.Sprintf("jobs waiting: %d", count)
	if count > 0 {
		text += fmt.Sprintf(", the oldest for %s", age)
	}
	found := []Finding{{"workers", OK, fmt.Sprintf("%d live", workers), ""}, {"queues", OK, text, ""}}
	if workers == 0 {
		found[0] = Finding{"workers", Failed, "none lives: nothing is compacted", "start varve worker"}
	}
	if age > longestWait {
		found[1].Level, found[1].Todo = Warning, "add workers, or raise VARVE_COMPACTIONS"
	}
	return found
}

// compactions looks at the sessions that are not compacted as they should be.
func compactions(backlog postgres.Backlog) Finding {
	text := fmt.Sprintf("sessions waiting: %d, above their hard limit: %d; failing: %d, in quarantine: %d",
		backlog.OverTrigger+backlog.OverHard, backlog.OverHard, backlog.Failing+backlog.Quarantined,
		backlog.Quarantined)
	if backlog.Quarantined+backlog.Failing > 0 {
		return Finding{"compactions", Warning, text, "varve failures list says why, varve failures retry tries again"}
	}
	return Finding{"compactions", OK, text, ""}
}
