package api_test

import (
	"encoding/csv"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// TestUsageIsWhatWasStoredServedAndCompacted uses a session in every way that the ledger counts.
func TestUsageIsWhatWasStoredServedAndCompacted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	refs := w.fillRecall("s")
	tag := w.must(http.StatusOK, "GET", "/v1/sessions/s/context", "").Header().Get("ETag")
	w.must(http.StatusNotModified, "GET", "/v1/sessions/s/context", "", "If-None-Match", tag)
	w.must(http.StatusOK, "HEAD", "/v1/sessions/s/context", "")
	w.must(http.StatusOK, "GET", "/v1/sessions/s/context?format=anthropic", "")
	w.must(http.StatusOK, "GET", "/v1/sessions/s/results/"+refs[0], "")
	served := int64(decoded[protocol.View](w.must(http.StatusOK, "GET", "/v1/sessions/s/context", "")).Tokens)
	w.server.Close(t.Context())

	known := decoded[protocol.Session](w.must(http.StatusOK, "GET", "/v1/sessions/s", ""))
	want := session.Use{
		Messages: known.LastSeq, Tokens: known.TotalTokens, Bytes: int64(w.count(`SELECT coalesce(sum(coalesce(bytes, octet_length(body))), 0) FROM messages`)),
		Views: 3, TokensServed: 3 * served, TokensSaved: 3 * (known.TotalTokens - served), ReadBacks: 1,
		Compactions: int64(known.Checkpoint),
	}
	usage := decoded[protocol.Usage](w.must(http.StatusOK, "GET", "/v1/usage", ""))
	if usage.Total != want || want.Compactions == 0 || want.TokensSaved <= 0 {
		t.Errorf("usage %+v, want %+v", usage.Total, want)
	}
	list := decoded[protocol.List[protocol.SessionUse]](w.must(http.StatusOK, "GET", "/v1/usage/sessions", "")).Data
	if len(list) != 1 || list[0].Session != "s" || list[0].Use != want {
		t.Errorf("sessions %+v, want %+v", list, want)
	}
	text := w.must(http.StatusOK, "GET", "/v1/usage?format=csv", "").Body.String()
	lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(lines) != 1+len(usage.Data) || len(lines[0]) != 13 || lines[1][0] != usage.Data[0].Day {
		t.Errorf("CSV %q, %v", text, err)
	}
}

// TestUsageIsTheTenants has another tenant look at the same time, and a caller ask for days that cannot be.
func TestUsageIsTheTenants(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"format":"openai-chat"}`)
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", `{"messages":[{"role":"user","content":"hi"}]}`)
	w.server.Close(t.Context())
	if usage := decoded[protocol.Usage](w.must(http.StatusOK, "GET", "/v1/usage", "")); usage.Total.Messages != 1 {
		t.Errorf("usage %+v", usage)
	}
	_, stranger := w.newTenant("stranger")
	for _, route := range []string{"/v1/usage", "/v1/usage/sessions"} {
		body := w.must(http.StatusOK, "GET", route, "", "Authorization", "Bearer "+stranger).Body.String()
		if !strings.Contains(body, `"data":[]`) {
			t.Errorf("%s: another tenant sees %s", route, body)
		}
	}
	before := time.Now().AddDate(0, 0, -3).UTC().Format(time.RFC3339)
	old := decoded[protocol.Usage](w.must(http.StatusOK, "GET", "/v1/usage?to="+before, ""))
	if len(old.Data) != 0 || old.To != before[:10] {
		t.Errorf("usage of before %+v", old)
	}
	if got := decoded[protocol.Usage](w.must(http.StatusOK, "GET", "/v1/usage?from="+old.From+"&to="+old.To, "")); got.From != old.From || got.To != old.To {
		t.Errorf("the days of a report, asked for: %+v", got)
	}
	for query, advice := range map[string]string{
		"from=yesterday": "from", "from=2020-01-01T00:00:00Z": "at most 366 days", "format=xml": "csv",
		"to=" + before + "&from=" + time.Now().UTC().Format(time.RFC3339): "must not be after to",
	} {
		if got := w.must(http.StatusUnprocessableEntity, "GET", "/v1/usage?"+query, ""); !strings.Contains(got.Body.String(), advice) {
			t.Errorf("%s: %s", query, got.Body)
		}
	}
}
