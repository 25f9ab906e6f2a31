package process_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestAWorkerIsProbed asks a worker through an outage of its database.
func TestAWorkerIsProbed(t *testing.T) {
	t.Parallel()
	s := start(t)
	defer s.stop()
	ask := func(path string) (status int, body string) {
		response, err := http.Get("http://" + s.probes + path)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body) // what is missing is found below
		return response.StatusCode, string(text)
	}
	_, metrics := ask("/metrics")
	for _, line := range []string{
		"\nvarve_build_info{", "\nvarve_db_connections{pool=\"worker\",state=\"max\"} ", "\nvarve_db_acquires_total{pool=\"api\"} ",
	} {
		if !strings.Contains(metrics, line) {
			t.Errorf("no line%s…", line)
		}
	}
	if status, _ := ask("/readyz"); status != http.StatusOK {
		t.Errorf("/readyz of a worker that works: %d", status)
	}
	if err := s.cluster.Crash(); err != nil {
		t.Fatal(err)
	}
	if status, _ := ask("/readyz"); status != http.StatusServiceUnavailable {
		t.Errorf("/readyz without a database: %d", status)
	}
	if status, _ := ask("/livez"); status != http.StatusOK {
		t.Errorf("/livez without a database: %d", status)
	}
}
