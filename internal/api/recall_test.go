package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// fillRecall makes a session of which a compaction took results out, and returns their refs.
func (w *world) fillRecall(id string) (refs []string) {
	w.Helper()
	const own = `{"trigger":0.8,"target":0.5,"trim":{"enabled":true,"min_tokens":100},"rank":{"enabled":false},"idle":{"enabled":false},"protect":{"yields":false},"cap":{"max_ratio":0,"unit_ratio":0}}`
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

func TestWhatIsReadBackIsCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	refs := w.fillRecall("s")
	if len(refs) < 3 {
		t.Fatalf("results %v", refs)
	}
	path := "/v1/sessions/s/results/"
	w.must(http.StatusOK, "GET", path+refs[0], "")
	w.must(http.StatusOK, "GET", path+refs[0]+"?raw=true", "")
	w.must(http.StatusPartialContent, "GET", path+refs[1]+"?raw=true", "", "Range", "bytes=0-9")
	w.must(http.StatusOK, "HEAD", path+refs[2], "")
	w.must(http.StatusNotFound, "GET", path+"r1.0-0000", "")
	w.must(http.StatusOK, "GET", path+"m1", "")
	w.server.Close(t.Context())
	list := decoded[protocol.List[protocol.Result]](w.must(http.StatusOK, "GET", "/v1/sessions/s/results", "")).Data
	for i, want := range []int64{2, 1, 0} {
		if r := list[i]; r.Reads != want || (r.LastReadAt != nil) != (want > 0) {
			t.Errorf("%s was read %d times, %v, want %d", r.Ref, r.Reads, r.LastReadAt, want)
		}
	}
	page := decoded[protocol.ResultPage](w.must(http.StatusOK, "GET", path+refs[0], ""))
	if page.Reads != 2 {
		t.Errorf("the result says %d", page.Reads)
	}
	w.server.Close(t.Context())
	runs := decoded[protocol.List[session.Run]](w.must(http.StatusOK, "GET", "/v1/sessions/s/runs", "")).Data
	found := session.ReadBack{}
	for _, run := range runs {
		found.Parts += run.ReadBack.Parts
		found.Reads += run.ReadBack.Reads
		found.Tokens += run.ReadBack.Tokens
	}
	report := decoded[protocol.Recall](w.must(http.StatusOK, "GET", "/v1/recall", ""))
	if found.Parts != 2 || found.Reads != 4 || found.Tokens <= 0 || found != report.Total.ReadBack {
		t.Errorf("runs say %+v, the report says %+v", found, report.Total)
	}
	manifest := decoded[protocol.CheckpointDetail](w.must(http.StatusOK, "GET", "/v1/sessions/s/checkpoints/1?manifest=own", "")).Manifest
	if int64(len(manifest.Entries)) != report.Total.Left.Parts || report.Total.Share != 2/float64(len(manifest.Entries)) {
		t.Errorf("%d parts left; the report says %+v", len(manifest.Entries), report.Total)
	}
	if first := report.Data[0]; first.Rule == "" || first.Action == "" || first.ReadBack.Parts == 0 {
		t.Errorf("the report %+v", report.Data)
	}
	if n := w.count(`SELECT reads FROM recalls WHERE ref = 'm1' AND checkpoint_n = 0 AND action = 'in_view' AND via = 'rest'`); n != 1 {
		t.Errorf("the message in the view was read %d times", n)
	}
	w.must(http.StatusNoContent, "DELETE", "/v1/sessions/s", "")
	if n := w.count(`SELECT count(*) FROM recalls`); n != 0 {
		t.Errorf("%d counts stay of an erased session", n)
	}
}

// TestAGrepReadsBackEachResultThatItFinds: by a tool as by REST. A page ends where its time does, on a busy machine
// within a result, which the next page then reads again.
func TestAGrepReadsBackEachResultThatItFinds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	refs := w.fillRecall("s")
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
	for via, page := range pages {
		found, reads := map[string]bool{}, 0
		for cursor, more := "", true; more; {
			matches := page(cursor)
			for _, ref := range matches.Found() {
				found[ref], reads = true, reads+1
			}
			if more = matches.NextCursor != nil; more {
				cursor = *matches.NextCursor
			}
		}
		w.server.Close(t.Context())
		counted := w.count(`SELECT count(*) FROM recalls WHERE via = '` + via + `'`)
		sum := w.count(`SELECT sum(reads) FROM recalls WHERE via = '` + via + `'`)
		if len(found) != len(refs) || counted != len(found) || sum != reads {
			t.Errorf("%s: of %d results %d were found, in %d reads; %d were counted, with %d reads",
				via, len(refs), len(found), reads, counted, sum)
		}
	}
}

func TestMessagesThatLeftTogetherAreOnePart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	refs := w.fillRecall("s")
	entry := map[string]any{"seq": 2, "last_seq": 9, "part": -1, "do": "summarise", "stage": "summarise", "rule": "summarise.enabled", "tokens_before": 900, "tokens_after": 100}
	manifest, _ := json.Marshal([]any{entry})
	w.exec(`INSERT INTO checkpoints (tenant_id, session_key, n, base_n, through_seq, tokens, body_size, units, manifest, policy, engine_version, run_id)
	        SELECT tenant_id, session_key, 2, 1, through_seq, 1, 1, '[]', '` + string(manifest) + `', policy, engine_version, run_id FROM checkpoints;
	        UPDATE sessions SET checkpoint_n = 2`)
	for _, ref := range []string{"m3", "m4-5", "m9-20", refs[0]} { // the result is of a message among them
		w.must(http.StatusOK, "GET", "/v1/sessions/s/results/"+ref, "")
	}
	w.server.Close(t.Context())
	if n := w.count(`SELECT reads FROM recalls WHERE ref = 'm2-9' AND checkpoint_n = 2 AND action = 'summarise' AND tokens = 800`); n != 3 {
		t.Errorf("the range was read %d times", n)
	}
	if n := w.count(`SELECT checkpoint_n FROM recalls WHERE ref = '` + refs[0] + `'`); n != 2 {
		t.Errorf("checkpoint %d took the result out", n)
	}
}

func TestRecallIsOfOneTenantAndOneTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	refs := w.fillRecall("s")
	w.must(http.StatusOK, "GET", "/v1/sessions/s/results/"+refs[0], "")
	w.server.Close(t.Context())
	_, stranger := w.newTenant("stranger")
	theirs := decoded[protocol.Recall](w.must(http.StatusOK, "GET", "/v1/recall", "", "Authorization", "Bearer "+stranger))
	if len(theirs.Data) != 0 || theirs.Total.Left.Parts != 0 {
		t.Errorf("the stranger sees %+v", theirs)
	}
	before := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	old := decoded[protocol.Recall](w.must(http.StatusOK, "GET", "/v1/recall?to="+before, ""))
	if len(old.Data) != 0 {
		t.Errorf("what left later: %+v", old)
	}
	for query, advice := range map[string]string{"to=yesterday": "must be a time", "from=2026-01-01T00:00:00Z&to=2025-01-01T00:00:00Z": "before to", "from=2024-01-01T00:00:00Z": "92 days"} {
		if got := w.must(http.StatusUnprocessableEntity, "GET", "/v1/recall?"+query, ""); !strings.Contains(got.Body.String(), advice) {
			t.Errorf("%s: %s", query, got.Body)
		}
	}
}
