package jobs

import (
	"time"

	"github.com/riverqueue/river/rivertype"
)

// retryWaits are the times from a failed attempt to the next. The first ones are short: most failures come from a
// database or a machine that is busy for a moment, and a session is over its trigger meanwhile. A compaction's eight
// attempts take 2.3 hours. (River's own policy waits for the fourth power of the attempt, in seconds.)
var retryWaits = []time.Duration{
	time.Second, 2 * time.Second, 4 * time.Second, 15 * time.Second, 2 * time.Minute, 15 * time.Minute, 2 * time.Hour,
}

type retryPolicy struct{}

// NextRetry returns when a job that failed is tried again.
func (retryPolicy) NextRetry(job *rivertype.JobRow) time.Time {
	return time.Now().Add(retryWaits[min(max(len(job.Errors), 0), len(retryWaits)-1)])
}
