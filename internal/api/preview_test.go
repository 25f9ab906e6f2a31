package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// reading returns a turn in which an agent reads a file of about this number of tokens.
func reading(n, tokens int) []string {
	line := fmt.Sprintf("line of file %d with some text in it\\n", n)
	return []string{
		fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":"Read","arguments":"{\"path\":\"f%d\"}"}}]}`, n, n),
		fmt.Sprintf(`{"role":"tool","tool_call_id":"c%d","content":"%s"}`, n, strings.Repeat(line, tokens*4/len(line)+1)),
	}
}

// conversation returns a user's question and the reading of files for it.
func conversation(files, tokens int) []string {
	messages := []string{user("read all files")}
	for n := range files {
		messages = append(messages, reading(n, tokens)...)
	}
	return messages
}

type previewed struct {
	From         string
	Through      int64 `json:"through_seq"`
	TokensBefore int64 `json:"tokens_before"`
	TokensAfter  int64 `json:"tokens_after"`
	WouldChange  bool  `json:"would_change"`
	Due          bool
	Reason       string
	Why          map[string]any
	Stages       json.RawMessage
	Actions      []map[string]any
	Report       map[string]any
	Units        []map[string]any
}

// manifest returns the loss manifest of a session's newest checkpoint.
func (w *world) manifest(id string) (actions []map[string]any) {
	w.Helper()
	err := postgres.InTenant(w.Context(), w.store.Pool(), w.tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
		var manifest []byte
		err := tx.QueryRow(w.Context(), `
			SELECT c.manifest
			  FROM sessions s
			  JOIN checkpoints c ON c.tenant_id = s.tenant_id AND c.session_key = s.key AND c.n = s.checkpoint_n
			 WHERE s.tenant_id = $1 AND s.id = $2`, [16]byte(w.tenant), id).Scan(&manifest)
		if err != nil {
			return err
		}
		return json.Unmarshal(manifest, &actions)
	})
	if err != nil {
		w.Fatal(err)
	}
	return actions
}

// compact compacts a session and returns the newest run that did something since the last one did, nil if none has: a
// policy that was just set may have asked for one already.
func (w *world) compact(id string, last int) *session.Run {
	w.Helper()
	w.must(http.StatusOK, "POST", "/v1/sessions/"+id+"/compact?wait=60", "")
	runs := decoded[struct{ Data []session.Run }](w.must(http.StatusOK, "GET", "/v1/sessions/"+id+"/runs", ""))
	for i := range runs.Data {
		if run := &runs.Data[i]; run.State == session.RunDone && *run.Checkpoint > last {
			return run
		}
	}
	return nil
}

func TestARunDoesWhatItsPreviewSaid(t *testing.T) {
	t.Parallel()
	const policy = `{"trigger":0.3,"target":0.2,"trim":{"hot_zone_min_tokens":1000},"protect":{"last_units":2}}`
	for name, policies := range map[string][]string{
		"under the session's policy":       {""},
		"under another policy":             {policy},
		"under two policies one by one":    {policy, `{"profile":"cortex","trigger":0.3,"hard":0.9,"target":0.1,"cache":{"ttl_seconds":0}}`},
		"under a more lenient one at last": {policy, `{"target":0.7,"trigger":0.8}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"window_tokens":20000,"policy":{"trigger":1,"hard":1}}`) // not due: nothing happens beside the preview
			w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", conversation(30, 500)...))
			w.work()
			for _, policy := range policies {
				w.previewAndCompact(policy)
			}
		})
	}
}

// previewAndCompact previews a policy, sets it, compacts, and compares.
func (w *world) previewAndCompact(policy string) {
	w.Helper()
	body := `{}`
	if policy != "" {
		body = `{"policy":` + policy + `}`
	}
	before := w.must(http.StatusOK, "GET", "/v1/sessions/s/context", "").Body.String()
	last := decoded[session.Session](w.must(http.StatusOK, "GET", "/v1/sessions/s", "")).Checkpoint
	preview := decoded[previewed](w.must(http.StatusOK, "POST", "/v1/sessions/s/preview?units=true&limit=1000", body))
	if after := w.must(http.StatusOK, "GET", "/v1/sessions/s/context", "").Body.String(); after != before {
		w.Error("the preview changed the view")
	}
	if policy != "" {
		w.must(http.StatusOK, "PATCH", "/v1/sessions/s", body)
	}
	run := w.compact("s", last)
	if preview.WouldChange != (run != nil) {
		w.Fatalf("would_change is %t, the run is %+v", preview.WouldChange, run)
	}
	if run == nil {
		return
	}
	if *run.TokensBefore != preview.TokensBefore || *run.TokensAfter != preview.TokensAfter || *run.Through != preview.Through {
		w.Errorf("preview %d → %d through %d, run %d → %d through %d", preview.TokensBefore, preview.TokensAfter, preview.Through,
			*run.TokensBefore, *run.TokensAfter, *run.Through)
	}
	if diff := cmp.Diff(preview.Actions, w.manifest("s")); diff != "" {
		w.Error(diff)
	}
	made := decoded[struct{ Data []map[string]any }](w.must(http.StatusOK, "GET", "/v1/sessions/s/context/units?limit=1000", "")).Data
	made = slices.DeleteFunc(made, func(u map[string]any) bool { return int64(u["last_seq"].(float64)) > preview.Through })
	if diff := cmp.Diff(preview.Units, made); diff != "" || len(made) == 0 {
		w.Errorf("%d units (-preview +run): %s", len(made), diff)
	}
	sum := int64(0)
	for _, a := range preview.Actions {
		sum += int64(a["tokens_before"].(float64) - a["tokens_after"].(float64))
	}
	if sum != preview.TokensBefore-preview.TokensAfter {
		w.Errorf("the manifest's sum is %d, the tokens go from %d to %d", sum, preview.TokensBefore, preview.TokensAfter)
	}
}

func TestAPreviewSaysWhetherACompactionIsDue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"window_tokens":20000,"policy":{"trigger":0.8,"idle":{"enabled":false}}}`)
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", conversation(20, 500)...))
	early := decoded[previewed](w.must(http.StatusOK, "POST", "/v1/sessions/s/preview", ""))
	if early.Due || !early.WouldChange || early.Why["decision"] != "postponed" || !strings.Contains(early.Reason, "not due") || early.From != "log" {
		t.Errorf("early: %s, %+v", early.Reason, early.Why)
	}
	small := decoded[previewed](w.must(http.StatusOK, "POST", "/v1/sessions/s/preview?actions=all", `{"policy":{"trigger":0.5,"target":0.3,"hard":0.6}}`))
	if !small.Due || !small.WouldChange || small.Why["decision"] != "now" || len(small.Actions) == 0 || !strings.Contains(small.Reason, "hard limit") {
		t.Errorf("small: %s, %+v", small.Reason, small.Why)
	}
	waiting := decoded[previewed](w.must(http.StatusOK, "POST", "/v1/sessions/s/preview", `{"policy":{"trigger":0.5,"target":0.3,"hard":1,"cache":{"ttl_seconds":3600}}}`))
	if !waiting.Due || waiting.Why["decision"] != "postponed" || !strings.Contains(waiting.Reason, "cold") {
		t.Errorf("waiting: %s, %+v", waiting.Reason, waiting.Why)
	}
	if runs := w.must(http.StatusOK, "GET", "/v1/sessions/s/runs", "").Body.String(); !strings.Contains(runs, `"data":[]`) {
		t.Errorf("a preview left runs: %s", runs)
	}
	if results := w.must(http.StatusOK, "GET", "/v1/sessions/s/results", "").Body.String(); !strings.Contains(results, `"data":[]`) {
		t.Errorf("a preview left results: %s", results)
	}
}

func TestAPreviewTellsAllThatIsWrongWithIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	got := decoded[problem](w.must(http.StatusUnprocessableEntity, "POST", "/v1/sessions/s/preview", `{"from":"now","policy":{"trigger":2,"hard":"x"}}`))
	if len(got.Errors) < 3 {
		t.Errorf("problems %+v", got.Errors)
	}
	w.must(http.StatusUnprocessableEntity, "POST", "/v1/sessions/s/preview?actions=some", "")
	w.must(http.StatusNotFound, "POST", "/v1/sessions/none/preview", "")
	w.must(http.StatusBadRequest, "POST", "/v1/sessions/s/preview", `{"form":"log"}`)
}
