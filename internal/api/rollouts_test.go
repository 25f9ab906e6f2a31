package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

const rollouts = "/v1/policy/rollouts"

// rollOut starts a rollout of a policy with this target, and returns its path.
func (w *world) rollOut(target float64, perMille int) string {
	w.Helper()
	body := fmt.Sprintf(`{"policy":{"target":%v},"per_mille":%d,"guard":{"factor":2.5,"min_compactions":200}}`, target, perMille)
	return w.must(http.StatusCreated, "POST", rollouts, body).Header().Get("Location")
}

func (w *world) changeDuringRollout() answer {
	path := w.rollOut(0.2, 10)
	refused := w.ask("PUT", "/v1/policy", `{"target":0.25}`)
	w.must(http.StatusOK, "POST", path+"/back", "")
	return refused
}

func (w *world) promoteAfterBack() answer {
	path := w.rollOut(0.2, 10)
	w.must(http.StatusOK, "POST", path+"/back", "")
	return w.ask("POST", path+"/promote", "")
}

func (w *world) promoteTooEarly() answer {
	path := w.rollOut(0.2, 10)
	w.must(http.StatusOK, "PATCH", path, `{"min_sessions":3}`)
	refused := w.ask("POST", path+"/promote", "")
	w.must(http.StatusOK, "POST", path+"/back", "")
	return refused
}

// tenantVersions returns by session which version of the tenant's policy GET shows.
func (w *world) tenantVersions(ids []string) map[string]int {
	w.Helper()
	found := map[string]int{}
	for _, id := range ids {
		found[id] = decoded[protocol.Session](w.must(http.StatusOK, "GET", "/v1/sessions/"+id, "")).PolicyVersion.Tenant
	}
	return found
}

func TestARolloutGivesItsVersionToItsShareOfTheSessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var ids []string
	for i := range 60 {
		ids = append(ids, fmt.Sprint("s", i))
		w.must(http.StatusCreated, "PUT", "/v1/sessions/"+ids[i], "")
	}
	w.must(http.StatusCreated, "PUT", "/v1/sessions/own", `{"policy":{"target":0.2}}`)
	path := w.rollOut(0.25, 300)
	count := func(found map[string]int, version int) (n int) {
		for _, v := range found {
			if v == version {
				n++
			}
		}
		return n
	}
	few := w.tenantVersions(ids)
	if n := count(few, 2); n < 5 || n > 35 || n+count(few, 1) != 60 {
		t.Errorf("%d of 60 sessions have the version, at 300 of 1,000", n)
	}
	if own := w.tenantVersions([]string{"own"}); own["own"] != 1 {
		t.Errorf("a session with its own policy: %v", own)
	}
	w.must(http.StatusOK, "PATCH", path, `{"per_mille":700}`)
	more := w.tenantVersions(ids)
	for id, v := range few {
		if v == 2 && more[id] != 2 {
			t.Errorf("%s lost the version when the share grew", id)
		}
	}
	if count(more, 2) <= count(few, 2) {
		t.Errorf("%d sessions of 60 at 700, %d at 300", count(more, 2), count(few, 2))
	}
	for _, id := range ids { // the policy's own route and its sources say the same
		p := decoded[protocol.Policy](w.must(http.StatusOK, "GET", "/v1/sessions/"+id+"/policy", ""))
		want := map[int]string{1: `"target":0.3`, 2: `"target":0.25`}[more[id]]
		if p.Version.Tenant != more[id] || !strings.Contains(string(p.Effective), want) {
			t.Errorf("%s: version %d, %s", id, p.Version.Tenant, p.Effective)
		}
		if source := p.Sources["/target"]; (source == "tenant") != (more[id] == 2) {
			t.Errorf("%s: the target is of %s", id, source)
		}
	}
	w.must(http.StatusOK, "POST", path+"/promote", "")
	if n := count(w.tenantVersions(append(ids, "own")), 2); n != 61 {
		t.Errorf("%d of 61 sessions have the version after it was promoted", n)
	}
	if p := decoded[protocol.Policy](w.must(http.StatusOK, "GET", "/v1/policy", "")); p.Version.Tenant != 2 || string(p.Patch) != `{"target":0.25}` {
		t.Errorf("the default is version %d: %s", p.Version.Tenant, p.Patch)
	}
}

func TestAVersionThatWentBackIsNoOnesAndItsNumberIsUsedUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	path := w.rollOut(0.25, 1000)
	if v := w.tenantVersions([]string{"s"})["s"]; v != 2 {
		t.Errorf("version %d at all sessions", v)
	}
	ended := decoded[session.Rollout](w.must(http.StatusOK, "POST", path+"/back", ""))
	if ended.State != session.RolloutBack || ended.EndedAt == nil || w.tenantVersions([]string{"s"})["s"] != 1 {
		t.Errorf("%+v, version %d", ended, w.tenantVersions([]string{"s"})["s"])
	}
	w.must(http.StatusOK, "PUT", "/v1/policy", `{"target":0.2}`)
	if v := w.tenantVersions([]string{"s"})["s"]; v != 3 {
		t.Errorf("the next change is version %d", v)
	}
	again := decoded[session.Rollout](w.must(http.StatusCreated, "POST", rollouts, `{"version":2,"per_mille":1000}`))
	if p := decoded[protocol.Policy](w.must(http.StatusOK, "GET", "/v1/sessions/s/policy", "")); again.BaseVersion != 3 || again.Version != 4 || string(p.Patch) != `{}` && !strings.Contains(string(p.Effective), `"target":0.25`) {
		t.Errorf("%+v, %s", again, p.Effective)
	}
}

func TestARolloutIsChangedByWhomKnowsIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusPreconditionFailed, "POST", rollouts, `{"policy":{"target":0.2},"per_mille":10}`, "If-Match", `"7"`)
	made := w.must(http.StatusCreated, "POST", rollouts, `{"policy":{"target":0.2},"per_mille":10}`, "If-Match", `"1"`)
	path, tag := made.Header().Get("Location"), made.Header().Get("Etag")
	w.must(http.StatusConflict, "POST", rollouts, `{"policy":{"target":0.21},"per_mille":10}`)
	w.must(http.StatusOK, "PATCH", path, `{"per_mille":20}`, "If-Match", tag)
	for _, step := range []struct{ method, path, body string }{
		{"PATCH", path, `{"per_mille":30}`}, {"POST", path + "/promote", ""}, {"POST", path + "/back", ""},
	} {
		w.must(http.StatusPreconditionFailed, step.method, step.path, step.body, "If-Match", tag)
	}
	found := w.must(http.StatusOK, "GET", path, "")
	if r := decoded[protocol.Rollout](found); r.PerMille != 20 || r.State != session.RolloutRunning {
		t.Errorf("%+v", r)
	}
	for _, step := range []struct{ body, guard string }{
		{`{"guard":{"factor":3}}`, `"guard":{"factor":3,"min_compactions":100}`},
		{`{"min_sessions":0}`, `"guard":{"factor":3,"min_compactions":100}`}, {`{"guard":null}`, `"guard":null`},
	} {
		if found = w.must(http.StatusOK, "PATCH", path, step.body); !strings.Contains(found.Body.String(), step.guard) {
			t.Errorf("after %s: %s", step.body, found.Body)
		}
	}
	w.must(http.StatusUnprocessableEntity, "PATCH", path, `{"guard":{"factor":0.5}}`)
	if rows := w.trail("action=rollout.change"); !strings.HasSuffix(string(rows[2].After), `"guard":{"factor":3,"min_compactions":100}}`) {
		t.Errorf("the trail has %s", rows[2].After)
	}
	w.must(http.StatusOK, "POST", path+"/promote", "", "If-Match", found.Header().Get("Etag"))
	w.must(http.StatusConflict, "POST", path+"/back", "")
	w.must(http.StatusUnprocessableEntity, "POST", rollouts, `{"policy":{"target":0.2},"per_mille":10}`)
	w.must(http.StatusOK, "POST", w.rollOut(0.27, 10)+"/back", "")
	var told []session.EventType
	for _, e := range decoded[protocol.List[session.Event]](w.must(http.StatusOK, "GET", "/v1/events", "")).Data {
		told = append(told, e.Type)
	}
	if got := fmt.Sprint(told); got != "[rollout.started rollout.promoted rollout.started rollout.back]" {
		t.Errorf("it is told %s", got)
	}
	w.must(http.StatusUnprocessableEntity, "POST", rollouts, `{"version":9,"per_mille":10}`)
}
