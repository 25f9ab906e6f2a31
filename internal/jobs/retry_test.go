package jobs

import (
	"testing"
	"time"

	"github.com/riverqueue/river/rivertype"
)

// A neighbour that has the CPU for some seconds must not keep a session over its trigger for minutes.
func TestTheFirstRetriesAreQuickAndTheLastAreNot(t *testing.T) {
	t.Parallel()
	job := &rivertype.JobRow{}
	var waited []time.Duration
	for range 12 {
		waited = append(waited, time.Until(retryPolicy{}.NextRetry(job)))
		job.Errors = append(job.Errors, rivertype.AttemptError{})
	}
	if first := waited[0] + waited[1] + waited[2] + waited[3]; first > 30*time.Second {
		t.Errorf("the first four retries take %s", first)
	}
	for i, want := range retryWaits { // the first failure waits for the first time
		if waited[i].Round(time.Second) != want {
			t.Errorf("retry %d waits %s, want %s", i+1, waited[i], want)
		}
	}
	for i := 1; i < len(waited); i++ {
		if waited[i] < waited[i-1]-time.Second {
			t.Errorf("retry %d waits %s, the one before %s", i+1, waited[i], waited[i-1])
		}
	}
	if last := waited[len(waited)-1]; last < time.Hour {
		t.Errorf("the last retry waits %s: a failure that lasts would be retried all the time", last)
	}
}
