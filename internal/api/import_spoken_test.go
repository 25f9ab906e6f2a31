package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// trajectory returns a run of SWE-agent without tools: what the shell printed has the role of the user. Every observation
// names the step's function.
func trajectory(t *testing.T, steps int) string {
	t.Helper()
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
		Agent   string `json:"agent"`
		Thought string `json:"thought,omitempty"`
		Action  string `json:"action,omitempty"`
	}
	history := []message{
		{Role: "system", Content: "You fix bugs.", Agent: "primary"},
		{Role: "user", Content: "Make the orders stable. You must never touch tests/golden.txt.", Agent: "primary"},
	}
	for n := range steps {
		action := fmt.Sprintf("sed -n 1,60p src/orders_%d.py", n)
		thought := fmt.Sprintf("I look at part %d.\n", n)
		var shown strings.Builder
		for line := range 60 {
			fmt.Fprintf(&shown, "def stable_sort_%d_%d(orders, key):  # never sort twice\n", n, line)
		}
		shown.WriteString("(Open file: n/a)\n(Current directory: /repo)\nbash-$")
		history = append(history,
			message{Role: "assistant", Content: thought + "```\n" + action + "\n```", Agent: "primary", Thought: thought, Action: action},
			message{Role: "user", Content: shown.String(), Agent: "primary"},
		)
	}
	text, err := json.Marshal(map[string]any{"history": history, "trajectory": []any{}, "info": map[string]any{}})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestWhatAToolSaidInATextIsAResult: the observations of an agent that speaks in texts have refs, are found by grep and
// read back when the view has lost them, and are no words of the user in a summary.
func TestWhatAToolSaidInATextIsAResult(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	const steps = 40
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"format":"openai-chat","window_tokens":20000}`)
	w.must(http.StatusCreated, "POST", "/v1/imports?session=s", trajectory(t, steps))
	w.must(http.StatusOK, "POST", "/v1/sessions/s/compact?wait=20", "")
	refs := map[string]bool{}
	for _, r := range decoded[listPage](w.must(http.StatusOK, "GET", "/v1/sessions/s/results?limit=100", "")).Data {
		refs[r["ref"].(string)] = true
	}
	found, _ := w.grep("/v1/sessions/s/results/grep?pattern=stable_sort_3_7%28")
	if len(refs) < steps-5 || len(found) != 1 || !refs[found[0]] {
		t.Fatalf("%d results, found %v", len(refs), found)
	}
	if got := w.must(http.StatusOK, "GET", "/v1/sessions/s/results/"+found[0], "").Body.String(); !strings.Contains(got, "stable_sort_3_59(") {
		t.Errorf("read back: %.300s", got)
	}
	view := w.must(http.StatusOK, "GET", "/v1/sessions/s/context", "").Body.String()
	if n := strings.Count(view, `"role":"user"`); n != 2 || !strings.Contains(view, `"content":"Make the orders stable. You must never touch tests/golden.txt."`) {
		t.Errorf("%d messages of the user, where the task and the summary are: %.2000s", n, view)
	}
	if strings.Contains(view, "stable_sort_3_7(") {
		t.Errorf("the observation that was read back is in the view: %.2000s", view)
	}
}
