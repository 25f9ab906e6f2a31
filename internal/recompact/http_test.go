package recompact_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/api"
	"github.com/varve-dev/varve/internal/feature"
	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/llm"
	"github.com/varve-dev/varve/internal/modelcall"
	"github.com/varve-dev/varve/internal/recompact"
	"github.com/varve-dev/varve/internal/session"
)

const recompactions = "/v1/admin/recompactions"

// recompaction is a recompaction as callers decode it.
type recompaction struct {
	ID         uuid.UUID
	State      string
	MaxRunning int `json:"max_running"`
	Progress   struct{ Total, Done, Running, Changed, Unchanged, Failed, Skipped int }
	Before     int64 `json:"tokens_before"`
	After      int64 `json:"tokens_after"`
	Errors     []struct{ Session, Error string }
	Finished   *time.Time `json:"finished_at"`
}

// dryRun is the answer to a dry run as callers decode it.
type dryRun struct {
	Sessions int
	Messages int
	Context  int64 `json:"context_tokens"`
	Sample   struct {
		Sessions, Changed, Unchanged, Failed int
		Before                               int64 `json:"tokens_before"`
		After                                int64 `json:"tokens_after"`
		Models                               recompact.RecompactionModels
		Errors                               []struct{ Session, Error string }
	}
	Estimate struct {
		Changed int
		After   int64 `json:"tokens_after"`
		Calls   int64
		CostMax float64 `json:"cost_max"`
	}
	Token string `json:"confirm_token"`
}

// fill makes sessions of 13 messages each, below their trigger.
func (w *asked) fill(ids ...string) {
	w.Helper()
	for i, id := range ids {
		w.must(http.StatusCreated, "PUT", "/v1/sessions/"+id, fmt.Sprintf(`{"window_tokens":20000,"metadata":{"n":"%d"}}`, i))
		w.must(http.StatusCreated, "POST", "/v1/sessions/"+id+"/messages", thirteen())
	}
}

// thirteen returns messages of 13 messages, six of which are results of 6,000 bytes.
func thirteen() string {
	text := strings.Repeat("line 1 of the file\\n", 300)
	messages := []string{`{"role":"user","content":"question 1"}`}
	for i := range 6 {
		messages = append(messages,
			fmt.Sprintf(`{"role":"assistant","content":"I look","tool_calls":[{"id":"c%d","type":"function","function":{"name":"Read","arguments":"{\"path\":\"f%d\"}"}}]}`, i, i),
			fmt.Sprintf(`{"role":"tool","tool_call_id":"c%d","content":"%s"}`, i, text))
	}
	messages = append(messages, `{"role":"assistant","content":"answer 1"}`)
	return `{"format":"openai-chat","messages":[` + strings.Join(messages, ",") + `]}`
}

// ended waits until the recompaction at a place has ended.
func (w *asked) ended(location string) (r recompaction) {
	w.Helper()
	up := time.After(15 * time.Minute) // for a machine that has much else to do
	for r.Finished == nil {
		r = decoded[recompaction](w.must(http.StatusOK, "GET", location, ""))
		select {
		case <-up:
			w.Fatalf("it does not end: %+v", r)
		case <-time.After(10 * time.Millisecond):
		}
	}
	return r
}

func TestARecompactionFromItsDryRunToItsEnd(t *testing.T) {
	t.Parallel()
	w := newAsked(t)
	w.must(http.StatusOK, "PUT", "/v1/policy", `{"idle":{"enabled":false}}`)
	w.fill("a", "b", "c")
	const what = `"filter":{"sessions":["a","b","none"]},"policy":{"trigger":0.4,"target":0.1}`
	dry := decoded[dryRun](w.must(http.StatusOK, "POST", recompactions, `{`+what+`,"dry_run":true}`))
	if dry.Sessions != 2 || dry.Messages == 0 || dry.Sample.Sessions != 2 || dry.Sample.Changed != 2 || dry.Estimate.Changed != 2 ||
		dry.Sample.Before != dry.Context || dry.Estimate.After != dry.Sample.After || dry.Sample.After >= dry.Context {
		t.Errorf("dry run %+v", dry)
	}
	body := `{` + what + `,"max_running":4,"confirm_token":"` + dry.Token + `","tenant":"` + w.Tenant.String() + `","from":"log"}`
	begun := w.must(http.StatusAccepted, "POST", recompactions, body, "Idempotency-Key", "k")
	location := begun.Header().Get("Location")
	first := decoded[recompaction](begun)
	if first.State != "queued" || first.MaxRunning != 4 || location != recompactions+"/"+first.ID.String() || begun.Header().Get("Retry-After") == "" {
		t.Errorf("%+v, headers %v", first, begun.Header())
	}
	again := w.must(http.StatusAccepted, "POST", recompactions, body, "Idempotency-Key", "k")
	if decoded[recompaction](again).ID != first.ID || again.Header().Get("Idempotent-Replayed") != "true" {
		t.Errorf("a second time: %s", again.Body)
	}
	w.Work(jobs.Config{})
	found := w.ended(location)
	if p := found.Progress; found.State != "done" || p.Total != 2 || p.Done != 2 || p.Changed != 2 || found.Before != dry.Sample.Before || found.After != dry.Sample.After {
		t.Errorf("%+v, but the dry run said %+v", found, dry)
	}
	for id, checkpoint := range map[string]string{"a": `"checkpoint":1`, "b": `"checkpoint":1`, "c": `"checkpoint":0`} {
		if got := w.must(http.StatusOK, "GET", "/v1/sessions/"+id, ""); !strings.Contains(got.Body.String(), checkpoint) {
			t.Errorf("session %s: %s", id, got.Body)
		}
	}
	if one := w.must(http.StatusOK, "GET", location, ""); !strings.Contains(one.Body.String(), `"errors":[]`) {
		t.Errorf("one without errors does not say so: %s", one.Body)
	}
	runs := decoded[listPage](w.must(http.StatusOK, "GET", "/v1/sessions/a/runs", ""))
	if len(runs.Data) == 0 || runs.Data[0]["trigger"] != "recompaction" || len(runs.Data) > 1 && runs.Data[1]["trigger"] != "idle" {
		t.Errorf("runs %v", runs)
	}
}

func TestARecompactionIsComparedWithTheSessionsThatItLeftAlone(t *testing.T) {
	t.Parallel()
	w := newAsked(t)
	w.fill("a", "b")
	view := func(ids ...string) {
		for _, id := range ids {
			w.must(http.StatusOK, "GET", "/v1/sessions/"+id+"/context", "")
		}
	}
	view("a", "b", "b")
	w.Until("the ledger has counted the views", func() bool { return w.Count(`SELECT coalesce(sum(views), 0) FROM usage_days`) == 3 })
	w.Work(jobs.Config{})
	location := w.must(http.StatusAccepted, "POST", recompactions, `{"filter":{"sessions":["a"]},"policy":{"trigger":0.4,"target":0.1}}`).Header().Get("Location")
	w.ended(location)
	view("a", "a", "b", "b", "b")
	w.Server.Close(t.Context()) // the ledger has counted what it was asked for
	c := decoded[recompact.Comparison](w.must(http.StatusOK, "GET", location+"/comparison", ""))
	if c.Sessions != 1 || c.Before.Views != 1 || c.After.Views != 2 || c.Others.Views != 3 {
		t.Errorf("%+v, want 1 view before, 2 since, and 3 of others since", c)
	}
	if c.Others.TokensPerView == nil || c.After.TokensPerView == nil || *c.After.TokensPerView >= *c.Others.TokensPerView {
		t.Errorf("the changed session serves %+v, the other one %+v", c.After, c.Others)
	}
}

func TestADryRunSaysWhatModelsWouldCost(t *testing.T) {
	t.Parallel()
	w := newAsked(t)
	models, err := llm.Open(llm.Config{
		Providers: map[string]llm.Provider{"a": {Kind: llm.Anthropic, BaseURL: "https://hush.example", Key: llm.NewKey("sk-hush")}},
		Models: map[string]llm.Definition{
			"haiku": {Provider: "a", Model: "claude-haiku-4-5", Window: 200_000, Price: llm.Price{Input: 1, Cached: 0.1, Output: 5}},
		},
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	w.Server = api.New(api.Config{
		Store: w.Store, Caller: &modelcall.Caller{Models: models, Store: w.Store}, Features: []feature.Feature{recompact.Feature()},
	})
	ids := make([]string, 24) // more than a sample has
	for i := range ids {
		ids[i] = fmt.Sprint("s", i)
	}
	w.fill(ids...)
	with := func(model string) dryRun {
		const body = `{"dry_run":true,"policy":{"trigger":0.4,"target":0.1,"trim":{"enabled":false},"summarise":{"model":%q,"min_tokens":0}}}`
		return decoded[dryRun](w.must(http.StatusOK, "POST", recompactions, fmt.Sprintf(body, model)))
	}
	if dry := with(""); dry.Sample.Models != (recompact.RecompactionModels{}) || dry.Estimate.Calls != 0 || dry.Estimate.CostMax != 0 {
		t.Errorf("without a model: %+v", dry)
	}
	dry := with("haiku")
	n, e := dry.Sample.Models, dry.Estimate
	if n.Summaries < 20 || n.Kept != 0 || n.Calls != int64(n.Summaries) || n.InputTokens < 20*1000 || n.OutputTokensMax < 20*100 {
		t.Errorf("20 sessions want %+v", n)
	}
	if want := (float64(n.InputTokens) + 5*float64(n.OutputTokensMax)) / 1e6; math.Abs(n.CostMax-want) > 1e-4 {
		t.Errorf("they cost %v at most, want %v", n.CostMax, want)
	}
	if scale := 24.0 / 20; e.Calls != int64(math.Ceil(scale*float64(n.Calls))) || math.Abs(e.CostMax-scale*n.CostMax) > 1e-4 {
		t.Errorf("24 sessions want %+v, the sample %+v", e, n)
	}
}

func TestWhatIsWrongWithARecompactionIsAllToldAtOnce(t *testing.T) {
	t.Parallel()
	w := newAsked(t)
	got := w.must(http.StatusUnprocessableEntity, "POST", recompactions, `{
		"filter": {"sessions": [], "metadata": {"k": 1}, "created_before": "yesterday", "min_tokens": -1, "min_tokns": 1, "policy_version_below": 0, "engine_version_below": "1", "percent": 101},
		"policy": {"trigger": 2, "zz": 1}, "from": "checkpoint", "dry_run": 1, "max_running": 33, "apply": true}`)
	p := decoded[problem](got)
	var pointers []string
	for _, e := range p.Errors {
		pointers = append(pointers, e.Pointer)
	}
	for _, want := range []string{
		"/filter/sessions", "/filter/metadata/k", "/filter/created_before", "/filter/min_tokens", "/filter/min_tokns", "/filter/policy_version_below",
		"/filter/engine_version_below", "/filter/percent", "/policy/trigger", "/policy/zz", "/from", "/dry_run", "/max_running", "/apply",
	} {
		if !strings.Contains(strings.Join(pointers, " ")+" ", want+" ") {
			t.Errorf("%s is not told: %v", want, pointers)
		}
	}
	for body, status := range map[string]int{
		`{"max_running":0}`: http.StatusUnprocessableEntity,
		`{"filter":[]}`:     http.StatusUnprocessableEntity,
		`{"policy":1}`:      http.StatusUnprocessableEntity,
		`{"policy":{"summarise":{"model":"hiaku"}}}`: http.StatusUnprocessableEntity, // a model that is not there
		`{"confirm_token":"x"}`:                      http.StatusUnprocessableEntity,
		`{"tenant":"other"}`:                         http.StatusForbidden,
		`{"filters":{}}`:                             http.StatusBadRequest,
		`{"filter":{},"filter":{}}`:                  http.StatusBadRequest,
		`{"filter":{"created_after":"2026-01-02T00:00:00Z","created_before":"2026-01-02T00:00:00Z"}}`: http.StatusUnprocessableEntity,
	} {
		w.must(status, "POST", recompactions, body)
	}
	if list := decoded[listPage](w.must(http.StatusOK, "GET", recompactions, "")); len(list.Data) != 0 {
		t.Errorf("a request that was refused began %v", list.Data)
	}
}

func TestATokenConfirmsWhatItsDryRunLookedAt(t *testing.T) {
	t.Parallel()
	w := newAsked(t)
	token := func(body string) string {
		return decoded[dryRun](w.must(http.StatusOK, "POST", recompactions, body)).Token
	}
	with := func(filter string) string { return `{"filter":` + filter + `,"policy":{"target":0.3},"dry_run":true}` }
	want := token(with(`{"min_tokens":5,"metadata":{"a":"b"}}`))
	if got := token(`{"dry_run":true, "max_running":7, "policy": {"target": 0.3}, "filter": {"metadata":{"a":"b"}, "min_tokens":5}}`); got != want {
		t.Error("the same recompaction, written in another way, has another token")
	}
	for _, other := range []string{with(`{"min_tokens":6,"metadata":{"a":"b"}}`), with(`{"min_tokens":5}`), `{"filter":{"min_tokens":5,"metadata":{"a":"b"}},"dry_run":true}`} {
		if token(other) == want {
			t.Errorf("%s has the same token", other)
		}
	}
	w.must(http.StatusUnprocessableEntity, "POST", recompactions, `{"filter":{"min_tokens":6},"confirm_token":"`+want+`"}`)
	w.must(http.StatusAccepted, "POST", recompactions, `{"filter":{"min_tokens":5,"metadata":{"a":"b"}},"policy":{"target":0.3},"confirm_token":"`+want+`"}`)
}

func TestARecompactionIsReplayedAsItWasAnswered(t *testing.T) {
	t.Parallel()
	w := newAsked(t)
	for key, body := range map[string]string{"own": `{}`, "default": `{"policy":null}`, "other": `{"policy":{"target":0.3}}`} {
		first := w.must(http.StatusAccepted, "POST", recompactions, body, "Idempotency-Key", key).Body.String()
		if again := w.must(http.StatusAccepted, "POST", recompactions, body, "Idempotency-Key", key).Body.String(); again != first {
			t.Errorf("%s: first\n%s\nthen\n%s", body, first, again)
		}
	}
}

func TestTheFilterOfARecompaction(t *testing.T) {
	t.Parallel()
	w := newAsked(t)
	w.fill("a", "b", "c")
	w.must(http.StatusCreated, "PUT", "/v1/sessions/empty", `{"metadata":{"n":"1","m":"1"}}`)
	w.Exec(`UPDATE sessions SET window_tokens = 1000 WHERE id = 'a'`)
	w.Exec(`INSERT INTO session_failures (tenant_id, session_key, run_id, job_id, error, next_try_at, failed_at)
		SELECT tenant_id, key, key, 1, 'a bug', now(), now() FROM sessions WHERE id = 'b'`)
	for _, body := range []string{`{"filter":{"sessions":["z"]},"dry_run":true}`, `{"filter":{"sessions":["z","y"]}}`} {
		if got := w.must(http.StatusNotFound, "POST", recompactions, body); !strings.Contains(got.Body.String(), "none of the sessions in filter exists") {
			t.Errorf("%s: %s", body, got.Body)
		}
	}
	before := time.Now().UTC().Format(time.RFC3339Nano)
	for filter, want := range map[string]int{
		`{}`:                                  4,
		`{"sessions":["a","c","z"]}`:          2,
		`{"metadata":{"n":"1"}}`:              2,
		`{"metadata":{"n":"1","m":"1"}}`:      1,
		`{"min_tokens":1}`:                    3,
		`{"created_before":"` + before + `"}`: 4,
		`{"created_after":"` + before + `"}`:  0,
		`{"engine_version_below":1000}`:       0, // nothing was compacted yet
		`{"policy_version_below":1000}`:       0,
		`{"sessions":["a","b"],"metadata":{"n":"1"},"min_tokens":1}`: 1,
		`{"format":"openai-chat"}`:                                   3,
		`{"format":"gemini"}`:                                        0,
		`{"model":"none"}`:                                           0,
		`{"forked_from":"a"}`:                                        0,
		`{"updated_after":"2026-01-01T00:00:00Z"}`:                   3,
		`{"over_window":true}`:                                       1,
		`{"failing":true}`:                                           1,
	} {
		dry := decoded[dryRun](w.must(http.StatusOK, "POST", recompactions, `{"filter":`+filter+`,"dry_run":true}`))
		if dry.Sessions != want || dry.Sample.Sessions != want || dry.Sample.Failed != 0 {
			t.Errorf("%s finds %d sessions, want %d: %+v", filter, dry.Sessions, want, dry)
		}
	}
	location := w.must(http.StatusAccepted, "POST", recompactions, `{"filter":{"sessions":["a","b"]},"policy":{"trigger":0.4,"target":0.1}}`).Header().Get("Location")
	w.Work(jobs.Config{})
	w.ended(location)
	version := func(n int) string { return fmt.Sprintf(`{"filter":{"policy_version_below":%d},"dry_run":true}`, n) }
	if dry := decoded[dryRun](w.must(http.StatusOK, "POST", recompactions, version(2))); dry.Sessions != 2 {
		t.Errorf("%d sessions were compacted under version 1", dry.Sessions)
	}
	w.must(http.StatusOK, "PATCH", "/v1/policy", `{"target":0.45}`)
	if dry := decoded[dryRun](w.must(http.StatusOK, "POST", recompactions, version(2))); dry.Sessions != 2 {
		t.Errorf("%d sessions were compacted before version 2", dry.Sessions)
	}
	if dry := decoded[dryRun](w.must(http.StatusOK, "POST", recompactions, version(1))); dry.Sessions != 0 {
		t.Errorf("%d sessions were compacted before version 1", dry.Sessions)
	}
	if dry := decoded[dryRun](w.must(http.StatusOK, "POST", recompactions, `{"filter":{"engine_version_below":1000},"dry_run":true}`)); dry.Sessions != 2 {
		t.Errorf("%d sessions were compacted by an older engine than the thousandth", dry.Sessions)
	}
}

func TestRecompactionsAreListedAndCancelled(t *testing.T) {
	t.Parallel()
	w := newAsked(t)
	w.fill("a", "b", "c")
	var ids []string
	for range 3 {
		ids = append(ids, decoded[recompaction](w.must(http.StatusAccepted, "POST", recompactions, `{}`)).ID.String())
	}
	page := decoded[listPage](w.must(http.StatusOK, "GET", recompactions+"?limit=2", ""))
	if len(page.Data) != 2 || page.Data[0]["id"] != ids[2] || page.NextCursor == nil {
		t.Fatalf("%+v", page)
	}
	last := decoded[listPage](w.must(http.StatusOK, "GET", recompactions+"?limit=2&cursor="+*page.NextCursor, ""))
	if len(last.Data) != 1 || last.Data[0]["id"] != ids[0] || last.HasMore {
		t.Errorf("%+v", last)
	}
	for range 2 {
		if r := decoded[recompaction](w.must(http.StatusOK, "POST", recompactions+"/"+ids[1]+"/cancel", "")); r.State != "cancelled" || r.Finished == nil {
			t.Errorf("%+v", r)
		}
	}
	w.Work(jobs.Config{})
	done := w.ended(recompactions + "/" + ids[0])
	if done.Progress.Total != 3 || done.Progress.Unchanged+done.Progress.Changed != 3 {
		t.Errorf("%+v", done)
	}
	if r := decoded[recompaction](w.must(http.StatusOK, "POST", recompactions+"/"+ids[0]+"/cancel", "")); r.State != "done" {
		t.Errorf("one that is done was cancelled: %+v", r)
	}
	var seen []string
	for cursor := ""; ; {
		page := decoded[listPage](w.must(http.StatusOK, "GET", recompactions+"/"+ids[0]+"/sessions?limit=2"+cursor, ""))
		for _, s := range page.Data {
			seen = append(seen, fmt.Sprint(s["session"]))
		}
		if page.NextCursor == nil {
			break
		}
		cursor = "&cursor=" + *page.NextCursor
	}
	if fmt.Sprint(seen) != "[a b c]" {
		t.Errorf("sessions %v", seen)
	}
}

func TestAnotherTenantsRecompactionIsLikeAMissingOne(t *testing.T) {
	t.Parallel()
	w := newAsked(t)
	_, stranger := w.NewTenant("stranger")
	id := decoded[recompaction](w.must(http.StatusAccepted, "POST", recompactions, "")).ID.String()
	for _, route := range []string{
		"GET ", "HEAD ", "GET /sessions", "HEAD /sessions", "GET /comparison", "HEAD /comparison", "POST /pause", "POST /resume",
		"POST /cancel", "POST /rollback",
	} {
		method, end, _ := strings.Cut(route, " ")
		for _, other := range []string{id, uuid.NewString(), "nonsense"} {
			got := w.must(http.StatusNotFound, method, recompactions+"/"+other+end, "", "Authorization", "Bearer "+stranger)
			if method != "HEAD" && !strings.Contains(got.Body.String(), "no such recompaction") {
				t.Errorf("%s: %s", route, got.Body)
			}
		}
	}
	list := decoded[listPage](w.must(http.StatusOK, "GET", recompactions, "", "Authorization", "Bearer "+stranger))
	if len(list.Data) != 0 {
		t.Errorf("the stranger sees %v", list.Data)
	}
	w.must(http.StatusForbidden, "POST", recompactions, `{"tenant":"`+w.Tenant.String()+`"}`, "Authorization", "Bearer "+stranger)
}

// A group tells each tenth of a tenant's sessions that is done, once and in order; one of few sessions does not.
func TestARecompactionTellsHowFarItIs(t *testing.T) {
	t.Parallel()
	w := newAsked(t)
	var ids []string
	for n := range 20 {
		ids = append(ids, fmt.Sprintf("s%02d", n))
	}
	w.fill(ids...)
	w.Work(jobs.Config{})
	few := w.must(http.StatusAccepted, "POST", recompactions, `{"filter":{"sessions":["`+strings.Join(ids[:9], `","`)+`"]}}`)
	w.ended(few.Header().Get("Location"))
	w.must(http.StatusAccepted, "POST", groups, fmt.Sprintf(`{"tenants":[%q],"policy":{"trigger":0.4,"target":0.1}}`, w.Tenant))
	want := []string{"started 0 0/0", "ended 0 9/9 done", "started 0 0/0"}
	for tenth := 1; tenth <= 9; tenth++ {
		want = append(want, fmt.Sprintf("progress %d %d/20 running", 10*tenth, 2*tenth))
	}
	want = append(want, "ended 0 20/20 done")
	var got []string
	w.Until("all is told", func() bool {
		got = nil
		page := decoded[struct{ Data []session.Event }](w.must(http.StatusOK, "GET", "/v1/events?limit=500&types=recompaction.started,recompaction.progress,recompaction.ended", ""))
		for _, told := range page.Data {
			var d struct {
				State                                               string
				Percent, Total, Changed, Unchanged, Failed, Skipped int
			}
			if err := json.Unmarshal(told.Data, &d); err != nil {
				t.Fatal(err)
			}
			_, kind, _ := strings.Cut(string(told.Type), "recompaction.")
			done := d.Changed + d.Unchanged + d.Failed + d.Skipped
			got = append(got, strings.TrimSpace(fmt.Sprintf("%s %d %d/%d %s", kind, d.Percent, done, d.Total, d.State)))
		}
		return len(got) >= len(want) || len(got) > 3 && strings.HasPrefix(got[len(got)-1], "ended")
	})
	if !slices.Equal(got, want) {
		t.Errorf("events\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestAFilterNamesASubjectAsLongAsASessionOfItIsHeld erases a subject that a filter names, under a legal hold and without.
func TestAFilterNamesASubjectAsLongAsASessionOfItIsHeld(t *testing.T) {
	t.Parallel()
	w := newAsked(t)
	w.Work(jobs.Config{})
	const subject = `{"metadata":{"user_id":"u1"}}`
	for _, id := range []string{"a", "b"} {
		w.must(http.StatusCreated, "PUT", "/v1/sessions/"+id, subject)
	}
	w.must(http.StatusOK, "PUT", "/v1/sessions/a/hold", `{"reason":"case 7"}`)
	begun := w.must(http.StatusAccepted, "POST", recompactions, `{"filter":`+subject+`}`).Header().Get("Location")
	erased := func() (filter string, trail bool) {
		at := w.must(http.StatusAccepted, "POST", "/v1/erasures", subject).Header().Get("Location")
		w.Until("the erasure has ended", func() bool { return strings.Contains(w.Must(http.StatusOK, "GET", at, ""), `"state":"done"`) })
		return string(decoded[struct{ Filter json.RawMessage }](w.must(http.StatusOK, "GET", begun, "")).Filter),
			strings.Contains(w.Must(http.StatusOK, "GET", "/v1/audit?action=recompaction.start", ""), "u1")
	}
	if filter, trail := erased(); filter != subject || !trail {
		t.Errorf("a session is held: the filter is %s, in the trail %t", filter, trail)
	}
	w.must(http.StatusNoContent, "DELETE", "/v1/sessions/a/hold", "")
	if filter, trail := erased(); filter != `{"sessions":[]}` || trail { // one of nothing would be all sessions
		t.Errorf("no session is left: the filter is %s, in the trail %t", filter, trail)
	}
}
