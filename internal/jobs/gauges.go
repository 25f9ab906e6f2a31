package jobs

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// gaugeEvery is how often the gauges are read from the database.
const gaugeEvery = 15 * time.Second

// The gauges of all jobs and sessions, which every worker reads. None is labelled with a tenant or a session.
var (
	jobsGauge = promauto.NewGaugeVec(prometheus.GaugeOpts{
		Name: "varve_jobs", Help: "Jobs that have not ended, by queue and state.",
	}, []string{"queue", "state"})
	oldestGauge = promauto.NewGaugeVec(prometheus.GaugeOpts{
		Name: "varve_jobs_oldest_seconds",
		Help: "Age of the oldest job of a queue and state; if available, for how long it could have run.",
	}, []string{"queue", "state"})
	failingGauge = promauto.NewGauge(prometheus.GaugeOpts{
		Name: "varve_sessions_failing", Help: "Sessions whose compaction failed and is tried again soon.",
	})
	quarantinedGauge = promauto.NewGauge(prometheus.GaugeOpts{
		Name: "varve_sessions_quarantined", Help: "Sessions whose compaction is tried seldom: see varve failures.",
	})
	dueGauge = promauto.NewGaugeVec(prometheus.GaugeOpts{
		Name: "varve_sessions_due", Help: "Sessions above their trigger or hard limit whose compaction is to come.",
	}, []string{"threshold"})
	coldGauge = promauto.NewGauge(prometheus.GaugeOpts{
		Name: "varve_sessions_cold", Help: "Cold sessions, as the database's statistics of the last vacuum say.",
	})
)

// gauge reads the gauges.
func (l *lease) gauge(ctx context.Context) error {
	backlog, err := l.store.Backlog(ctx)
	if err != nil {
		return err
	}
	jobsGauge.Reset()
	oldestGauge.Reset()
	for _, jobs := range backlog.Jobs {
		jobsGauge.WithLabelValues(jobs.Queue, jobs.State).Set(float64(jobs.Count))
		oldestGauge.WithLabelValues(jobs.Queue, jobs.State).Set(max(jobs.Oldest, 0))
	}
	failingGauge.Set(float64(backlog.Failing))
	quarantinedGauge.Set(float64(backlog.Quarantined))
	dueGauge.WithLabelValues("trigger").Set(float64(backlog.OverTrigger))
	dueGauge.WithLabelValues("hard").Set(float64(backlog.OverHard))
	coldGauge.Set(float64(backlog.Cold))
	return nil
}
