package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/archive"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// export returns the answer of GET path, and the manifest at its end.
func (w *world) export(path string) (text, manifest string) {
	w.Helper()
	got := w.must(http.StatusOK, "GET", path, "")
	text = got.Body.String()
	if _, err := archive.Verify(strings.NewReader(text)); err != nil {
		w.Fatalf("%s: %v\n%s", path, err, text)
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	return text, lines[len(lines)-1]
}

// nasty are messages that a store which decodes and encodes them would change.
var nasty = []string{
	`{ "role" : "user",  "content":"spaces" }`,
	"{\n  \"role\": \"user\",\r\n\t\"content\": \"lines\"\n}",
	`{"role":"user","content":"\ud800 \udfff \u0000 \u0041 \/ é \u00e9 <&> \u2028` + "\u2028" + `"}`,
	`{"role":"user","content":"first","x":1,"x":2,"n":1.0e+2,"big":123456789012345678901234567890}`,
	`{"content":"\\n\\\"","role":"user","":{"a":[]}}`,
}

// fillNastily gives a tenant sessions of every kind.
func (w *world) fillNastily() {
	w.Helper()
	w.must(http.StatusOK, "PUT", "/v1/policy", `{"profile":"codelia","trigger":0.7, "target":0.4}`)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/a%2Fb%0A%22", `{"model":"gpt-4o","metadata":{"user":"u <1> \"é\"","b":""},"policy":{"target":0.3},"overhead_tokens":77}`)
	w.must(http.StatusCreated, "POST", "/v1/sessions/a%2Fb%0A%22/messages", `{"format":"openai-chat","messages":[`+strings.Join(nasty, ",")+`],"client_ids":["c1","c \"2\"",null,null,"é"]}`)
	w.must(http.StatusCreated, "POST", "/v1/sessions/a%2Fb%0A%22/messages", `{"messages":[{"role":"assistant","content":"ok"}],"usage":{"model":"m","input_tokens":1200,"output_tokens":5}}`)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/empty", `{"window_tokens":5000}`)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/claude", "")
	w.must(http.StatusCreated, "POST", "/v1/sessions/claude/messages", batch("anthropic",
		`{"role":"user","content":"go"}`, `{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"read","input":{}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}`, user("bye")))
	w.must(http.StatusCreated, "PUT", "/v1/sessions/mixed", "")
	for format, body := range map[string]string{
		"openai-responses": `{"type":"message","role":"user","content":"x"}`, "gemini": `{"role":"user", "parts":[{"text":"x"}]}`, "ai-sdk": `{"id":"m","role":"user","parts":[{"type":"text","text":"x"}]}`,
	} {
		w.must(http.StatusCreated, "POST", "/v1/sessions/mixed/messages", batch(format, body))
	}
	for session, refs := range map[string][]string{"a%2Fb%0A%22": {"m3", "m3.0"}, "claude": {"m3.0", "m1", "m2.0", "m4"}} {
		for _, ref := range refs {
			w.must(http.StatusOK, "PUT", "/v1/sessions/"+session+"/pins/"+ref, `{"note":"why <"}`)
		}
	}
	if _, _, err := w.store.Remove(w.Context(), session.Address{Tenant: w.tenant, ID: "claude"}, 4, nil); err != nil {
		w.Fatal(err)
	}
	w.exec(`UPDATE session_pins SET created_at = '2025-12-31T22:59:59.5Z' WHERE ref = 'm1'`)
	w.exec(`UPDATE messages SET created_at = '2025-12-31T23:59:59.123456Z' WHERE seq = 2`)
	w.exec(`UPDATE sessions SET created_at = '2025-12-30T23:59:59.5Z' WHERE id = 'claude'`)
}

func TestAnExportThatIsImportedIsExportedAgainAsItWas(t *testing.T) {
	t.Parallel()
	from, to := newWorld(t), newWorld(t)
	from.fillNastily()
	from.must(http.StatusOK, "PATCH", "/v1/admin/tenants/"+from.tenant.String(), `{"suspended":"writes"}`) // as docs/cells.md says
	from.server.ExpireKeys()
	text, manifest := from.export("/v1/export")
	got := decoded[protocol.Import](to.must(http.StatusCreated, "POST", "/v1/imports", text))
	if got.State != "succeeded" || got.Rejected != 0 || got.Sessions != 4 || got.Messages != 13 || *got.From != "varve" || *got.Progress.Total != got.Progress.Done {
		t.Fatalf("%+v", got)
	}
	again, manifestAgain := to.export("/v1/export")
	if diff := cmp.Diff(strings.Split(text, "\n"), strings.Split(again, "\n")); diff != "" || manifest != manifestAgain {
		t.Errorf("the second export (-first +second):\n%s", diff)
	}
	for _, id := range []string{"a%2Fb%0A%22", "empty", "claude", "mixed"} {
		one, _ := from.export("/v1/sessions/" + id + "/export")
		two, _ := to.export("/v1/sessions/" + id + "/export")
		if one != two {
			t.Errorf("%s\n%s\nis not\n%s", id, two, one)
		}
		for _, path := range []string{"/context", "/context?format=gemini", "/messages", "/pins"} {
			one := from.must(http.StatusOK, "GET", "/v1/sessions/"+id+path, "").Body.String()
			two := to.must(http.StatusOK, "GET", "/v1/sessions/"+id+path, "").Body.String()
			if one != two {
				t.Errorf("%s of %s\n%s\nis not\n%s", path, id, two, one)
			}
		}
	}
	next := to.must(http.StatusCreated, "POST", "/v1/sessions/claude/messages", batch("anthropic", user("more")))
	if !strings.Contains(next.Body.String(), `"first_seq":6`) {
		t.Errorf("the next message: %s", next.Body)
	}
	translated := to.must(http.StatusOK, "GET", "/v1/sessions/claude/context?format=openai-chat", "").Body.String()
	if strings.Contains(translated, "degraded") || !strings.Contains(translated, "more") {
		t.Errorf("the view behind an imported removal: %s", translated)
	}
}

func TestImportingAnExportAgainChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fillNastily()
	text, _ := w.export("/v1/export")
	got := decoded[protocol.Import](w.must(http.StatusCreated, "POST", "/v1/imports", text))
	if got.Rejected != 0 || got.Sessions != 0 || got.Messages != 0 || got.Duplicates != 13 {
		t.Errorf("%+v", got)
	}
	if again, _ := w.export("/v1/export"); again != text {
		t.Errorf("the second export is another:\n%s\n%s", text, again)
	}
}

func TestEveryLineOfAnImportHasAnAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "POST", "/v1/sessions", `{"id":"there","format":"openai-chat"}`)
	w.must(http.StatusCreated, "POST", "/v1/sessions/there/messages", `{"messages":[`+user("one")+`],"client_ids":["c1"]}`)
	message := func(more, body string) string {
		return `{"message":{"format":"openai-chat"` + more + `,"body":` + body + `}}`
	}
	lines := []struct{ line, want string }{
		{`{"session":{"id":"new","model":"gpt-4o"}}`, "created new"},
		{`{"session":{"id":"there","window_tokens":9000}}`, "exists there"},
		{message(`,"session":"new"`, user("1")), "stored new 1"},
		{message(`,"session":"new"`, user("2")), "stored new 2"},
		{message(`,"session":"new"`, `"{\"role\":\"user\",\n\"content\":\"3\"}"`), "stored new 3"},
		{message(`,"session":"there","seq":1,"client_id":"c1"`, user("one")), "duplicate there 1"},
		{message(`,"session":"there","client_id":"c1"`, user("one")), "duplicate there 1"},
		{message(`,"session":"there","seq":1,"client_id":"c1"`, user("other")), "rejected: the session has another message 1"},
		{message(`,"session":"there","client_id":"c1"`, user("other")), "rejected: the client_id names message 1 of the session, which is another"},
		{message(`,"session":"there","seq":4`, user("four")), "stored there 4"},
		{message(`,"session":"there","seq":3`, user("three")), "rejected: the session's last seq is 4, and it has no message 3: leave seq out to append it"},
		{`{"message":{"session":"mixed","format":"anthropic","body":` + user("a") + `}}`, "stored mixed 1"},
		{message(`,"session":"mixed"`, user("b")), "stored mixed 2"},
		{"", "skipped: the line is empty"},
		{`{"message":`, "rejected: the line is not JSON: byte 11: the text ends, expected a value"},
		{`{"role":"user","content":"x"}`, "rejected: a line must be an object with one member, which is an object: export, tenant, session, message, end or manifest"},
		{`{"message":{"session":"new"}}`, "rejected: /format: format is missing: it must be openai-chat or anthropic or openai-responses or gemini or ai-sdk (and 1 more)"},
		{message(`,"session":"new","seq":0`, user("x")), "rejected: /seq: must be a whole number from 1 to 1000000, not 0"},
		{message(`,"session":"new"`, `{"role":7}`), "rejected: /body/role: "},
		{`{"session":{"id":"bad","window_tokens":1}}`, "rejected: /window_tokens: must be a whole number from 1000 to 10000000, not 1"},
		{`{"end":{"session":"new","last_seq":3,"messages":3,"sha256":"00"}}`, "rejected: the session has 3 messages by its end, but there are "},
		{`{"export":{"version":2}}`, "rejected: /export/version: must be a whole number from 1 to 1, not 2"},
		{`{"manifest":{"sessions":9}}`, "rejected: the manifest counts 9 sessions, there are 0"},
	}
	var body strings.Builder
	for _, l := range lines {
		body.WriteString(l.line + "\n")
	}
	done := decoded[protocol.Import](w.must(http.StatusCreated, "POST", "/v1/imports?from=varve", body.String()))
	if done.Progress.Done != int64(len(lines)) || done.Rejected != 12 || len(done.Rejections) != 10 || done.Messages != 6 || done.Duplicates != 2 || done.Sessions != 2 {
		t.Errorf("%+v", done)
	}
	var got []protocol.ImportedLine
	for next := int64(1); next > 0; {
		page := decoded[struct {
			Data []protocol.ImportedLine
			Next int64
		}](w.must(http.StatusOK, "GET", fmt.Sprintf("/v1/imports/%s/lines?limit=4&from=%d", done.ID, next), ""))
		got, next = append(got, page.Data...), page.Next
	}
	if len(got) != len(lines) {
		t.Fatalf("%d lines, want %d", len(got), len(lines))
	}
	for i, l := range got {
		text := string(l.Outcome)
		if l.Session != nil {
			text += " " + *l.Session
		}
		if l.Seq != nil {
			text += fmt.Sprint(" ", *l.Seq)
		}
		if l.Detail != "" {
			text = string(l.Outcome) + ": " + l.Detail
		}
		if l.Line != int64(i+1) || l.N != l.Line || !strings.HasPrefix(text, lines[i].want) {
			t.Errorf("line %d (%d): %s\ngot  %s\nwant %s", l.Line, l.N, lines[i].line, text, lines[i].want)
		}
	}
	rejected := w.must(http.StatusOK, "GET", "/v1/imports/"+done.ID.String()+"/lines?outcome=rejected&limit=1000", "")
	if n := strings.Count(rejected.Body.String(), `"rejected"`); n != 12 {
		t.Errorf("%d rejected lines", n)
	}
	again := decoded[protocol.Import](w.must(http.StatusCreated, "POST", "/v1/imports?from=varve", body.String()))
	if again.Messages != 0 || again.Duplicates != 8 {
		t.Errorf("the second time: %+v", again)
	}
}
