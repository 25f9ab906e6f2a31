package apitest

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// Metric returns a gauge or counter of this process: the sum over all that have its name and, if one is given, this as
// their first label.
func Metric(t testing.TB, name string, label ...string) (n float64) {
	t.Helper()
	families, err := prometheus.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == name && (len(label) == 0 || m.GetLabel()[0].GetValue() == label[0]) {
				n += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return n
}
