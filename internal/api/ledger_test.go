package api_test

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// trimmed makes a session of which a compaction took results out, and returns their refs.
func (w *world) trimmed(id string) (refs []string) {
	w.Helper()
	const own = `{"trigger":0.8,"target":0.5,"trim":{"enabled":true,"min_tokens":100},"idle":{"enabled":false},"protect":{"yields":false},"cap":{"max_ratio":0,"unit_ratio":0}}`
	w.must(http.StatusCreated, "PUT", "/v1/sessions/"+id, `{"format":"openai-chat","window_tokens":10000000,"policy":`+own+`}`)
	for n := range 4 {
		w.must(http.StatusCreated, "POST", "/v1/sessions/"+id+"/messages", batch("openai-chat", turn("openai-chat", n, 3, 6000)...))
	}
	w.must(http.StatusOK, "PATCH", "/v1/sessions/"+id, `{"window_tokens":20000}`)
	w.must(http.StatusOK, "POST", "/v1/sessions/"+id+"/compact?wait=20", "")
	for _, r := range decoded[listPage](w.must(http.StatusOK, "GET", "/v1/sessions/"+id+"/results", "")).Data {
		refs = append(refs, r["ref"].(string))
	}
	return refs
}

// TestUsageIsWhatWasStoredServedAndCompacted uses a session in every way that is counted.
func TestUsageIsWhatWasStoredServedAndCompacted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	refs := w.trimmed("s")
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
	w.exec(`UPDATE usage_sessions SET over_window = true`)
	if state := decoded[session.State](w.must(http.StatusOK, "GET", "/v1/usage/state", "")); state != (session.State{Sessions: 1, OverWindow: 1}) {
		t.Errorf("the state is %+v", state)
	}
	text := w.must(http.StatusOK, "GET", "/v1/usage?format=csv", "").Body.String()
	lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(lines) != 1+len(usage.Data) || len(lines[0]) != 13 || lines[1][0] != usage.Data[0].Day {
		t.Errorf("CSV %q, %v", text, err)
	}
}

// TestOperatorsSeeWhatAllTenantsHaveUsed uses two tenants.
func TestOperatorsSeeWhatAllTenantsHaveUsed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	w.trimmed("s")
	_, key := w.newTenant("other")
	w.must(http.StatusCreated, "PUT", "/v1/sessions/theirs", "", "Authorization", "Bearer "+key)
	w.must(http.StatusCreated, "POST", "/v1/sessions/theirs/messages", batch("openai-chat", user("hi")), "Authorization", "Bearer "+key)
	w.server.Close(t.Context())
	w.exec(`INSERT INTO model_spending VALUES ('` + w.tenant.String() + `', current_date, '', 1, 2, 3, 4), ('` + w.tenant.String() + `', current_date - 1, '', 10, 0, 0, 0)`)
	w.exec(`UPDATE usage_sessions SET over_window = true`)
	sum := session.Use{}
	for _, of := range []string{w.key, key} {
		sum.Add(decoded[protocol.Usage](w.must(http.StatusOK, "GET", "/v1/usage", "", "Authorization", "Bearer "+of)).Total)
	}
	all := decoded[protocol.Usage](w.must(http.StatusOK, "GET", "/v1/admin/usage", ""))
	if all.Total != sum || sum.ModelCalls != 11 || sum.Compactions == 0 || len(all.Data) != 2 {
		t.Errorf("all have used %+v, not %+v", all, sum)
	}
	state := decoded[session.StateOfAll](w.must(http.StatusOK, "GET", "/v1/admin/usage/state", ""))
	if state != (session.StateOfAll{Tenants: 2, State: session.State{Sessions: 2, OverWindow: 2}}) {
		t.Errorf("the state is %+v", state)
	}
	w.must(http.StatusForbidden, "GET", "/v1/admin/usage/state", "", "Authorization", "Bearer "+key)
}

// TestRunsAreCountedByHour compacts a session, and looks at hours in which runs were asked for.
func TestRunsAreCountedByHour(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	w.trimmed("s")
	hours := func(query, key string) []session.HourOfRuns {
		return decoded[protocol.RunsByHour](w.must(http.StatusOK, "GET", "/v1/usage/runs"+query, "", "Authorization", "Bearer "+key)).Data
	}
	list := decoded[protocol.List[session.Run]](w.must(http.StatusOK, "GET", "/v1/sessions/s/runs", "")).Data
	counted := func(found []session.HourOfRuns) (all, done, results int64) {
		for _, h := range found {
			all += h.Done + h.Unchanged + h.Postponed + h.Failed + h.Unfinished
			done, results = done+h.Done, results+h.Results
		}
		return all, done, results
	}
	if all, done, results := counted(hours("", w.key)); all != int64(len(list)) || done == 0 || results == 0 {
		t.Errorf("%d runs, %d done with %d results, of %+v", all, done, results, list)
	}
	if _, stranger := w.newTenant("stranger"); len(hours("", stranger)) != 0 {
		t.Errorf("another tenant sees %+v", hours("", stranger))
	}
	// One of long ago, and one of the hour before the first of 24, which is not looked for by its id alone.
	for _, past := range []time.Time{time.Now().Add(-30 * time.Hour), time.Now().Truncate(time.Hour).Add(-23*time.Hour - 30*time.Minute)} {
		run := uuid.New()
		for i := range 6 {
			run[i] = byte(past.UnixMilli() >> (40 - 8*i))
		}
		w.exec(`INSERT INTO runs SELECT (jsonb_populate_record(r, jsonb_build_object('id', '` + run.String() + `', 'triggered_at', '` +
			past.Format(time.RFC3339) + `'))).* FROM runs r LIMIT 1`)
	}
	for query, want := range map[string]int64{"": int64(len(list)), "?hours=168": int64(len(list) + 2)} {
		if all, _, _ := counted(hours(query, w.key)); all != want {
			t.Errorf("%q counts %d runs, not %d", query, all, want)
		}
	}
	w.must(http.StatusUnprocessableEntity, "GET", "/v1/usage/runs?hours=169", "")
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

// TestEachReadOfAResultIsCounted reads results in every way; a HEAD and what finds nothing are no reads.
func TestEachReadOfAResultIsCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	refs := w.trimmed("s")
	path := "/v1/sessions/s/results/"
	w.must(http.StatusOK, "GET", path+refs[0], "")
	w.must(http.StatusOK, "GET", path+refs[0]+"?raw=true", "")
	w.must(http.StatusPartialContent, "GET", path+refs[1]+"?raw=true", "", "Range", "bytes=0-9")
	w.must(http.StatusOK, "HEAD", path+refs[2], "")
	w.must(http.StatusNotFound, "GET", path+"r1.0-0000", "")
	w.must(http.StatusOK, "GET", path+"m1", "")
	w.wantReadBacks(4)
	w.must(http.StatusNoContent, "DELETE", "/v1/sessions/s", "")
	w.wantReadBacks(4)
}

// wantReadBacks checks how often the tenant has read something back, once that is written.
func (w *world) wantReadBacks(want int64) {
	w.Helper()
	w.server.Close(w.Context())
	if got := decoded[protocol.Usage](w.must(http.StatusOK, "GET", "/v1/usage", "")).Total.ReadBacks; got != want {
		w.Errorf("%d reads are counted, want %d", got, want)
	}
}

// TestAGrepReadsBackEachResultThatItFinds: by a tool as by REST. A page ends where its time does, on a busy machine
// within a result, which the next page then reads again.
func TestAGrepReadsBackEachResultThatItFinds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	refs := w.trimmed("s")
	const pattern = "of the file"
	pages := map[string]func(cursor string) protocol.Matches{
		"rest": func(cursor string) protocol.Matches {
			query := url.Values{"pattern": {pattern}, "max_matches": {"500"}, "cursor": {cursor}}
			return decoded[protocol.Matches](w.must(http.StatusOK, "GET", "/v1/sessions/s/results/grep?"+query.Encode(), ""))
		},
		"tools": func(cursor string) protocol.Matches {
			body := fmt.Sprintf(`{"arguments":{"pattern":%q,"max_matches":500,"cursor":%q}}`, pattern, cursor)
			type answer struct{ Structured protocol.Matches }
			return decoded[answer](w.must(http.StatusOK, "POST", "/v1/sessions/s/tools/grep_results", body)).Structured
		},
	}
	all := 0
	for via, page := range pages {
		found := map[string]bool{}
		for cursor, more := "", true; more; {
			matches := page(cursor)
			for _, ref := range matches.Found() {
				found[ref], all = true, all+1
			}
			if more = matches.NextCursor != nil; more {
				cursor = *matches.NextCursor
			}
		}
		if len(found) != len(refs) {
			t.Errorf("%s: of %d results %d were found", via, len(refs), len(found))
		}
		w.wantReadBacks(int64(all))
	}
}
