package replays_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/uuid"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/replays"
)

const all = "/v1/admin/replays"

// replayed is a replay as callers decode it.
type replayed struct {
	ID       uuid.UUID
	State    string
	Policies []struct {
		Name, Source string
		Policy       json.RawMessage
	}
	Windows     []int
	Sample      int
	Seed        int64
	MaxMessages int64 `json:"max_messages"`
	Progress    struct {
		Matched, Total, Done, Measured, Failed, Outcomes int
		TooShort                                         int `json:"too_short"`
		Skipped                                          []replays.ReplaySkip
	}
	Error    *string
	Finished *time.Time `json:"finished_at"`
}

// answersEnded waits until the replay at a location has ended.
func (w *world) answersEnded(location string) (r replayed) {
	w.Helper()
	up := time.After(15 * time.Minute) // for a machine that has much else to do
	for r.Finished == nil {
		select {
		case <-up:
			w.Fatalf("the replay does not end: %+v", r)
		case <-time.After(10 * time.Millisecond):
		}
		r = decoded[replayed](w.MustAnswer(http.StatusOK, "GET", location, ""))
	}
	return r
}

func TestAReplayMeasuresPoliciesOverStoredSessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Work(jobs.Config{})
	for _, id := range []string{"a", "b", "c"} {
		w.turns(w.sessionOf(id, 20_000), 12, 500) // they fill a window of 6,000 tokens, below their own trigger
	}
	w.append(w.session("tiny"), []byte(`{"role":"user","content":"hi"}`))
	made := w.MustAnswer(http.StatusAccepted, "POST", all, `{"policies":["tenant",{"name":"lean","policy":{"target":0.2}},"never"],"windows":[6000],"max_messages":500}`)
	location := made.Header().Get("Location")
	r := w.answersEnded(location)
	p := r.Progress
	if r.State != "done" || p.Matched != 4 || p.TooShort != 1 || p.Total != 3 || p.Done != 3 || p.Measured != 3 || p.Outcomes != 9 || p.Failed != 0 {
		t.Errorf("%+v", r)
	}
	if r.Sample != 200 || r.Seed != 1 || r.MaxMessages != 500 || !slices.Equal(r.Windows, []int{6000}) || len(r.Policies) != 3 {
		t.Errorf("%+v", r)
	}
	if lean := r.Policies[1]; lean.Name != "lean" || lean.Source != "document" || string(lean.Policy) != `{"target":0.2}` || r.Policies[0].Source != "tenant" || r.Policies[2].Source != "yardstick" {
		t.Errorf("%+v", r.Policies)
	}
	for format, want := range map[string]string{
		"json": `{"baseline":"tenant"`, "csv": ",", "text": "Window of 6000 tokens: 3 sessions", "svg": "<svg",
	} {
		if got := w.MustAnswer(http.StatusOK, "GET", location+"/report?format="+format, "").Body.String(); !strings.HasPrefix(got, want) && format != "csv" || !strings.Contains(got, want) {
			t.Errorf("%s: %s", format, got)
		}
	}
	w.MustAnswer(http.StatusUnprocessableEntity, "GET", location+"/report?format=pdf", "")
	w.MustAnswer(http.StatusOK, "GET", location+"/report", "")
	list := decoded[listPage](w.MustAnswer(http.StatusOK, "GET", location+"/sessions?limit=2", ""))
	if len(list.Data) != 2 || !list.HasMore || list.Data[0]["state"] != "measured" || list.Data[0]["outcomes"] != 3.0 {
		t.Errorf("%+v", list)
	}
	more := decoded[listPage](w.MustAnswer(http.StatusOK, "GET", location+"/sessions?limit=2&cursor="+*list.NextCursor, ""))
	if len(more.Data) != 1 || more.Data[0]["session"] == list.Data[1]["session"] {
		t.Errorf("%+v", more)
	}
}

func TestAReplayIsBegunOnceAndCancelled(t *testing.T) {
	t.Parallel()
	w := newWorld(t) // without a worker
	body := `{"policies":["default"]}`
	made := w.MustAnswer(http.StatusAccepted, "POST", all, body, "Idempotency-Key", "k")
	again := w.MustAnswer(http.StatusAccepted, "POST", all, body, "Idempotency-Key", "k")
	if made.Body.String() != again.Body.String() || again.Header().Get("Idempotent-Replayed") != "true" {
		t.Errorf("%s and %s", made.Body, again.Body)
	}
	if p := decoded[problem](w.MustAnswer(http.StatusConflict, "POST", all, body)); p.Code != "replay_live" {
		t.Errorf("%+v", p)
	}
	location := made.Header().Get("Location")
	if p := decoded[problem](w.MustAnswer(http.StatusNotFound, "GET", location+"/report", "")); !strings.Contains(p.Detail, "made at the end") {
		t.Errorf("%+v", p)
	}
	for range 2 { // the second changes nothing
		if r := decoded[replayed](w.MustAnswer(http.StatusOK, "POST", location+"/cancel", "")); r.State != "cancelled" || r.Finished == nil {
			t.Errorf("%+v", r)
		}
	}
	if n := w.Count(`SELECT count(*) FROM audit_trail WHERE action = 'replay.cancel'`); n != 1 {
		t.Errorf("%d rows of the trail say that it was cancelled", n)
	}
	w.MustAnswer(http.StatusAccepted, "POST", all, body)
	if list := decoded[listPage](w.MustAnswer(http.StatusOK, "GET", all, "")); len(list.Data) != 2 || list.Data[0]["state"] != "queued" {
		t.Errorf("%+v", list)
	}
}

func TestWhatIsWrongWithAReplayIsSaidByField(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	seventeen := `"default"` + strings.Repeat(`,"x"`, 16)
	for body, want := range map[string]string{
		`{}`:                                             "/policies: is missing",
		`{"policies":[]}`:                                "/policies: must contain 1 to 16",
		`{"policies":"default"}`:                         "/policies: must be an array",
		`{"policies":[` + seventeen + `]}`:               "/policies: must contain 1 to 16 policies, not 17",
		`{"policies":["defalt"]}`:                        `/policies/0: there is no policy "defalt": did you mean "default"?`,
		`{"policies":["tenant@7"]}`:                      "/policies/0: the tenant's policy has no version 7",
		`{"policies":["tenant@07"]}`:                     `/policies/0: there is no policy "tenant@07"`,
		`{"policies":[1]}`:                               "/policies/0: must be the name of a policy",
		`{"policies":[{"policy":{}}]}`:                   "/policies/0/name: is missing",
		`{"policies":[{"name":" ","policy":{}}]}`:        "/policies/0/name: the name must not be empty",
		`{"policies":[{"name":"never","policy":{}}]}`:    "/policies/0/name: \"never\" is the name of another policy",
		`{"policies":[{"name":"tenant@9","policy":{}}]}`: "/policies/0/name: \"tenant@9\" is the name of another policy",
		`{"policies":["default",{"name":"a","policy":{"targt":0.5}}]}`:                                           "/policies/1/policy/targt: ",
		`{"policies":[{"name":"a","policy":{"target":7}}]}`:                                                      "/policies/0/policy/target: ",
		`{"policies":[{"name":"a","policy":7}]}`:                                                                 "/policies/0/policy: must be an object, not a number",
		`{"policies":["default","default"]}`:                                                                     `/policies/1: "default" is there twice`,
		`{"policies":["default"],"windows":[]}`:                                                                  "/windows: must contain 1 to 16 windows, not 0",
		`{"policies":["default"],"windows":[10]}`:                                                                "/windows/0: must be a whole number from 1000",
		`{"policies":["default"],"windows":[2000,2000]}`:                                                         "/windows/1: the window 2000 is there twice",
		`{"policies":["default"],"sample":1001}`:                                                                 "/sample: must be a whole number from 1 to 1000",
		`{"policies":["default"],"sample":0}`:                                                                    "/sample: must be a whole number from 1 to 1000",
		`{"policies":["default"],"seed":-1}`:                                                                     "/seed: must be a whole number",
		`{"policies":["default"],"max_messages":0}`:                                                              "/max_messages: must be a whole number from 1 to 100000",
		`{"policies":["default"],"max_bytes":67108865}`:                                                          "/max_bytes: must be a whole number from 1 to 67108864",
		`{"policies":["default"],"filter":{"min_tokens":-1}}`:                                                    "/filter/min_tokens: ",
		`{"policies":["default"],"smaple":1}`:                                                                    "/smaple: ",
		`{"policies":["default","never","cortex"],"sample":1000,"windows":[1000,2000,3000,4000,5000,6000,7000]}`: "/sample: 1000 sessions × 3 policies × 7 windows are 21000 measurements",
	} {
		got := w.Ask("POST", all, body)
		p := decoded[problem](got)
		if len(p.Errors) == 0 {
			t.Errorf("%s: %d %s", body, got.Code, got.Body)
			continue
		}
		said := fmt.Sprintf("%s: %s", p.Errors[0].Pointer, p.Errors[0].Detail)
		if !strings.HasPrefix(said, want) || len(p.Errors) != 1 {
			t.Errorf("%s: %d %+v, want %s", body, got.Code, p.Errors, want)
		}
		if strings.Contains(want, "/policy/") && (got.Code != http.StatusUnprocessableEntity || p.Code != "invalid_request") {
			t.Errorf("%s: %d %s", body, got.Code, p.Code)
		}
	}
	if p := decoded[problem](w.MustAnswer(http.StatusForbidden, "POST", all, `{"policies":["default"],"tenant":"another"}`)); p.Code != "forbidden" || !strings.Contains(p.Detail, "leave tenant out") {
		t.Errorf("%+v", p)
	}
	if list := decoded[listPage](w.MustAnswer(http.StatusOK, "GET", all, "")); len(list.Data) != 0 {
		t.Errorf("%+v", list)
	}
	w.MustAnswer(http.StatusAccepted, "POST", all, `{"policies":["tenant@1"],"tenant":"`+w.Tenant.String()+`"}`)
}

func TestAnotherTenantsReplayIsLikeAMissingOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, stranger := w.NewTenant("stranger")
	theirs := w.MustAnswer(http.StatusAccepted, "POST", all, `{"policies":["default"]}`).Header().Get("Location")
	missing := all + "/" + uuid.NewString()
	for _, route := range []string{"GET ", "GET /sessions", "GET /report", "POST /cancel"} {
		method, end, _ := strings.Cut(route, " ")
		ask := func(location string) string {
			got := w.MustAnswer(http.StatusNotFound, method, location+end, "", "Authorization", "Bearer "+stranger)
			return strings.ReplaceAll(regexp.MustCompile(`req_[0-9a-f]{32}`).ReplaceAllString(got.Body.String(), "req"), location, "ID")
		}
		if a, b := ask(theirs), ask(missing); a != b {
			t.Errorf("%s: another's\n%s\nmissing\n%s", route, a, b)
		}
	}
	if list := decoded[listPage](w.MustAnswer(http.StatusOK, "GET", all, "", "Authorization", "Bearer "+stranger)); len(list.Data) != 0 {
		t.Errorf("%+v", list)
	}
}

// TestStoredSessionsAreReplayed runs the command line against the API.
func TestStoredSessionsAreReplayed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Work(jobs.Config{})
	server := httptest.NewServer(w.Server)
	t.Cleanup(server.Close)
	base, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b", "c"} {
		w.turns(w.sessionOf(id, 1_000_000), 20, 300)
	}
	varve := func(args ...string) string {
		t.Helper()
		var out strings.Builder
		var cli struct{ kong.Plugins }
		cli.Plugins = kong.Plugins{replays.Feature().Command}
		parsed, err := kong.Must(&cli).Parse(append([]string{"replay"}, args...))
		if err != nil {
			t.Fatal(err)
		}
		parsed.BindTo(t.Context(), (*context.Context)(nil))
		to := &command.Console{API: client.New(base, w.Key, io.Discard), Out: &out}
		connect := func() (*command.Console, error) { return to, nil }
		if err := parsed.Run(to, &command.Connecting{Console: connect, Out: &out}); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out.String())
		}
		return out.String()
	}
	shown := varve("--tenant="+w.Tenant.String(), `--policy={"target":0.3}`, "--policy=tenant", "--windows=4000")
	for _, part := range []string{"3 of 3: 3 measured, 0 failed", "measurements  6", "Window of 4000 tokens: 3 sessions"} {
		if !strings.Contains(shown, part) {
			t.Errorf("%q is not in\n%s", part, shown)
		}
	}
	fields := strings.Fields(strings.Split(varve("list"), "\n")[1])
	if got := varve("report", fields[0]); !strings.HasSuffix(shown, got) {
		t.Errorf("%s\nis not the end of\n%s", got, shown)
	}
	if got := varve("show", fields[0], "--sessions"); strings.Count(got, "measured") != 3 {
		t.Errorf("%s", got)
	}
	if got := varve("cancel", fields[0]); !strings.Contains(got, "done") {
		t.Errorf("%s", got)
	}
}

// A model that is not there is refused here, too, as wherever a policy is sent.
func TestAModelThatIsNotThereIsRefusedInAReplay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got := w.MustAnswer(http.StatusUnprocessableEntity, "POST", all, `{"policies":[{"name":"a","policy":{"summarise":{"model":"hiaku"}}}]}`)
	p := decoded[problem](got)
	if len(p.Errors) != 1 || p.Errors[0].Pointer != "/policies/0/policy/summarise/model" {
		t.Errorf("%+v", p.Errors)
	}
}
