package api_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

var doneRuns = regexp.MustCompile(`(?m)^varve_compaction_runs_total\{cause="[a-z_]+",state="done"\} [1-9]`)

func TestTheMetricsCountWhatCompactionsDid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/canary-1d2e", `{"window_tokens":20000}`)
	w.must(http.StatusCreated, "POST", "/v1/sessions/canary-1d2e/messages", batch("openai-chat", conversation(20, 500)...))
	w.work()
	w.must(http.StatusOK, "POST", "/v1/sessions/canary-1d2e/compact?wait=60", "")
	got := w.counted("varve_compaction_parts_total{action=") // the last that a run counts, after it has ended
	for _, line := range []string{
		"varve_compaction_tokens_saved_total ", "varve_compaction_messages_total ",
		`varve_compaction_step_duration_seconds_count{step="planned"} `, "varve_compaction_parts_total{action=", "varve_compaction_failed_open_total ",
	} {
		if !strings.Contains(got, "\n"+line) || strings.Contains(got, "\n"+line+"0\n") && !strings.Contains(line, "failed_open") {
			t.Errorf("no line %s…", line)
		}
	}
	if !doneRuns.MatchString(got) { // the append has asked for a run, too: one of the two finds something to do
		t.Errorf("no line of a run that is done in\n%s", got)
	}
	for _, secret := range []string{"canary-1d2e", w.tenant.String()} {
		if strings.Contains(got, secret) {
			t.Errorf("%s is in the metrics", secret)
		}
	}
}

// TestRequestsAreCountedByRouteAndStatus, and no path, method or name that a client chooses becomes a label.
func TestRequestsAreCountedByRouteAndStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/canary-77aa", `{}`)
	w.must(http.StatusNotFound, "GET", "/v1/sessions/canary-77ab/context", "")
	w.must(http.StatusNotFound, "GET", "/canary-77ac", "")
	got := w.counted(`varve_http_requests_total{method="any",route="none",status="404"} `)
	for _, line := range []string{
		`varve_http_requests_total{method="PUT",route="/v1/sessions/:id",status="201"} `,
		`varve_http_requests_total{method="GET",route="/v1/sessions/:id/context",status="404"} `,
		`varve_http_request_duration_seconds_bucket{method="PUT",route="/v1/sessions/:id",le="10"} `,
		"varve_http_requests_in_flight ",
	} {
		if !strings.Contains(got, "\n"+line) {
			t.Errorf("no line %s…", line)
		}
	}
	if strings.Contains(got, "canary-77a") {
		t.Error("the metrics have what a client has chosen")
	}
	problems, err := promlint.New(strings.NewReader(got)).Lint()
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	if err != nil {
		t.Error(err)
	}
}

// counted returns the metrics once they have a line that begins like this.
func (w *world) counted(line string) (metrics string) {
	w.Helper()
	w.until("the metrics have "+line, func() bool {
		metrics = w.must(http.StatusOK, "GET", "/metrics", "", "Authorization", "").Body.String()
		return strings.Contains(metrics, "\n"+line)
	})
	return metrics
}
