package api_test

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestHostileRefsOverMCP asks for what a ref must not reach: other sessions', other tenants', paths, and 1,000 refs with one
// other character. None reaches anything but what its own session has under that name.
func TestHostileRefsOverMCP(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	own, theirs := "own line 7c1d\nof the session", "canary of another session "+secret
	ref := w.withResult("mine", own)
	foreign := w.withResult("other", theirs)
	other, otherKey := w.newTenant("other")
	tenant := *w
	tenant.tenant, tenant.key = other, otherKey
	unrelated := tenant.withResult("mine", "canary of another tenant "+secret) // the same id and the same place
	a := w.agent(t, w.serve(t), versions[0], bearer{token: w.newToken("mine", "").Text})
	refused := func(with map[string]any) {
		t.Helper()
		got := a.call("read_result", with)
		if text := textOf(got); !got.IsError || strings.Contains(text, secret) || strings.Contains(text, own) {
			t.Errorf("%v: %.300s", with, text)
		}
	}
	for _, hostile := range []string{foreign, unrelated, "", ".", "..", "../../other/results/" + foreign, "..%2fother", "/etc/passwd", "file:///etc/passwd", "other/" + foreign, foreign + "\x00", ref + "\n",
		" " + ref, strings.ToUpper(ref), "r3.0", "r3.0-", "r3.0-....", "r-1.0-0000", "r99999999999999999999.0-0000", "r3.99999999999-0000", "u1-0000", "m0", "m-1", "m999", "m2-1", "m1-99999999999999999999", "*", "%", "r3.0-%", "' OR 1=1 --"} {
		refused(map[string]any{"ref": hostile})
	}
	refused(map[string]any{"ref": ref, "session": "other"})
	refused(map[string]any{"ref": 3})
	const alphabet = "0123456789abcdefmruxz.-/% '"
	random := rand.New(rand.NewPCG(3, 9))
	others := 1000
	if testing.Short() {
		others = 200
	}
	for range others {
		i, c := random.IntN(len(ref)), alphabet[random.IntN(len(alphabet))]
		if changed := ref[:i] + string(c) + ref[i+1:]; changed != ref && changed[0] != 'm' {
			refused(map[string]any{"ref": changed})
		}
	}
	for name, with := range map[string]map[string]any{
		"search_session": {"query": "canary another session tenant"}, "grep_results": {"pattern": "canary"}, "list_results": {}, "get_messages": {"ref": "m1-999"}, "get_context": {},
	} {
		if text := textOf(a.call(name, with)); strings.Contains(text, secret) {
			t.Errorf("%s: %.300s", name, text)
		}
	}
	if text := textOf(a.call("read_result", map[string]any{"ref": ref})); !strings.Contains(text, own) {
		t.Errorf("its own result: %s", text)
	}
}
