package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/varve-dev/varve/client"
)

// spawn starts varve mcp in a process of its own, as an agent does, and connects to it.
func spawn(t *testing.T, version string, env, args []string) *mcp.ClientSession {
	t.Helper()
	command := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0], append([]string{"mcp"}, args...)...)
	command.Env = append(os.Environ(), append(env, asVarve+"=1")...)
	command.Stderr = t.Output()
	agent := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil)
	session, err := agent.Connect(t.Context(), &mcp.CommandTransport{Command: command}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// asked sends a request to the API that must be answered with 2xx.
func asked(t *testing.T, api *client.Client, method, path, body string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, api.Base.String()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+api.Key)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil || answer.StatusCode >= 300 {
		t.Fatalf("%s %s: %v, %v", method, path, answer, err)
	}
	defer answer.Body.Close()
	var made struct{ Token string }
	if method == "POST" && strings.HasSuffix(path, "/tokens") {
		if err := json.NewDecoder(answer.Body).Decode(&made); err != nil {
			t.Fatal(err)
		}
	}
	return made.Token
}

// TestAnAgentStartsItsOwnServer reads a result over standard input and output, with old and new protocols, with a token
// and with a key.
func TestAnAgentStartsItsOwnServer(t *testing.T) {
	t.Parallel()
	api := startAPI(t)
	asked(t, api, "PUT", "/v1/sessions/s", `{"format":"openai-chat","window_tokens":100000}`)
	asked(t, api, "POST", "/v1/sessions/s/messages", `{"messages":[{"role":"user","content":"Run it."},
		{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"Bash","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"c","content":"exit status 7"}]}`)
	token := asked(t, api, "POST", "/v1/sessions/s/tokens", `{}`)
	at := "VARVE_URL=" + api.Base.String()
	for _, c := range []struct {
		version string
		env     []string
		args    []string
		tools   int
	}{
		{"2026-07-28", []string{at, "VARVE_KEY=" + token}, nil, 6},
		{"2024-11-05", []string{at, "VARVE_KEY=" + token}, nil, 6},
		{"2025-11-25", []string{at, "VARVE_KEY=" + api.Key}, []string{"--session", "s"}, 7},
	} {
		agent := spawn(t, c.version, c.env, c.args)
		listed, err := agent.ListTools(t.Context(), nil)
		if err != nil || len(listed.Tools) != c.tools {
			t.Fatalf("%s: %+v, %v", c.version, listed, err)
		}
		for call, want := range map[string]string{"m3": "exit status 7", "r9.0-0000": "A right call is"} {
			result, err := agent.CallTool(t.Context(), &mcp.CallToolParams{Name: "read_result", Arguments: map[string]any{"ref": call}})
			if err != nil || !strings.Contains(said(result), want) || result.IsError != (call != "m3") {
				t.Errorf("%s, %s: %v, %s", c.version, call, err, said(result))
			}
		}
	}
}

// TestAServerThatIsDownIsTheToolsError: the agent hears what to do, and the calls after it run when the server is there.
func TestAServerThatIsDownIsTheToolsError(t *testing.T) {
	t.Parallel()
	agent := spawn(t, "2025-11-25", []string{"VARVE_URL=http://127.0.0.1:9", "VARVE_KEY=st_x"}, nil)
	listed, err := agent.ListTools(t.Context(), nil)
	if err != nil || len(listed.Tools) != 6 {
		t.Fatalf("%+v, %v", listed, err)
	}
	result, err := agent.CallTool(t.Context(), &mcp.CallToolParams{Name: "get_context"})
	if err != nil || !result.IsError || !strings.Contains(said(result), "varve up") || !strings.Contains(said(result), "127.0.0.1:9") {
		t.Errorf("%v, %s", err, said(result))
	}
	api := startAPI(t)
	refused := spawn(t, "2025-11-25", []string{"VARVE_URL=" + api.Base.String(), "VARVE_KEY=st_x"}, nil)
	result, err = refused.CallTool(t.Context(), &mcp.CallToolParams{Name: "get_context"})
	if err != nil || !result.IsError || !strings.Contains(said(result), "session token") {
		t.Errorf("%v, %s", err, said(result))
	}
}

func said(result *mcp.CallToolResult) string {
	if result == nil {
		return ""
	}
	text, _ := result.Content[0].(*mcp.TextContent)
	return fmt.Sprint(text.Text)
}
