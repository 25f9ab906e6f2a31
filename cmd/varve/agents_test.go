package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// agentTurns is how many turns the samples' agents have. In each they read three files, one after the other, in a window
// that takes a third of all files.
const agentTurns = 8

// agentWindows returns the windows that they have one after the other.
func agentWindows() []int {
	if testing.Short() {
		return []int{40_000}
	}
	return []int{40_000, 128_000}
}

// TestTheSamplesAgentsStayWithinTheirWindow runs the agents that need no package of npm; those of the adapters run with
// their adapter.
func TestTheSamplesAgentsStayWithinTheirWindow(t *testing.T) {
	t.Parallel()
	u, _ := shareUp(t)
	samples, err := filepath.Abs(filepath.Join("..", "..", "samples"))
	if err != nil {
		t.Fatal(err)
	}
	agent := filepath.Join(t.TempDir(), "agent")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", agent, "../../samples/agents/go")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, args := range map[string][]string{
		"go": {agent}, "python": {"python3", filepath.Join(samples, "agents", "python.py")},
		"http": {"node", filepath.Join(samples, "agent", "agent.mjs")},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(args[0]); err != nil {
				t.Skipf("the agent is not run: %v", err)
			}
			for _, window := range agentWindows() {
				runAgent(t, u, window, "openai-chat", ".", args...)
			}
		})
	}
}

// runAgent runs a program with questions as arguments, whose memory is Varve, against a strict provider, and then asks it
// for what it has read at the beginning, in the middle and at the end.
func runAgent(t *testing.T, u *up, window int, format, dir string, args ...string) {
	t.Helper()
	model := &strictModel{files: t.TempDir(), window: window}
	model.fill(t)
	provider := httptest.NewServer(model)
	defer provider.Close()
	calls, counted := countedProxy(t, u.url)
	program := filepath.Base(args[len(args)-1])
	name := fmt.Sprint(program, "-", window)
	id, one := name, program == "agent.mjs" // which takes one question, and has a name for its sessions
	if one {
		id = "agent-" + name
	}
	settings := fmt.Sprintf(`{"format":%q,"model":"gpt-4o","window_tokens":%d}`, format, window)
	u.want(http.StatusCreated, "PUT", "/v1/sessions/"+id, settings)
	var questions, want []string
	for n := 1; n <= agentTurns; n++ {
		questions, want = append(questions, fmt.Sprint("Turn ", n)), append(want, fmt.Sprint("answer ", n))
	}
	for _, n := range []int{1, 8, 23} {
		questions = append(questions, fmt.Sprint("Where is the key of file ", n))
		want = append(want, fmt.Sprintf("secret-%d.", 7919*n))
	}
	run := func(questions ...string) string {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		agent := exec.CommandContext(ctx, args[0], append(args[1:], questions...)...)
		agent.Dir = dir
		agent.Env = append(os.Environ(), "VARVE_URL="+counted, "VARVE_KEY="+u.key, "SESSION="+name,
			"OPENAI_BASE_URL="+provider.URL+"/v1", "OPENAI_API_KEY=none", "PYTHONDONTWRITEBYTECODE=1",
			"PYTHONPATH="+filepath.Join("..", "..", "clients", "python"), fmt.Sprint("WINDOW=", window),
			"ANTHROPIC_BASE_URL="+provider.URL, "ANTHROPIC_API_KEY=none", "CLAUDE_CONFIG_DIR="+model.files,
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1")
		var said strings.Builder
		agent.Stderr = &said
		out, err := agent.Output()
		if err != nil {
			t.Fatalf("%v\n%s%s", err, out, &said)
		}
		return string(out)
	}
	got, budget := "", int64(5*len(questions)+1) // the tools are read once
	if program == "langgraph.mjs" {
		budget += int64(len(questions)) // its checkpoint is read and written
	}
	if program == "claude-agent-sdk.mjs" {
		budget += int64(2 * len(questions)) // Claude begins anew for each: it loads the session, and connects to the tools
	}
	if one {
		budget += int64(len(questions) - 1)
		for _, question := range questions {
			got += run(question)
		}
	} else {
		got = run(questions...)
	}
	if calls.Load() > budget {
		t.Errorf("%d calls of Varve for %d turns", calls.Load(), len(questions))
	}
	if answers := strings.Split(strings.TrimSpace(got), "\n"); !slices.Equal(answers, want) {
		t.Errorf("the agent says %q", answers)
	}
	t.Logf("%d requests to the model, the largest of %d tokens, %d refused; %d calls of Varve for %d turns", model.requests,
		model.largest, len(model.refused), calls.Load(), len(questions))
	if len(model.refused) > 0 || model.largest < window/4 {
		t.Errorf("the model refused %q", model.refused)
	}
}

// countedProxy returns the address of a proxy of a server, and how many requests came.
func countedProxy(t *testing.T, at string) (calls *atomic.Int64, proxied string) {
	t.Helper()
	target, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	calls = new(atomic.Int64)
	proxy := httputil.NewSingleHostReverseProxy(target)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	return calls, web.URL
}

// strictModel answers as Chat Completions and Responses do, and refuses what they would.
type strictModel struct {
	files  string
	window int

	mu                sync.Mutex
	requests, largest int
	refused           []string
}

func (m *strictModel) path(n int) string { return filepath.Join(m.files, fmt.Sprint(n)) }

// fill writes the files.
func (m *strictModel) fill(t *testing.T) {
	t.Helper()
	for n := 1; n <= 3*agentTurns; n++ {
		text := strings.Repeat(fmt.Sprintf("this is a line of file %d\n", n), m.window/160)
		text += fmt.Sprintf("the key of file %d is secret-%d.\n", n, 7919*n) + text
		if err := os.WriteFile(m.path(n), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// spoken is a message of a request, a call or a result.
type spoken struct{ kind, id, text string }

func (m *strictModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var body struct{ Messages, Input []sentItem }
	err := json.NewDecoder(r.Body).Decode(&body)
	m.requests++
	all := saidBy(append(body.Messages, body.Input...))
	ofClaude := strings.HasSuffix(r.URL.Path, "/v1/messages")
	if ofClaude {
		all = saidInBlocks(body.Messages)
	}
	tokens := 0
	for _, one := range all {
		tokens += len(one.text) / 4
	}
	m.largest = max(m.largest, tokens)
	if err == nil {
		err = wrongIn(all)
	}
	if err == nil && tokens > m.window {
		err = fmt.Errorf("%d tokens", tokens)
	}
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		m.refused = append(m.refused, err.Error())
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":{"message":%q,"type":"invalid_request_error"}}`, err)
		return
	}
	name, argument, text := m.answer(all)
	id := fmt.Sprint("call_", m.requests)
	if ofClaude {
		streamMessage(w, id, name, argument, text, tokens)
		return
	}
	if len(body.Input) > 0 {
		output := fmt.Sprintf(`{"type":"message","id":"msg_%d","role":"assistant","status":"completed",`+
			`"content":[{"type":"output_text","text":%q,"annotations":[]}]}`, m.requests, text)
		if name != "" {
			output = fmt.Sprintf(`{"type":"function_call","id":"fc_%d","call_id":%q,"name":%q,"arguments":%q,"status":"completed"}`,
				m.requests, id, name, argument)
		}
		fmt.Fprintf(w, `{"id":"resp_%d","object":"response","created_at":1,"model":"gpt-4o","status":"completed","output":[%s],
			"usage":{"input_tokens":%d,"input_tokens_details":{"cached_tokens":0},"output_tokens":9,
			"output_tokens_details":{"reasoning_tokens":0},"total_tokens":%d}}`, m.requests, output, tokens, tokens+9)
		return
	}
	message, why := fmt.Sprintf(`{"role":"assistant","content":%q}`, text), "stop"
	if name != "" {
		const calling = `{"role":"assistant","content":null,"tool_calls":[{"id":%q,"type":"function",` +
			`"function":{"name":%q,"arguments":%q}}]}`
		message, why = fmt.Sprintf(calling, id, name, argument), "tool_calls"
	}
	fmt.Fprintf(w, `{"id":"c%d","object":"chat.completion","created":1,"model":"gpt-4o",
		"choices":[{"index":0,"message":%s,"finish_reason":%q}],
		"usage":{"prompt_tokens":%d,"completion_tokens":9,"total_tokens":%d}}`, m.requests, message, why, tokens, tokens+9)
}

var wanted = regexp.MustCompile(`(Turn|Where is the key of file) (\d+)`)

// answer returns what the model calls, or says: it reads three files a turn, and looks for a key that it does not see with
// one call.
func (m *strictModel) answer(all []spoken) (name, argument, text string) {
	newest := 0
	for i, one := range all {
		if one.kind == "user" && wanted.MatchString(one.text) {
			newest = i
		}
	}
	question := wanted.FindStringSubmatch(all[newest].text)
	if question == nil {
		return "", "", "what?"
	}
	n, _ := strconv.Atoi(question[2])
	results := 0
	for _, one := range all[newest:] {
		if one.kind == "result" {
			results++
		}
	}
	switch {
	case question[1] == "Turn" && results < 3:
		return "read_file", fmt.Sprintf(`{"path":%q}`, m.path(3*(n-1)+results+1)), ""
	case question[1] == "Turn":
		return "", "", fmt.Sprint("answer ", n)
	}
	key := regexp.MustCompile(fmt.Sprintf(`the key of file %d is (secret-\d+\.)`, n))
	for _, one := range all {
		if found := key.FindStringSubmatch(one.text); found != nil {
			return "", "", found[1]
		}
	}
	if results == 0 {
		return "grep_results", fmt.Sprintf(`{"pattern":"the key of file %d is"}`, n), ""
	}
	return "", "", "lost"
}

// sentItem is a message of Chat Completions or an item of Responses.
type sentItem struct {
	Type, Role      string
	Content, Output json.RawMessage
	CallID          string `json:"call_id"`
	ToolCallID      string `json:"tool_call_id"`
	Arguments       string
	ToolCalls       []struct {
		ID       string
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

// saidBy returns what the items of a request are, one after the other.
func saidBy(items []sentItem) (all []spoken) {
	for _, i := range items {
		switch {
		case i.Type == "function_call":
			all = append(all, spoken{"call", i.CallID, i.Arguments})
		case i.Type == "function_call_output":
			all = append(all, spoken{"result", i.CallID, string(i.Output)})
		case i.Role == "tool":
			all = append(all, spoken{"result", i.ToolCallID, string(i.Content)})
		default:
			all = append(all, spoken{i.Role, "", string(i.Content)})
		}
		for _, call := range i.ToolCalls {
			all = append(all, spoken{"call", call.ID, call.Function.Arguments})
		}
	}
	return all
}

// wrongIn returns what a provider refuses a request for: each call has its result next, and each result its call.
func wrongIn(all []spoken) error {
	open := map[string]bool{}
	for _, one := range append(all, spoken{kind: "end"}) {
		switch {
		case one.kind == "call":
			open[one.id] = true
		case one.kind == "result" && !open[one.id]:
			return fmt.Errorf("a result without its call: %q", one.id)
		case one.kind == "result":
			delete(open, one.id)
		case len(open) > 0:
			return fmt.Errorf("%d calls without a result before a message of %q", len(open), one.kind)
		}
	}
	return nil
}
