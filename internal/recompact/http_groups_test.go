package recompact_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/recompact"
)

const groups = "/v1/admin/tenants/recompactions"

// groupIs waits until a group is as it is asked to be.
func (w *asked) groupIs(location string, so func(recompact.RecompactionGroup) bool) recompact.RecompactionGroup {
	w.Helper()
	var c recompact.RecompactionGroup
	w.Until("the group is as asked", func() bool {
		c = decoded[recompact.RecompactionGroup](w.must(http.StatusOK, "GET", location, ""))
		return so(c)
	})
	return c
}

// groupEnded waits for the end of a group.
func (w *asked) groupEnded(location string) recompact.RecompactionGroup {
	w.Helper()
	return w.groupIs(location, func(c recompact.RecompactionGroup) bool {
		for state := range c.States {
			if !state.Ended() {
				return false
			}
		}
		return true
	})
}

// as asks with the key of another tenant.
func (w *asked) as(key string, do func()) {
	own := w.Key
	w.Key = key
	do()
	w.Key = own
}

func TestAGroupRecompactsTheSessionsOfItsTenants(t *testing.T) {
	t.Parallel()
	w := newAsked(t)
	other, key := w.NewTenant("other")
	third, _ := w.NewTenant("third")
	w.fill("a", "b")
	w.as(key, func() { w.fill("a") })
	what := fmt.Sprintf(`"tenants":[%q,%q],"filter":{"min_tokens":100},"policy":{"trigger":0.4,"target":0.1}`, w.Tenant, other)
	dry := decoded[dryRun](w.must(http.StatusOK, "POST", groups, `{`+what+`,"dry_run":true}`))
	if dry.Sessions != 3 || dry.Sample.Sessions != 3 || dry.Sample.Changed != 3 || dry.Estimate.After >= dry.Context || dry.Token != "" {
		t.Errorf("%+v", dry)
	}
	const id = "0198f0c1-7c1e-7000-8000-0000000000aa"
	begun := w.must(http.StatusAccepted, "POST", groups, `{"id":"`+id+`",`+what+`}`)
	location := begun.Header().Get("Location")
	again := decoded[recompact.RecompactionGroup](w.must(http.StatusAccepted, "POST", groups, `{"id":"`+id+`",`+what+`}`))
	if rows := w.Count(`SELECT count(*) FROM recompactions`); location != groups+"/"+id || again.ID.String() != id || rows != 2 {
		t.Errorf("a second time: %+v, with %d recompactions", again, rows)
	}
	before := w.must(http.StatusOK, "GET", "/v1/sessions/a/context", "").Body.String()
	w.Work(jobs.Config{})
	found := w.groupEnded(location)
	if p := found.Progress; p.Total != 3 || p.Changed != 3 || found.States["done"] != 2 || found.TokensBefore != dry.Sample.Before || found.TokensAfter != dry.Sample.After {
		t.Errorf("%+v, but the dry run said %+v", found, dry)
	}
	for _, part := range found.Recompactions {
		list := decoded[listPage](w.must(http.StatusOK, "GET", fmt.Sprintf("/v1/admin/tenants/%s/recompactions/%s/sessions", part.Tenant, part.Recompaction), ""))
		if len(list.Data) != int(part.Progress.Total) {
			t.Errorf("%v, want %d sessions", list.Data, part.Progress.Total)
		}
		for _, route := range []string{"", "/sessions"} {
			got := w.must(http.StatusNotFound, "GET", fmt.Sprintf("/v1/admin/tenants/%s/recompactions/%s%s", third, part.Recompaction, route), "")
			if p := decoded[problem](got); !strings.Contains(p.Detail, "GET /v1/admin/tenants/recompactions/{group}") || strings.Contains(p.Detail, recompactions) {
				t.Errorf("an operator who asks the wrong tenant is told %q", p.Detail)
			}
		}
	}
	compared := decoded[struct {
		Sessions      int
		Before, After struct {
			View int64 `json:"view_tokens"`
		}
	}](w.must(http.StatusOK, "GET", location+"/comparison", ""))
	if compared.Sessions != 3 || compared.Before.View != found.TokensBefore || compared.After.View != found.TokensAfter {
		t.Errorf("%+v, want what the group says: %+v", compared, found)
	}
	w.must(http.StatusAccepted, "POST", location+"/rollback", "")
	found = w.groupEnded(location)
	if found.States["rolled_back"] != 2 || found.Progress.RolledBack != 3 {
		t.Errorf("%+v", found)
	}
	messages := func(view string) string { return view[strings.Index(view, `"messages"`):] }
	if after := w.must(http.StatusOK, "GET", "/v1/sessions/a/context", "").Body.String(); messages(after) != messages(before) {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
}

// TestWhatIsDoneWithARecompactionIsAuditedOnce: with a group, for each of its two tenants, and in the operators' chain.
func TestWhatIsDoneWithARecompactionIsAuditedOnce(t *testing.T) {
	t.Parallel()
	w := newAsked(t)
	w.NewTenant("other")
	for path, want := range map[string]int{groups: 3, "/v1/admin/recompactions": 1} {
		location := path
		asked := func(control string) int {
			before := w.Count(`SELECT count(*) FROM audit_trail`)
			got := w.ask("POST", location+control, "")
			if got.Code >= http.StatusBadRequest {
				t.Fatalf("%s%s: %d %s", path, control, got.Code, got.Body)
			}
			location = path + "/" + decoded[struct{ ID string }](got).ID
			return w.Count(`SELECT count(*) FROM audit_trail`) - before
		}
		rows := []int{asked("")}
		for _, control := range []string{"/pause", "/resume", "/cancel", "/rollback"} {
			rows = append(rows, asked(control), asked(control))
		}
		if !slices.Equal(rows, []int{want, want, 0, want, 0, want, 0, want, 0}) {
			t.Errorf("%s: what was begun, and all that was done with it, twice, wrote %v rows", path, rows)
		}
	}
}

func TestWhatIsWrongWithAGroup(t *testing.T) {
	t.Parallel()
	w := newAsked(t)
	for body, pointer := range map[string]string{
		`{"tenants":[]}`:       "/tenants",
		`{"tenants":["acme"]}`: "/tenants/0",
		`{"tenants":["0198f0c1-7c1e-7000-8000-0000000000ff"]}`: "/tenants",
		`{"id":"x"}`:       "/id",
		`{"per_minute":0}`: "/per_minute",
		`{"hours":{"from":"22:00","to":"22:00"}}`:                 "/hours/to",
		`{"hours":{"from":"1","to":"22:00"}}`:                     "/hours/from",
		`{"hours":{"from":"21:00","to":"22:00","time_zone":"x"}}`: "/hours/time_zone",
		`{"start_at":"soon"}`:                                     "/start_at",
		`{"filter":{"format":"morse"}}`:                           "/filter/format",
		`{"filter":{"model":""}}`:                                 "/filter/model",
		`{"policy":{"trigger":2}}`:                                "/policy/trigger",
		`{"policy":{"summarise":{"model":"hiaku"}}}`:              "/policy/summarise/model",
		`{"policy":{},"ask":true}`:                                "/ask",
	} {
		got := w.must(http.StatusUnprocessableEntity, "POST", groups, body)
		p := decoded[problem](got)
		if len(p.Errors) == 0 || p.Errors[0].Pointer != pointer {
			t.Errorf("%s: %s", body, got.Body)
		}
	}
	if rows := w.Count(`SELECT count(*) FROM recompactions`); rows != 0 {
		t.Errorf("%d groups began", rows)
	}
}

// The id of a group is that of its body: another body is refused, and begins and changes nothing.
func TestTheIDOfAGroupIsForOneBody(t *testing.T) {
	t.Parallel()
	w := newAsked(t)
	other, _ := w.NewTenant("other")
	with := func(id, more string) string {
		return `{"id":"0198f0c1-7c1e-7000-8000-0000000000` + id + `","filter":{"metadata":{"a":"1","b":"2"}},"policy":{"trigger":0.4}` + more + `}`
	}
	own, both := fmt.Sprintf(`,"tenants":[%q]`, w.Tenant), fmt.Sprintf(`,"tenants":[%q,%q]`, other, w.Tenant)
	w.must(http.StatusAccepted, "POST", groups, with("aa", own))
	w.must(http.StatusAccepted, "POST", groups, with("bb", ""))
	w.NewTenant("younger")
	for _, same := range []string{
		with("aa", own), with("bb", ""), with("bb", both),
		strings.Replace(with("aa", own), `{"a":"1","b":"2"}`, `{ "b":"2", "a":"1"}`, 1),
		strings.Replace(with("aa", own), `"trigger":0.4`, `"trigger" : 0.4`, 1),
	} {
		w.must(http.StatusAccepted, "POST", groups, same)
	}
	before := w.Count(`SELECT count(*) FROM recompactions`)
	for _, another := range []string{
		with("aa", ""), with("aa", both), with("bb", own), with("aa", own+`,"max_running":3`), with("aa", own+`,"per_minute":7`),
		strings.Replace(with("aa", own), `"trigger":0.4`, `"trigger":0.5`, 1),
		strings.Replace(with("aa", own), `,"policy":{"trigger":0.4}`, ``, 1),
		strings.Replace(with("aa", own), `,"policy":{"trigger":0.4}`, `,"ask":true`, 1),
		strings.Replace(with("aa", own), `"a":"1",`, ``, 1),
		strings.Replace(with("aa", own), `"filter":{`, `"filter":{"failing":true,`, 1),
	} {
		got := w.ask("POST", groups, another)
		if p := decoded[problem](got); got.Code != http.StatusUnprocessableEntity || p.Code != "idempotency_key_reused" || !strings.Contains(p.Detail, "a recompaction with this id") {
			t.Errorf("%s: %d %s", another, got.Code, got.Body)
		}
	}
	if rows := w.Count(`SELECT count(*) FROM recompactions`); rows != before {
		t.Errorf("%d recompactions were begun", rows-before)
	}
}
