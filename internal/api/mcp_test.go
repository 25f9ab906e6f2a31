package api_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/varve-dev/varve/internal/api"
	"github.com/varve-dev/varve/internal/session"
)

// versions are the newest protocol of MCP, which has no handshake, and two that have one.
var versions = []string{"2026-07-28", "2025-11-25", "2024-11-05"}

// bearer adds an agent's token to its requests.
type bearer struct{ token, session, origin string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range map[string]string{"Authorization": b.token, "X-Varve-Session": b.session, "Origin": b.origin} {
		if name == "Authorization" && value != "" {
			value = "Bearer " + value
		}
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	return http.DefaultTransport.RoundTrip(r)
}

// dial connects an agent to MCP.
func dial(t *testing.T, url, version string, as bearer) (*mcp.ClientSession, error) {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil)
	transport := &mcp.StreamableClientTransport{
		Endpoint: url, HTTPClient: &http.Client{Transport: as}, MaxRetries: -1, DisableStandaloneSSE: true,
	}
	return client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
}

// agent is a connected agent.
type agent struct {
	*testing.T
	*mcp.ClientSession
}

func (w *world) agent(t *testing.T, url, version string, as bearer) agent {
	t.Helper()
	found, err := dial(t, url, version, as)
	if err != nil {
		t.Fatalf("%s: %v", version, err)
	}
	t.Cleanup(func() { _ = found.Close() })
	return agent{t, found}
}

// call calls a tool.
func (a agent) call(name string, with any) *mcp.CallToolResult {
	a.Helper()
	result, err := a.CallTool(a.Context(), &mcp.CallToolParams{Name: name, Arguments: with})
	if err != nil {
		a.Fatalf("%s %v: %v", name, with, err)
	}
	return result
}

// must calls a tool that must answer, and returns its text and its structured answer.
func (a agent) must(name string, with any) (string, map[string]any) {
	a.Helper()
	result := a.call(name, with)
	if result.IsError {
		a.Fatalf("%s %v: %s", name, with, textOf(result))
	}
	structured, _ := result.StructuredContent.(map[string]any)
	return textOf(result), structured
}

func textOf(result *mcp.CallToolResult) string {
	text, _ := result.Content[0].(*mcp.TextContent)
	return text.Text
}

func (w *world) serve(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(w.server)
	t.Cleanup(server.Close)
	return server.URL + "/mcp"
}

// withResult makes a session of OpenAI's format with a call and its result.
func (w *world) withResult(id, result string) (ref string) {
	w.Helper()
	w.must(http.StatusCreated, "PUT", "/v1/sessions/"+id, `{"format":"openai-chat","window_tokens":128000}`)
	content, _ := json.Marshal(result)
	w.must(http.StatusCreated, "POST", "/v1/sessions/"+id+"/messages", `{"messages":[{"role":"user","content":"What does the log say?"},
		{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"Bash","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"c1","content":`+string(content)+`}]}`)
	return session.NewResultRef(3, 0, sha256.Sum256([]byte(result))).String()
}

// readAll reads to the end as every answer says, and holds each to the digest that all of them name.
func (a agent) readAll(name string, with any) string {
	a.Helper()
	var text, structured bytes.Buffer
	sum := ""
	for with != nil {
		answer, made := a.must(name, with)
		passage, content, ok := session.ParsePassage([]byte(answer))
		if sum == "" {
			sum = passage.SHA256
		}
		if !ok || passage.SHA256 != sum {
			a.Fatalf("the answer begins with %.200s", answer)
		}
		text.Write(content)
		structured.WriteString(made["content"].(string))
		name, with = nextCall(a.T, answer)
	}
	if hexSum(text.String()) != sum || hexSum(structured.String()) != sum {
		a.Errorf("%d bytes as text and %d structured have not the digest that the answers name", text.Len(), structured.Len())
	}
	return text.String()
}

func hexSum(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// nextCall returns the call that the last line of an answer says, nil arguments at the end.
func nextCall(t *testing.T, answer string) (name string, with any) {
	t.Helper()
	line := answer[strings.LastIndexByte(answer, '\n')+1:]
	if strings.HasPrefix(line, "[End of ") {
		return "", nil
	}
	call, ok := strings.CutPrefix(strings.TrimSuffix(line, "]"), "[There is more: ")
	name, arguments, _ := strings.Cut(call, " ")
	var decoded map[string]any
	if err := json.Unmarshal([]byte(arguments), &decoded); err != nil || !ok {
		t.Fatalf("the last line is %s: %v", line, err)
	}
	return name, decoded
}

// TestAnAgentHasTheToolsOfItsToken: always in the same order, and request_compaction with the scope for it alone.
func TestAnAgentHasTheToolsOfItsToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.withResult("s", "x")
	url := w.serve(t)
	reads := []string{"get_context", "get_messages", "grep_results", "list_results", "read_result", "search_session"}
	all := []string{"get_context", "get_messages", "grep_results", "list_results", "read_result", "request_compaction", "search_session"}
	for _, c := range []struct {
		as   bearer
		want []string
	}{
		{bearer{token: w.newToken("s", `{}`).Text}, reads},
		{bearer{token: w.newToken("s", `{"scopes":["read","compact"]}`).Text}, all},
		{bearer{token: w.key, session: "s"}, all},
	} {
		for _, version := range versions {
			a := w.agent(t, url, version, c.as)
			listed, err := a.ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, tool := range listed.Tools {
				names = append(names, tool.Name)
				hints := tool.Annotations
				if reads := tool.Name != "request_compaction"; hints.ReadOnlyHint != reads || *hints.OpenWorldHint || !hints.IdempotentHint ||
					!reads && *hints.DestructiveHint {
					t.Errorf("the hints of %s are %+v", tool.Name, hints)
				}
			}
			if !slices.Equal(names, c.want) {
				t.Errorf("%s: %v", version, names)
			}
			if len(c.want) == len(reads) {
				if _, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "request_compaction"}); err == nil {
					t.Error("a token that only reads asked for a compaction")
				}
			} else if text, _ := a.must("request_compaction", map[string]any{"reason": "done"}); !strings.Contains(text, "run ") {
				t.Error(text)
			}
		}
	}
}

// TestMCPRefusesWhoMayNot lets in who may, and nobody else.
func TestMCPRefusesWhoMayNot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.withResult("s", "x")
	w.withResult("other", "y")
	token, revoked, expired := w.newToken("s", `{}`).Text, w.newToken("s", ""), w.newToken("s", `{"name":"expired"}`).Text
	w.must(http.StatusNoContent, "DELETE", "/v1/sessions/s/tokens/"+revoked.ID.String(), "")
	w.exec(`UPDATE session_tokens SET created_at = now() - interval '2 h', expires_at = now() WHERE name = 'expired'`)
	_, foreign := w.newTenant("other")
	trusting := api.New(api.Config{Store: w.store, Log: slog.New(slog.DiscardHandler), Origins: []string{"https://chat.example"}})
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	for name, c := range map[string]struct {
		as      bearer
		server  http.Handler
		query   string
		version string
		method  string
		want    int
	}{
		"a token":                              {as: bearer{token: token}, want: 200},
		"a key and a session":                  {as: bearer{token: w.key, session: "s"}, want: 200},
		"a key and a session in the query":     {as: bearer{token: w.key}, query: "?session=s", want: 200},
		"a token and its session":              {as: bearer{token: token, session: "s"}, want: 200},
		"nothing":                              {want: 401},
		"no token":                             {as: bearer{token: "st_x"}, want: 401},
		"a revoked token":                      {as: bearer{token: revoked.Text}, want: 401},
		"an expired token":                     {as: bearer{token: expired}, want: 401},
		"a token for another session":          {as: bearer{token: token, session: "other"}, want: 403},
		"a token, another session in the path": {as: bearer{token: token}, query: "?session=other", want: 403},
		"a key without a session":              {as: bearer{token: w.key}, want: 422},
		"a key and two sessions":               {as: bearer{token: w.key, session: "s"}, query: "?session=other", want: 422},
		"a key and a session that is not":      {as: bearer{token: w.key, session: "none"}, want: 404},
		"another tenant's key":                 {as: bearer{token: foreign, session: "s"}, want: 404},
		"a foreign origin":                     {as: bearer{token: token, origin: "https://evil.example"}, want: 403},
		"a foreign origin without a token":     {as: bearer{origin: "https://evil.example"}, want: 403},
		"an origin that the settings trust":    {as: bearer{token: token, origin: "https://chat.example"}, server: trusting, want: 200},
		"another than the settings trust":      {as: bearer{token: token, origin: "https://evil.example"}, server: trusting, want: 403},
		"GET":                                  {as: bearer{token: token}, method: "GET", want: 405},
		"DELETE":                               {as: bearer{token: token}, method: "DELETE", want: 405},
		"a version that is none":               {as: bearer{token: token}, version: "1999-01-01", want: 400},
	} {
		if c.server == nil {
			c.server = w.server
		}
		if c.method == "" {
			c.method = "POST"
		}
		r := httptest.NewRequestWithContext(t.Context(), c.method, "/mcp"+c.query, strings.NewReader(list))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if c.version != "" {
			r.Header.Set("Mcp-Protocol-Version", c.version)
		}
		if c.as.token != "" {
			r.Header.Set("Authorization", "Bearer "+c.as.token)
		}
		for header, value := range map[string]string{"X-Varve-Session": c.as.session, "Origin": c.as.origin} {
			if value != "" {
				r.Header.Set(header, value)
			}
		}
		got := httptest.NewRecorder()
		c.server.ServeHTTP(got, r)
		if got.Code != c.want {
			t.Errorf("%s: %d, not %d: %s", name, got.Code, c.want, got.Body)
		}
		challenged := got.Header().Get("Www-Authenticate") != ""
		if should := got.Code == 401 || got.Code == 403 && c.as.origin == ""; challenged != should {
			t.Errorf("%s: %d with the header WWW-Authenticate %q", name, got.Code, got.Header().Get("Www-Authenticate"))
		}
		if got.Code > 400 && !strings.Contains(got.Body.String(), `"code"`) {
			t.Errorf("%s: %s", name, got.Body)
		}
	}
}

// TestMCPHoldsHeadersToTheirBody: with the newest protocol, a proxy that looks at headers sees what the server does.
func TestMCPHoldsHeadersToTheirBody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ref := w.withResult("s", "x")
	token := w.newToken("s", `{}`).Text
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_result","arguments":{"ref":"` + ref + `"},
		"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	for name, want := range map[string]string{"read_result": `"structuredContent"`, "get_context": `-32020`} {
		a := w.ask("POST", "/mcp", body, "Authorization", "Bearer "+token, "Accept", "application/json, text/event-stream",
			"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", name)
		if !strings.Contains(a.Body.String(), want) {
			t.Errorf("%s: %d %s", name, a.Code, a.Body)
		}
	}
	large := strings.Replace(body, ref, strings.Repeat("x", 300<<10), 1)
	if a := w.ask("POST", "/mcp", large, "Authorization", "Bearer "+token); a.Code != 413 {
		t.Errorf("a body of 300 KiB: %d", a.Code)
	}
}

// TestAnyReplicaAnswersAnyCall: two processes behind a proxy that takes turns.
func TestAnyReplicaAnswersAnyCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ref := w.withResult("s", "what the tool said")
	second := api.New(api.Config{Store: w.store, Log: slog.New(slog.DiscardHandler)})
	var turns [2]atomic.Int64
	var n atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		turn := n.Add(1) % 2
		turns[turn].Add(1)
		[]http.Handler{w.server, second}[turn].ServeHTTP(rw, r)
	}))
	t.Cleanup(proxy.Close)
	token := w.newToken("s", `{}`).Text
	for _, version := range versions {
		a := w.agent(t, proxy.URL+"/mcp", version, bearer{token: token})
		for range 100 {
			if text, _ := a.must("read_result", map[string]any{"ref": ref}); !strings.Contains(text, "what the tool said") {
				t.Fatal(text)
			}
		}
	}
	if turns[0].Load() < 100 || turns[1].Load() < 100 {
		t.Errorf("the replicas answered %d and %d calls", turns[0].Load(), turns[1].Load())
	}
}

// TestImagesOfAResultComeAsImages in the blocks of every format that has images in results.
func TestImagesOfAResultComeAsImages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url := w.serve(t)
	png := pngOf(t)
	data := base64.StdEncoding.EncodeToString(png)
	for name, c := range map[string]struct{ format, messages string }{
		"anthropic": {"anthropic", `{"role":"user","content":"Look."},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"shot","input":{}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"a screenshot"},
			{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + data + `"}}]}]}`},
		"responses": {"openai-responses", `{"role":"user","content":"Look."},{"type":"function_call","call_id":"c","name":"shot","arguments":"{}"},
			{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"a screenshot"},
			{"type":"input_image","image_url":"data:image/png;base64,` + data + `"}]}`},
	} {
		w.must(http.StatusCreated, "PUT", "/v1/sessions/"+name, `{"format":"`+c.format+`","window_tokens":100000}`)
		w.must(http.StatusCreated, "POST", "/v1/sessions/"+name+"/messages", `{"messages":[`+c.messages+`]}`)
		a := w.agent(t, url, versions[0], bearer{token: w.newToken(name, `{}`).Text})
		found, structured := a.must("get_messages", map[string]any{"ref": "m3"})
		if !strings.Contains(found, "a screenshot") || structured["ref"] != "m3" {
			t.Errorf("%s: %s", name, found)
		}
		refs := w.must(http.StatusOK, "POST", "/v1/sessions/"+name+"/tools/search_session", `{"arguments":{"query":"screenshot"}}`)
		hit := decoded[map[string]any](refs)["structured"].(map[string]any)["hits"].([]any)[0].(map[string]any)
		result := a.call("read_result", map[string]any{"ref": hit["ref"]})
		if len(result.Content) != 2 {
			t.Fatalf("%s: %d blocks: %s", name, len(result.Content), textOf(result))
		}
		image, ok := result.Content[1].(*mcp.ImageContent)
		if !ok || image.MIMEType != "image/png" || !bytes.Equal(image.Data, png) || strings.Contains(textOf(result), data) {
			t.Errorf("%s: %T, %s", name, result.Content[1], textOf(result))
		}
		raw, _ := a.must("read_result", map[string]any{"ref": hit["ref"], "raw": true})
		if !strings.Contains(raw, data) {
			t.Errorf("%s: raw: %s", name, raw)
		}
	}
}

func pngOf(t *testing.T) []byte {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestEveryRefusalOfAToolHasAFix: a model that reads it can call again, and right.
func TestEveryRefusalOfAToolHasAFix(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ref := w.withResult("s", "one\ntwo\n")
	a := w.agent(t, w.serve(t), versions[0], bearer{token: w.key, session: "s"})
	wrongRef := ref[:len(ref)-4] + "0000"
	for _, c := range []struct {
		tool, with string
		want       []string
	}{
		{"read_result", `{}`, []string{"ref is missing", `{"ref":"r17.1-9f3a"}`}},
		{"read_result", `{"ref":7}`, []string{"ref must be a text", "not 7"}},
		{"read_result", `{"ref":"` + wrongRef + `"}`, []string{"not found", ref}},
		{"read_result", `{"ref":"../../etc/passwd"}`, []string{"r17.1-9f3a"}},
		{"read_result", `{"ref":"` + ref + `","lines":3}`, []string{"lines is not an argument of read_result", "limit"}},
		{"read_result", `{"ref":"` + ref + `","offset":0}`, []string{"offset must be a whole number from 1 on"}},
		{"read_result", `{"ref":"` + ref + `","limit":2.5}`, []string{"limit must be a whole number from 1 to 2000", "2.5"}},
		{"read_result", `{"ref":"` + ref + `","offset":99}`, []string{"beyond the end", "2 lines"}},
		{"read_result", `{"ref":"` + ref + `","byte_offset":99}`, []string{"beyond the end", "8 bytes"}},
		{"read_result", `{"ref":"` + ref + `","bytes":4}`, []string{"byte_offset 0"}},
		{"read_result", `{"ref":"` + ref + `","byte_offset":0,"offset":1}`, []string{"offset does not go with byte_offset"}},
		{"read_result", `{"ref":"` + ref + `","pointer":"/a"}`, []string{"JSON"}},
		{"read_result", `{"ref":"m9"}`, []string{"1 to 3"}},
		{"grep_results", `{"pattern":"(","regexp":true}`, []string{"RE2"}},
		{"grep_results", `{"pattern":""}`, []string{"pattern is empty"}},
		{"grep_results", `{"pattern":"x","cursor":"nonsense"}`, []string{"cursor"}},
		{"list_results", `{"cursor":"x"}`, []string{"cursor"}},
		{"list_results", `{"from_seq":9,"to_seq":3}`, []string{"to_seq 3 is before from_seq 9"}},
		{"search_session", `{}`, []string{"query is missing"}},
		{"get_messages", `{}`, []string{"from_seq", "m17-42"}},
		{"get_messages", `{"ref":"` + ref + `"}`, []string{`read_result {"ref":"` + ref + `"}`}},
		{"get_messages", `{"from_seq":3,"to_seq":1}`, []string{"to_seq 1 is before from_seq 3"}},
		{"get_context", `{"max_tokens":1}`, []string{"max_tokens"}},
		{"get_context", `[1]`, []string{"JSON object"}},
		{"request_compaction", `{"reason":1}`, []string{"reason must be a text"}},
	} {
		made := decoded[map[string]any](w.must(http.StatusOK, "POST", "/v1/sessions/s/tools/"+c.tool, `{"arguments":`+c.with+`}`))
		result := made["text"].(string)
		if made["is_error"] != true {
			t.Errorf("%s %s: it answers %s", c.tool, c.with, result)
		}
		for _, want := range append(c.want, "A right call is "+c.tool+" {") {
			if !strings.Contains(result, want) {
				t.Errorf("%s %s: no %q in %s", c.tool, c.with, want, result)
			}
		}
		if strings.HasPrefix(c.with, "{") {
			if got := a.call(c.tool, json.RawMessage(c.with)); !got.IsError || textOf(got) != result {
				t.Errorf("%s %s over MCP: %s", c.tool, c.with, textOf(got))
			}
		}
	}
}

// TestACallInABatchIsARequest has an agent send ten calls in one request, whose tenant may send four.
func TestACallInABatchIsARequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ref := w.withResult("s", "the needle is here")
	w.quotas(`{"requests_per_second":0.001,"request_burst":4}`)
	w.server.ReadQuotas(w.tenant)
	var batch []string
	for n := range 10 {
		batch = append(batch, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"grep_results",`+
			`"arguments":{"pattern":"needle","ref":"%s"}}}`, n+1, ref))
	}
	got := w.must(http.StatusOK, "POST", "/mcp?session=s", "["+strings.Join(batch, ",")+"]", "MCP-Protocol-Version", "2025-03-26").Body.String()
	if answered := strings.Count(got, "the needle is here"); answered == 0 || strings.Count(got, "requests_per_second") != 6 {
		t.Errorf("%d of 10 calls found it: %s", answered, got)
	}
}
