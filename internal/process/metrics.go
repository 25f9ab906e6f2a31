package process

import (
	"runtime"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/varve-dev/varve/internal/config"
)

func init() { prometheus.MustRegister(pools, buildInfo()) }

// buildInfo returns a gauge of 1 that names what runs.
func buildInfo() prometheus.Gauge {
	labels := prometheus.Labels{"version": config.Version(), "revision": config.Revision(), "go": runtime.Version()}
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "varve_build_info", Help: "1; the labels say what was built.", ConstLabels: labels,
	})
	g.Set(1)
	return g
}

// pools has the open connection pools of the process, each under the name of what uses it.
var pools = &poolMetrics{open: map[*pgxpool.Pool]string{}}

type poolMetrics struct {
	mu   sync.Mutex
	open map[*pgxpool.Pool]string
}

// watch shows a pool until it is told to stop.
func (m *poolMetrics) watch(name string, pool *pgxpool.Pool) (stop func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open[pool] = name
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.open, pool)
	}
}

var (
	poolConnections = prometheus.NewDesc("varve_db_connections",
		"Connections of a pool: in use, idle, and the most that it may have (max).", []string{"pool", "state"}, nil)
	poolAcquires = prometheus.NewDesc("varve_db_acquires_total", "Connections that were taken from a pool.",
		[]string{"pool"}, nil)
	poolWaits = prometheus.NewDesc("varve_db_acquire_wait_seconds_total", "How long was waited for them.",
		[]string{"pool"}, nil)
)

// Describe implements prometheus.Collector.
func (m *poolMetrics) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(m, to) }

// Collect implements prometheus.Collector. Pools of one name, such as those of two processes in one, are added up.
func (m *poolMetrics) Collect(to chan<- prometheus.Metric) {
	type sums struct{ used, idle, limit, acquires, waited float64 }
	byName := map[string]*sums{}
	m.mu.Lock()
	for pool, name := range m.open {
		s := byName[name]
		if s == nil {
			s = &sums{}
			byName[name] = s
		}
		stat := pool.Stat()
		s.used += float64(stat.AcquiredConns())
		s.idle += float64(stat.IdleConns())
		s.limit += float64(stat.MaxConns())
		s.acquires += float64(stat.AcquireCount())
		s.waited += stat.AcquireDuration().Seconds()
	}
	m.mu.Unlock()
	for name, s := range byName {
		for state, n := range map[string]float64{"used": s.used, "idle": s.idle, "max": s.limit} {
			to <- prometheus.MustNewConstMetric(poolConnections, prometheus.GaugeValue, n, name, state)
		}
		to <- prometheus.MustNewConstMetric(poolAcquires, prometheus.CounterValue, s.acquires, name)
		to <- prometheus.MustNewConstMetric(poolWaits, prometheus.CounterValue, s.waited, name)
	}
}
