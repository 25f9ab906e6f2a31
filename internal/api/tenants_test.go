package api_test

import (
	"flag"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/api"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

const tenants = "/v1/admin/tenants"

// provision makes a tenant over HTTP. While the server has no room for it, it asks again, as clients do.
func (w *world) provision(body string) protocol.NewTenant {
	w.Helper()
	var got answer
	w.until("the server has room for a tenant", func() bool {
		got = w.ask("POST", tenants, body)
		return got.Code != http.StatusServiceUnavailable
	})
	if got.Code != http.StatusCreated {
		w.Errorf("%s: %d %s", body, got.Code, got.Body)
	}
	return decoded[protocol.NewTenant](got)
}

var provisioned = flag.Int("tenants", 60, "how many tenants TestManyTenantsAreProvisioned makes; the promise is of 1000 in a minute")

// TestManyTenantsAreProvisioned makes them with keys, quotas and policies, eight at a time, and says how long that took.
func TestManyTenantsAreProvisioned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all, atOnce := *provisioned, 8
	made := make([]protocol.NewTenant, all)
	began := time.Now()
	var group sync.WaitGroup
	for worker := range atOnce {
		group.Go(func() {
			for i := worker; i < all; i += atOnce {
				made[i] = w.provision(fmt.Sprintf(`{"name":"tenant %d","policy":{"target":0.4},"quotas":{"sessions":%d},"key":{"role":"admin"}}`, i, i+1))
			}
		})
	}
	group.Wait()
	t.Logf("%d tenants took %v", all, time.Since(began))
	seen, cursor := map[uuid.UUID]session.TenantDetails{}, ""
	for {
		page := decoded[protocol.List[session.TenantDetails]](w.must(http.StatusOK, "GET", tenants+"?limit=100"+cursor, ""))
		for _, tenant := range page.Data {
			seen[tenant.ID] = tenant
		}
		if !page.HasMore {
			break
		}
		cursor = "&cursor=" + *page.NextCursor
	}
	for i, m := range made {
		if got := seen[m.ID]; got.Name != m.Name || string(got.Quotas) != fmt.Sprintf(`{"sessions": %d}`, i+1) && string(got.Quotas) != fmt.Sprintf(`{"sessions":%d}`, i+1) || got.Usage.LiveKeys != 1 {
			t.Fatalf("tenant %d: %+v", i, got)
		}
	}
	last := made[all-1]
	policy := w.must(http.StatusOK, "GET", "/v1/policy", "", "Authorization", "Bearer "+last.Key.Text)
	if !strings.Contains(policy.Body.String(), `"target":0.4`) {
		t.Errorf("its policy is %s", policy.Body)
	}
}

// TestWhatAnOperatorDoesReachesEveryProcess suspends a tenant, rotates a key and revokes one where two processes believe
// in the keys. The promise is of three seconds, which are not measured on a busy machine, but shown.
func TestWhatAnOperatorDoesReachesEveryProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	there := *w
	there.server = api.New(api.Config{Store: openStore(t, pgtest.API(w.dsn)), Operators: w.admin, Log: w.server.Log, Gate: w.server.Gate})
	made := w.provision(`{"name":"seen by two","key":{"role":"admin"}}`)
	path := tenants + "/" + made.ID.String()
	key := func() protocol.NewKey {
		return decoded[protocol.NewKey](w.must(http.StatusCreated, "POST", path+"/keys", `{"role":"viewer"}`))
	}
	revoked, rotated := key(), key()
	for _, step := range []struct {
		name, key, method, path, body string
		code                          int
		why                           string
	}{
		{"revoke", revoked.Text, "DELETE", path + "/keys/" + revoked.ID.String(), "", http.StatusUnauthorized, "unauthorized"},
		{"rotate", rotated.Text, "POST", path + "/keys/" + rotated.ID.String() + "/rotate", `{"overlap_seconds":0}`, http.StatusUnauthorized, "unauthorized"},
		{"suspend", made.Key.Text, "PATCH", path, `{"suspended":"all"}`, http.StatusForbidden, "tenant_suspended"},
		{"resume", made.Key.Text, "PATCH", path, `{"suspended":null}`, http.StatusOK, ""},
		{"delete", made.Key.Text, "DELETE", path + "?confirm=" + made.ID.String(), "", http.StatusForbidden, "tenant_suspended"},
	} {
		if step.name != "resume" {
			for _, process := range []*world{w, &there} {
				process.until("the process believes in the key", func() bool {
					code, _ := process.code(step.key, "GET", "/v1/sessions", "")
					return code == http.StatusOK
				})
			}
		}
		if got := w.ask(step.method, step.path, step.body); got.Code >= http.StatusMultipleChoices {
			t.Fatalf("%s: %d %s", step.name, got.Code, got.Body)
		}
		began := time.Now()
		for _, process := range []*world{w, &there} {
			process.until(step.name+" is seen", func() bool {
				code, why := process.code(step.key, "GET", "/v1/sessions", "")
				return code == step.code && why == step.why
			})
		}
		t.Logf("%s: seen by both processes after %v", step.name, time.Since(began))
	}
}

func TestTenantsThatCannotBe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.provision(`{"name":"taken"}`)
	for body, advice := range map[string]string{
		`{}`:                                           "needs a name",
		`{"name":""}`:                                  "1 to 255 bytes",
		`{"name":"a\u0007"}`:                           "no characters that control a terminal",
		`{"name":"a\u202eb"}`:                          "or the direction of text",
		`{"name":"e\u0301"}`:                           "Unicode's form NFC",
		`{"name":"x","id":"7"}`:                        "must be a UUID",
		`{"name":"x","quotas":{"sesions":1}}`:          "sesions",
		`{"name":"x","quotas":{"sessions":-1}}`:        "0, which bounds nothing, or more",
		`{"name":"x","quotas":[]}`:                     "must be an object",
		`{"name":"x","quotas":{"sessions":null}}`:      "must be a number, not null",
		`{"name":"x","quotas":{"sessions":1.5}}`:       "must be a whole number",
		`{"name":"x","quotas":{"SESSIONS":1}}`:         "is not known here",
		`{"name":"x","policy":{"target":7}}`:           "target",
		`{"name":"x","key":{}}`:                        "at least one scope or a role",
		`{"name":"taken"}`:                             "tenant_exists",
		`{"name":"x","id":"` + made.ID.String() + `"}`: "tenant_exists",
	} {
		if got := w.ask("POST", tenants, body); got.Code/100 != 4 || !strings.Contains(got.Body.String(), advice) {
			t.Errorf("%s: %d %s", body, got.Code, got.Body)
		}
	}
	if n := w.count(`SELECT count(*) FROM tenants WHERE name = 'x'`); n != 0 {
		t.Errorf("%d tenants were made by requests that failed", n)
	}
	other := w.provision(`{"name":"other","id":"` + uuid.NewString() + `"}`)
	for body, advice := range map[string]string{`{"name":"taken"}`: "tenant_exists", `{"suspended":"x"}`: "reads, writes, all", `{"suspended":7}`: "must be a string", `{"id":"x"}`: "is not known"} {
		if got := w.ask("PATCH", tenants+"/"+other.ID.String(), body); got.Code/100 != 4 || !strings.Contains(got.Body.String(), advice) {
			t.Errorf("%s: %d %s", body, got.Code, got.Body)
		}
	}
	for _, missing := range []string{uuid.NewString(), "x"} {
		for _, route := range []string{"GET ", "GET /policy", "GET /keys", "DELETE /keys/" + uuid.NewString()} {
			method, path, _ := strings.Cut(route, " ")
			if got := w.must(http.StatusNotFound, method, tenants+"/"+missing+path, ""); !strings.Contains(got.Body.String(), "no such tenant") {
				t.Errorf("%s of %s: %s", route, missing, got.Body)
			}
		}
	}
}

// TestAnOperatorDoesATenantsWork gives a tenant another policy, and makes, rotates and revokes its keys.
func TestAnOperatorDoesATenantsWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.provision(`{"name":"a"}`)
	at := tenants + "/" + made.ID.String()
	if made.Key != nil {
		t.Errorf("a key that nobody asked for: %+v", made)
	}
	key := decoded[protocol.NewKey](w.must(http.StatusCreated, "POST", at+"/keys", `{"role":"admin"}`))
	w.must(http.StatusOK, "PATCH", at+"/policy", `{"target":0.3}`)
	if got := w.must(http.StatusOK, "GET", "/v1/policy", "", "Authorization", "Bearer "+key.Text); !strings.Contains(got.Body.String(), `"target":0.3`) {
		t.Errorf("the tenant's policy: %s", got.Body)
	}
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "", "Authorization", "Bearer "+key.Text)
	w.must(http.StatusOK, "PATCH", at, `{"name":"b","quotas":{"sessions":9}}`)
	got := decoded[session.TenantDetails](w.must(http.StatusOK, "GET", at, ""))
	if got.Name != "b" || got.Usage.Sessions != 1 || got.Usage.LiveKeys != 1 || !strings.Contains(string(got.Quotas), "9") {
		t.Errorf("%+v", got)
	}
	fresh := decoded[protocol.NewKey](w.must(http.StatusCreated, "POST", at+"/keys/"+key.ID.String()+"/rotate", `{"overlap_seconds":0}`))
	w.must(http.StatusNoContent, "DELETE", at+"/keys/"+fresh.ID.String(), "")
	w.server.ExpireKeys()
	for _, text := range []string{key.Text, fresh.Text} {
		w.must(http.StatusUnauthorized, "GET", "/v1/sessions", "", "Authorization", "Bearer "+text)
	}
	if keys := decoded[protocol.List[session.APIKey]](w.must(http.StatusOK, "GET", at+"/keys", "")); len(keys.Data) != 2 {
		t.Errorf("%+v", keys)
	}
	foreign := decoded[protocol.List[session.APIKey]](w.must(http.StatusOK, "GET", "/v1/keys", "")).Data[0].ID
	w.must(http.StatusNotFound, "DELETE", at+"/keys/"+foreign.String(), "")
}

// TestASuspensionReachesEveryProcess has another process that knows the tenant's key and token.
func TestASuspensionReachesEveryProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	there := *w
	there.server = api.New(api.Config{Store: openStore(t, pgtest.API(w.dsn)), Log: w.server.Log, Gate: w.server.Gate})
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	token := w.newToken("s", "").Text
	at := tenants + "/" + w.tenant.String()
	reads := func() (int, string) { return there.code(w.key, "GET", "/v1/sessions/s", "") }
	tokenReads := func() (int, string) { return there.code(token, "GET", "/v1/sessions/s/context", "") }
	writes := func() (int, string) { return there.code(w.key, "PATCH", "/v1/sessions/s", `{"metadata":{}}`) }
	for _, step := range []struct {
		suspended          string
		mayRead, mayChange bool
	}{{`"writes"`, true, false}, {`"reads"`, false, true}, {`"all"`, false, false}, {`null`, true, true}} {
		_, _ = reads()
		w.must(http.StatusOK, "PATCH", at, `{"suspended":`+step.suspended+`}`)
		for name, act := range map[string]struct {
			do  func() (int, string)
			may bool
		}{"reads": {reads, step.mayRead}, "a token reads": {tokenReads, step.mayRead}, "writes": {writes, step.mayChange}} {
			began := time.Now()
			for ; ; time.Sleep(20 * time.Millisecond) {
				asked := time.Since(began)
				code, why := act.do()
				if act.may && code == http.StatusOK || !act.may && code == http.StatusForbidden && why == "tenant_suspended" {
					break
				}
				if asked > 3*time.Second {
					t.Fatalf("suspended %s: it %s after %v: %d %s", step.suspended, name, asked, code, why)
				}
			}
		}
	}
	if got := decoded[session.TenantDetails](w.must(http.StatusOK, "GET", at, "")); got.Suspended != nil || got.SuspendedAt != nil {
		t.Errorf("%+v", got)
	}
}
