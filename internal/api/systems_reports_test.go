package api_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/protocol"
)

// TestWithoutSummariesWholeUnitsAreDropped: nothing else shortens old results under the default.
func TestWithoutSummariesWholeUnitsAreDropped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var reads [][]string
	for i := range 20 {
		told := user(fmt.Sprintf("Mend defect %d, which is in src/part%d.go: the limit is %d there.", i, i, 300+i))
		reads = append(reads, append([]string{told}, exchange(fmt.Sprint("c", i), "Read", fmt.Sprintf(`{"path":"src/part%d.go"}`, i), body("old", 2400))...))
	}
	for patch, acts := range map[string]string{
		"":                              "summarise",
		`"summarise":{"enabled":false}`: "truncate",
		`"summarise":{"enabled":false},"trim":{"enabled":true,"hot_zone_min_tokens":0,"degradation_span_ratio":0}`: "trim",
	} {
		got := w.compactsRow(t, "default", systemRow{window: 20_000, policy: patch, messages: talk(reads...)})
		for _, stage := range got.Stages {
			if (stage.Actions > 0) != (stage.Stage == acts) {
				t.Errorf("{%s}: %+v", patch, stage)
			}
		}
	}
}

// TestAViewAboveItsWindowIsReported: what is protected does not fit. The report says by how much, and what helps.
func TestAViewAboveItsWindowIsReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got := w.compactsRow(t, "llm-proxy", systemRow{window: 2000, messages: talk(
		exchange("c1", "cat", `{"path":"a"}`, body("old", 3000)), exchange("c2", "cat", `{"path":"a"}`, body("new", 9000)))})
	risk := got.Report.OverflowRisk
	if risk == nil || risk.OverBy != got.TokensAfter-2000 || !strings.HasPrefix(risk.Recommendation, "switch trim on") {
		t.Errorf("%d tokens, %+v", got.TokensAfter, risk)
	}
	if metrics := w.must(http.StatusOK, "GET", "/metrics", "", "Authorization", "").Body.String(); !strings.Contains(metrics, "\nvarve_compaction_overflow_risk_total ") {
		t.Error("no line varve_compaction_overflow_risk_total")
	}
}

// TestReportsHaveWhatLLMProxyDocuments shows the rows about metrics, log lines and events.
func TestReportsHaveWhatLLMProxyDocuments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lines := make(chan string, 1000)
	reads := func(id, path, text string) []string { return exchange(id, "cat", `{"path":"`+path+`"}`, text) }
	messages := talk(
		reads("c1", "/a.py", body("old", 3000)), reads("c2", "/a.py", body("new", 3000)),
		exchange("c3", "view_file", `{"path":"/b","offset":7}`, body("old", 3000)), exchange("c4", "view_file", `{"path":"/b","offset":7}`, body("new", 3000)),
		exchange("c5", "bash", `{"command":"ls"}`, body("old", 3000)), exchange("c6", "bash", `{"command":"ls"}`, body("new", 3000)),
		reads("c7", "/s/sk-abcdefghijklmnopqrstuv", body("old", 3000)), reads("c8", "/s/sk-abcdefghijklmnopqrstuv", body("new", 3000)),
		reads("c9", "/short", strings.Repeat("word ", 150)), reads("c0", "/short", "new"), []string{answers("nobody", body("orphan", 3000))})
	const path = "/v1/sessions/s"
	w.must(http.StatusCreated, "PUT", path, `{"window_tokens":1000000,"policy":{"profile":"llm-proxy","target":0.001}}`)
	w.must(http.StatusCreated, "POST", path+"/messages", batch("openai-chat", messages...))
	preview := decoded[struct {
		WouldChange bool `json:"would_change"`
		Actions     []compact.Action
	}](w.must(http.StatusOK, "POST", path+"/preview?actions=all", ""))
	w.workLogging(slog.New(slog.NewJSONHandler(lineWriter(lines), nil)))
	run := decoded[struct {
		State  string
		Report protocol.Report
	}](w.must(http.StatusOK, "POST", path+"/compact?wait=60", ""))

	if !preview.WouldChange || run.State != "done" {
		t.Errorf("would change: %t, then the run is %s", preview.WouldChange, run.State)
	}
	want := protocol.Stale{Count: 3, ResourcesTotal: 3, Resources: []string{"cat:/a.py", "cat:/s/***", "view_file:/b:offset:7"}}
	if diff := cmp.Diff(want, run.Report.Stale); diff != "" {
		t.Errorf("stale (-want +got):\n%s", diff)
	}
	decisions := protocol.Decisions{
		Processed: 11, Applied: 3, ByCategory: map[string]int{"file_read": 6, "view_file": 2, "command_execution": 2, "unknown": 1},
		ByReason: map[string]int{"applied": 3, "denied_by_policy": 1, "skipped_below_min_tokens": 1, "no_stage_applies": 5, "unpaired": 1},
	}
	if diff := cmp.Diff(decisions, run.Report.Decisions); diff != "" {
		t.Errorf("decisions (-want +got):\n%s", diff)
	}
	if r := run.Report; r.MessagesTotal != 22 || r.MessagesCompacted != 3 || r.BytesBefore-r.BytesAfter < 3*2500 || r.TokensSaved < 3*600 || len(r.FailedOpen) != 0 {
		t.Errorf("report %+v", r)
	}
	checkEvent(t, preview.Actions[0], body("old", 3000))
	for _, a := range preview.Actions {
		if (a.Decision == compact.Applied) != (a.SHA256 != "") || a.BytesBefore == 0 || (a.Category == "") != (a.Decision == "unpaired") {
			t.Errorf("event %+v", a)
		}
	}
	for line := range lines { // the run is counted before it is logged, and logged after the answer
		if strings.Contains(line, `"msg":"compaction"`) {
			if !strings.Contains(line, `"stale_resources":"cat:/a.py,cat:/s/***,view_file:/b:offset:7"`) || !strings.Contains(line, `"messages":22`) {
				t.Error(line)
			}
			break
		}
	}
	metrics := w.must(http.StatusOK, "GET", "/metrics", "", "Authorization", "").Body.String()
	for _, line := range []string{
		"varve_compaction_messages_total", "varve_compaction_bytes_saved_total", "varve_compaction_tokens_saved_total", "varve_compaction_original_messages_total",
		"varve_compaction_stale_results_total", "varve_compaction_stale_resources_total", `varve_compaction_evaluations_total{category="view_file"}`,
		`varve_compaction_evaluation_reasons_total{reason="applied"}`, `varve_compaction_evaluation_reasons_total{reason="denied_by_policy"}`, `varve_compaction_evaluation_reasons_total{reason="skipped_below_min_tokens"}`,
	} {
		if !strings.Contains(metrics, "\n"+line+" ") || strings.Contains(metrics, "\n"+line+" 0\n") {
			t.Errorf("no %s", line)
		}
	}
}

// lineWriter sends what is written.
type lineWriter chan string

func (w lineWriter) Write(line []byte) (int, error) {
	w <- string(line)
	return len(line), nil
}

// checkEvent checks the record of a decision that was applied to a text.
func checkEvent(t *testing.T, a compact.Action, original string) {
	t.Helper()
	stub := fmt.Sprintf("[COMPACTED] Previous output for /a.py (%d bytes) was removed because a newer result for this resource exists later in the conversation."+
		" In full: read_result %s.", len(original), a.Ref)
	want := compact.Action{
		Seq: 3, LastSeq: 3, Kind: compact.Stub, Stage: "dedupe", Rule: "dedupe.keep_last", Reason: "message 5 has a newer result for the same resource", Tool: "cat",
		Category: "file_read", Decision: compact.Applied, TokensBefore: a.TokensBefore, TokensAfter: a.TokensAfter, BytesBefore: len(original), BytesAfter: len(stub),
		Ref: a.Ref, Resource: "cat:/a.py", SHA256: digest(original), SHA256After: digest(stub),
	}
	if diff := cmp.Diff(want, a); diff != "" || a.TokensAfter >= a.TokensBefore {
		t.Errorf("event (-want +got):\n%s", diff)
	}
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
