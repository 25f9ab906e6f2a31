package wire_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

// changes are the rules that change what the API itself answered, with the reason for each.
var changes = map[string]string{
	"compaction": "the API does not read what is before its own compaction",
	"V-A13":      "an answer has members that a request must not have: the file_id of a citation",
}

// answer is a turn of the assistant, with what only the API says as came has it.
type answer struct{ strings.Builder }

func (a *answer) add(block string) {
	if a.Len() > 0 {
		a.WriteString(", ")
	}
	a.WriteString(block)
}

// serverTools are tools that the API runs itself, with the type and the content of their results.
var serverTools = [][3]string{
	{"web_search", "web_search_tool_result", `[{"type":"web_search_result","url":"https://a.example/","title":"A","encrypted_content":"RQ==","page_age":null}]`},
	{"web_fetch", "web_fetch_tool_result", `{"type":"web_fetch_result","url":"https://a.example/","content":{"type":"document","source":{"type":"text","media_type":"text/plain","data":"x"}},"retrieved_at":null}`},
	{"code_execution", "code_execution_tool_result", `{"type":"code_execution_result","stdout":"1\n","stderr":"","return_code":0,"content":[]}`},
	{"bash_code_execution", "bash_code_execution_tool_result", `{"type":"bash_code_execution_result","stdout":"","stderr":"","return_code":0,"content":[]}`},
	{"text_editor_code_execution", "text_editor_code_execution_tool_result", `{"type":"text_editor_code_execution_view_result","file_type":"text","content":"x","num_lines":1,"start_line":null,"total_lines":null}`},
	{"advisor", "advisor_tool_result", `{"type":"advisor_redacted_result","encrypted_content":"ZQ==","stop_reason":null}`},
	{"web_search", "web_search_tool_result", `{"type":"web_search_tool_result_error","error_code":"unavailable"}`},
	{"web_fetch", "web_fetch_tool_result", `{"type":"web_fetch_tool_result_error","error_code":"url_not_accessible"}`},
	{"code_execution", "code_execution_tool_result", `{"type":"encrypted_code_execution_result","encrypted_stdout":"ZQ==","stderr":"","return_code":0,"content":[{"type":"code_execution_output","file_id":"file_1"}]}`},
	{"code_execution", "code_execution_tool_result", `{"type":"code_execution_tool_result_error","error_code":"unavailable"}`},
	{"bash_code_execution", "bash_code_execution_tool_result", `{"type":"bash_code_execution_result","stdout":"","stderr":"","return_code":1,"content":[{"type":"bash_code_execution_output","file_id":"file_1"}]}`},
	{"bash_code_execution", "bash_code_execution_tool_result", `{"type":"bash_code_execution_tool_result_error","error_code":"output_file_too_large"}`},
	{"text_editor_code_execution", "text_editor_code_execution_tool_result", `{"type":"text_editor_code_execution_create_result","is_file_update":true}`},
	{"text_editor_code_execution", "text_editor_code_execution_tool_result", `{"type":"text_editor_code_execution_str_replace_result","lines":["-a"],"new_lines":1,"new_start":1,"old_lines":1,"old_start":null}`},
	{"text_editor_code_execution", "text_editor_code_execution_tool_result", `{"type":"text_editor_code_execution_tool_result_error","error_code":"file_not_found","error_message":null}`},
	{"advisor", "advisor_tool_result", `{"type":"advisor_result","text":"do","stop_reason":"end_turn"}`},
	{"advisor", "advisor_tool_result", `{"type":"advisor_tool_result_error","error_code":"overloaded"}`},
	{"tool_search_tool_regex", "tool_search_tool_result", `{"type":"tool_search_tool_result_error","error_code":"unavailable","error_message":null}`},
	{"tool_search_tool_bm25", "tool_search_tool_result", `{"type":"tool_search_tool_search_result","tool_references":[{"type":"tool_reference","tool_name":"f"}]}`},
}

// citations are what a text cites, of every type.
var citations = []string{
	`"type":"page_location","cited_text":"x","document_index":0,"document_title":"t","start_page_number":1,"end_page_number":2«,"file_id":"file_1"»`,
	`"type":"content_block_location","cited_text":"x","document_index":0,"document_title":null,"start_block_index":0,"end_block_index":1«,"file_id":null»`,
	`"type":"web_search_result_location","cited_text":"x","encrypted_index":"ZQ==","title":null,"url":"https://a.example/"`,
	`"type":"search_result_location","cited_text":"x","search_result_index":0,"source":"s","title":"t","start_block_index":0,"end_block_index":1`,
}

// envelopes and leftovers are what an answer has beside its content: nothing more than a request, or all of BetaMessage.
var (
	envelopes = [][]string{
		{`"role":"assistant"`},
		{`-"id":"msg_01"`, `-"type":"message"`, `"role":"assistant"`, `-"model":"claude-haiku-4-5"`},
	}
	leftovers = []string{"", "", `«,"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":1,"server_tool_use":null}»`,
		`«,"container":{"id":"container_1","expires_at":"x","skills":null},"context_management":{"applied_edits":[]},"diagnostics":null,"stop_details":{"type":"refusal","category":"cyber","explanation":null},"input_transformations":null»`}
)

// randomAnswer returns an answer of blocks of every type in any order, and the ids of its calls. It does not end in
// thinking: the API never does.
func randomAnswer(rng *rand.Rand) (a *answer, calls []string) {
	a = &answer{}
	for n := 1 + rng.IntN(9); n > 0; n-- {
		id := fmt.Sprintf("%d_%d", n, rng.IntN(1<<30))
		switch rng.IntN(15) {
		case 0, 1, 2:
			a.add(fmt.Sprintf(`{"type": "thinking","thinking":%q,"signature":"c2ln%s=="}`, []string{"", "hm\n ", "I look."}[rng.IntN(3)], id))
		case 3:
			a.add(`{"type":"redacted_thinking", "data":"ZGF0YQ` + id + `"}`)
		case 4:
			a.add(`{"type":"text","text":"é \ud83d\ude00 ` + id + ` \u003c","citations": null}`)
		case 5:
			a.add(`{"type":"text","text":"so it is","citations":[{"type":"char_location","cited_text":"x","document_index":0,"document_title":null,"start_char_index":0,"end_char_index":1«,"file_id":null»}]«,"parsed_output":null»}`)
		case 6:
			tool := serverTools[rng.IntN(len(serverTools))]
			caller := []string{"", "", `,"caller":{"type":"direct"}`, `,"caller":{"type":"code_execution_20250825","tool_id":"srvtoolu_1"}`}[rng.IntN(4)]
			a.add(`{"type":"server_tool_use","id":"srvtoolu_` + id + `","name":"` + tool[0] + `","input":` + []string{`{"query":"a"}`, `{}`}[rng.IntN(2)] + caller + `}`)
			if rng.IntN(3) == 0 {
				a.add(`{"type":"thinking","thinking":"while it runs","signature":"c2ln"}`)
			}
			if tool[1] != "web_search_tool_result" && tool[1] != "web_fetch_tool_result" {
				caller = ""
			}
			a.add(`{"type":"` + tool[1] + `","tool_use_id":"srvtoolu_` + id + `","content":` + tool[2] + caller + `}`)
		case 7:
			a.add(`{"type":"text","text":"so","citations":[{` + citations[rng.IntN(len(citations))] + `}]}`)
		case 8:
			a.add(`{"type":"mcp_tool_use","id":"mcptoolu_` + id + `","name":"f","server_name":"s","input":{}}`)
			a.add(`{"type":"mcp_tool_result","tool_use_id":"mcptoolu_` + id + `","is_error":false,"content":` + []string{`"r"`, `[{"type":"text","text":"r","citations":null}]`}[rng.IntN(2)] + `}`)
		case 9:
			a.add([]string{`{"type":"container_upload","file_id":"file_1"}`, `{"type":"fallback","from":{"model":"a"},"to":{"model":"b"},"trigger":{"type":"refusal","category":` + []string{"null", `"cyber"`}[rng.IntN(2)] + `}}`,
				`{"type":"mcp_tool_listing","mcp_server_name":"s","tools":[{"name":"f","input_schema":{"type":"object"}}]}`}[rng.IntN(3)])
		case 10:
			a.add([]string{`{"type":"compaction","content":null,"encrypted_content":null}`, `{"type":"compaction","content":"` + id + `","encrypted_content":"ZQ=="}`,
				`{"type":"compaction","content":"` + id + `","encrypted_content":null,"signature":null,"tool_changes":[{"type":"tool_addition","tool":{"type":"tool_reference","name":"f"}},{"type":"tool_removal","tool":{"type":"mcp_toolset_reference","server_name":"s"}}]}`}[rng.IntN(3)])
		default:
			calls = append(calls, "toolu_"+id)
			a.add(`{"type":"tool_use","id":"toolu_` + id + `","name":"f","input":` + []string{`{"p": [1, {}]}`, `{}`, `{"é\u0000":"\ud83d\ude00"}`}[rng.IntN(3)] + []string{"", `,"toolset_name":null`, `,"toolset_name":"t"`}[rng.IntN(3)] + `,"caller":` + []string{`{"type":"direct"}`, `{"type":"code_execution_20260120","tool_id":"srvtoolu_1"}`}[rng.IntN(2)] + `}`)
		}
	}
	a.add(`{"type":"text","text":"Done."}`)
	return a, calls
}

// TestWhatClaudeAnsweredGoesBackAsItWas appends turns of every order of blocks, several in one conversation, and wants
// each back as its bytes.
func TestWhatClaudeAnsweredGoesBackAsItWas(t *testing.T) {
	t.Parallel()
	for seed := range uint64(turnsWanted(t) / 10) {
		rng := rand.New(rand.NewPCG(seed, 34))
		log := [][]byte{[]byte(`{"role":"user","content":"go"}`)}
		want := map[int]string{}
		for range 10 {
			a, calls := randomAnswer(rng)
			turn := `{` + joined(envelopes[rng.IntN(len(envelopes))]) + `,"content":[` + a.String() + `]` + leftovers[rng.IntN(len(leftovers))] + `}`
			want[len(log)] = goesBack(turn)
			log = append(log, []byte(came(turn)))
			next := []string{}
			for _, id := range calls {
				next = append(next, `{"type":"tool_result","tool_use_id":"`+id+`","content":"ok"}`)
			}
			if len(calls) == 0 || rng.IntN(3) == 0 {
				next = append(next, `{"type":"text","text":"go on"}`)
			}
			log = append(log, []byte(`{"role":"user","content":[`+strings.Join(next, ",")+`]}`))
		}
		strict := make([]string, len(log))
		for i := range log {
			strict[i] = string(log[i])
		}
		holdsStrictly(t, session.Anthropic, strict)
		model := []string{"", "claude-haiku-4-5", "claude-opus-5-5"}[rng.IntN(3)]
		view := wiretest.Render(session.Anthropic, stored(session.Anthropic, log), wire.Options{Model: model, Author: model})
		left := len(log) - len(view.Bodies) // what the provider has compacted itself
		for i, back := range want {
			if i >= left && string(view.Bodies[i-left]) != back {
				t.Fatalf("seed %d: message %d came back as\n%s\nwant\n%s", seed, i, view.Bodies[i-left], back)
			}
		}
		for _, r := range view.Repairs {
			if changes[r.Rule] == "" {
				t.Fatalf("seed %d: %+v is no rule of the table", seed, r)
			}
		}
		if found := wiretest.Validate(session.Anthropic, view.Bodies, wire.Options{Model: model, Author: model}); len(found) > 0 {
			t.Fatalf("seed %d: %+v", seed, found)
		}
	}
}
