package wire_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/ingest"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

// turnMaker makes what a model answers, of the kinds that the types of its provider's SDK have, in any order.
type turnMaker struct {
	*rand.Rand
	ids     int
	results []string // of the calls, as messages of the user or the tools
}

func (m *turnMaker) id(prefix string) string {
	m.ids++
	return fmt.Sprintf("%s%d", prefix, m.ids)
}

func (m *turnMaker) one(list ...string) string { return list[m.IntN(len(list))] }

// some returns up to n of what make makes, separated by commas.
func (m *turnMaker) some(n int, make func() string) string {
	list := []string{make()}
	for range m.IntN(n) {
		list = append(list, make())
	}
	return strings.Join(list, ",")
}

// spoken separates what only the provider says from what goes back: «…» came with the answer, and goes back without.
var spoken = regexp.MustCompile("«([^»]*)»")

func came(turn string) string { return spoken.ReplaceAllString(turn, "$1") }

func goesBack(turn string) string { return spoken.ReplaceAllString(turn, "") }

// joined returns members of an object. Those that begin with a dash are what only the provider says.
func joined(members []string) string {
	list, kept := "", false
	for _, m := range members {
		only := strings.HasPrefix(m, "-")
		switch {
		case !only && kept:
			list += "," + m
		case !only:
			list, kept = list+m, true
		case kept:
			list += "«," + m[1:] + "»"
		default:
			list += "«" + m[1:] + ",»"
		}
	}
	return list
}

// texts are what a model may say: of any script, with what JSON escapes, and what looks like something else.
func (m *turnMaker) text() string {
	return m.one(`text`, `text`, `é \ud83d\ude00 \u003c`, `日本語 😀 \u2028 \t`, `{\"type\":\"tool_use\"}`, `[Reasoning] x`, ` x \n`,
		strings.Repeat(`long `, 300)+`.`, `\u0000`, `data:image/png;base64,`, `\\ud83d`)
}

// chatTurn returns a message of ChatCompletionAssistantMessageParam (openai-node), with what compatible servers answer.
func (m *turnMaker) chatTurn() []string {
	members := []string{`"role":"assistant"`}
	calls := m.IntN(2) == 0
	said := m.one(`"content":"`+m.text()+`"`, `"content":[`+m.some(3, func() string {
		return m.one(`{"type":"text","text":"`+m.text()+`"}`, `{"type":"refusal","refusal":"`+m.text()+`"}`)
	})+`]`, `"content":""`)
	sound := m.IntN(6) == 0
	refusal := m.one(`"refusal":null`, `"refusal":"`+m.text()+`"`)
	if calls || sound || !strings.HasSuffix(refusal, "null") {
		said = m.one(said, `"content":null`)
	}
	members = append(members, said)
	if m.IntN(2) == 0 || strings.HasSuffix(said, "null") && !calls && !sound {
		members = append(members, refusal)
	}
	for _, member := range []string{
		`"name":"eve"`, `"reasoning_content":"` + m.text() + `"`, `"reasoning":"hm"`, `"function_call":null`, `-"annotations":[]`, `-"annotations":null`,
		`"reasoning_content":null`, `-"parsed":{"a":[1]}`, `-"parsed":null`, `"audio":null`, `-"tool_call_id":null`, `"reasoning_content":""`,
		`"reasoning_details":[{"type":"reasoning.summary","summary":"hm","id":null,"format":"openai-responses-v1","index":0},{"type":"reasoning.encrypted","data":"ZZ","id":"rs_1","format":"openai-responses-v1","index":1}]`,
		`"thinking_blocks":[{"type":"redacted_thinking","data":"ZZ"},{"type":"thinking","thinking":"","signature":"s"}]`, `-"reasoning_details":[]`, `-"thinking_blocks":null`,
		`"reasoning_details":[{"type":"reasoning.text","text":"hm","signature":"s"},{"type":"reasoning.encrypted","data":"ZZ"}]`,
		`"thinking_blocks":[{"type":"thinking","thinking":"hm","signature":"s"}]`,
	} {
		name, _, _ := strings.Cut(strings.TrimPrefix(member, "-"), ":")
		isOne := func(s string) bool { return strings.HasPrefix(strings.TrimPrefix(s, "-"), name+":") }
		if m.IntN(5) == 0 && !(sound && name == `"audio"`) && !slices.ContainsFunc(members, isOne) {
			members = append(members, member)
		}
	}
	if sound {
		members = append(members, m.one(`"audio":{"id":"audio_1"}`, `"audio":{"id":"audio_1"«,"data":"UklGRg==","expires_at":1,"transcript":"hi"»}`))
	}
	switch {
	case calls:
		members = append(members, `"tool_calls":[`+m.some(3, m.chatCall)+`]`)
	case m.IntN(4) == 0:
		members = append(members, m.one(`-"tool_calls":[]`, `-"tool_calls":null`))
	}
	m.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return []string{`{` + joined(members) + `}`}
}

func (m *turnMaker) chatCall() string {
	id := m.id(m.one("call_", "chatcmpl-tool-", "toolu_vrtx_", "functions.f:", "", strings.Repeat("x", 30)))
	m.results = append(m.results, `{"role":"tool","tool_call_id":"`+id+`","content":"r"}`)
	arguments := m.one(`{}`, `{\"a\":\"`+"日本"+`\"}`, `{\"a\":1e400}`, `  {\"a\":1}\n`, `\"\"`, `{\"a\":1}`, ``, `{\"a\":`, `[1]`, `null`)
	if m.IntN(5) == 0 {
		return `{"id":"` + id + `","type":"custom","custom":{"name":"f","input":"` + arguments + `"}}`
	}
	extra := m.one("", "", `«,"index":0»`, `,"extra_content":{"google":{"thought_signature":"s"}}`)
	parsed := m.one("", "", `«,"parsed_arguments":{"a":[1]}»`, `«,"parsed_arguments":null»`)
	return `{"id":"` + id + `","type":"function","function":{"name":"f","arguments":"` + arguments + `"` + parsed + `}` + extra + `}`
}

// itemTurn returns items of ResponseOutputItem (openai-node). Reasoning is before what it led to.
func (m *turnMaker) itemTurn() (items []string) {
	for range 1 + m.IntN(6) {
		if m.IntN(3) == 0 {
			items = append(items, `{"type":"reasoning","id":"`+m.id("rs_")+`","summary":[`+m.one("", `{"type":"summary_text","text":"hm"}`)+`],`+m.one("", `"content":[{"type":"reasoning_text","text":"hm"}],"status":"completed",`)+`"encrypted_content":"e"}`)
		}
		items = append(items, strings.Split(m.item(), "\n")...)
	}
	return items
}

// madeBy returns what an item of some kinds has in an answer alone.
func (m *turnMaker) madeBy(kind string) string {
	switch kind {
	case "shell_call", "apply_patch_call", "tool_search_call", "tool_search_output", "compaction":
		return m.one("", `«,"created_by":"x"»`)
	case "function_call":
		return m.one("", `«,"parsed_arguments":null»`, `«,"parsed_arguments":{"a":1}»`)
	}
	return ""
}

func (m *turnMaker) item() string {
	call := m.id("call_")
	made := func(kind, prefix, members, output string) string {
		if output != "" {
			m.results = append(m.results, `{"type":"`+kind+`_output","call_id":"`+call+`",`+output+`}`)
		}
		return `{"type":"` + kind + `","id":"` + m.id(prefix) + `",` + members + m.madeBy(kind) + `}`
	}
	switch m.IntN(26) {
	case 0:
		return made("function_call", "fc_", `"call_id":"`+call+`","name":"f","arguments":"`+m.one(`{}`, ``, `{\"a\":`)+`","status":"completed"`, `"output":"r"`)
	case 1:
		return made("custom_tool_call", "ctc_", `"call_id":"`+call+`","name":"f","input":"`+m.text()+`"`, `"output":"r"`)
	case 2:
		return made("web_search_call", "ws_", `"status":"completed","action":{"type":"search","query":"q"}`, "")
	case 3:
		return made("file_search_call", "fs_", `"status":"`+m.one("completed", "failed")+`","queries":["q"],"results":`+m.one(`null`, `[{"attributes":{"a":1,"b":true},"file_id":"f","filename":"n","score":0.5,"text":"x"}]`), "")
	case 4:
		return made("code_interpreter_call", "ci_", `"status":"completed","code":"1","container_id":"c","outputs":null`, "")
	case 5:
		return made("image_generation_call", "ig_", `"status":"`+m.one(`completed","result":"iVBORw0KGgo="`, `failed","result":null`), "")
	case 6:
		return made("mcp_list_tools", "mcpl_", `"server_label":"s","tools":[`+m.one("", `{"name":"f","input_schema":{"type":"object"},"annotations":null,"description":null}`)+`]`+m.one("", `,"error":null`, `,"error":"no"`), "")
	case 7:
		return made("mcp_call", "mcp_", `"server_label":"s","name":"f","arguments":"{}","output":"r"`, "")
	case 8:
		return made("mcp_approval_request", "mcpr_", `"server_label":"s","name":"f","arguments":"{}"`, "")
	case 9:
		return made("shell_call", "sh_", `"call_id":"`+call+`","action":{"commands":["ls"]},"status":"completed"`, `"output":[{"stdout":"x","stderr":"","outcome":{"type":"exit","exit_code":0}}]`)
	case 10:
		return made("compaction", "cmp_", `"encrypted_content":"e"`, "")
	case 12:
		id := m.id("lsh_")
		m.results = append(m.results, `{"type":"local_shell_call_output","id":"`+id+`","output":"{}"}`)
		return `{"type":"local_shell_call","id":"` + id + `","call_id":"` + id + `","action":{"type":"exec","command":["ls"],"env":{}},"status":"completed"}`
	case 13:
		return made("apply_patch_call", "apc_", `"call_id":"`+call+`","operation":{"type":"delete_file","path":"a"},"status":"completed"`, `"status":"`+m.one("completed", "failed")+`","output":"r"`)
	case 14:
		return made("tool_search_call", "tsc_", `"call_id":null,"execution":"server","status":"completed","arguments":{"paths":["f"]}`, "")
	case 15:
		return made("tool_search_output", "tso_", `"call_id":null,"execution":"server","status":"completed","tools":[{"type":"namespace","name":"n","description":"d","tools":[{"type":"function","name":"f","parameters":{}}]}]`, "")
	case 16:
		id := m.id("mcpr_")
		m.results = append(m.results, `{"type":"mcp_approval_response","approval_request_id":"`+id+`","approve":`+m.one("true", "false")+`}`)
		return `{"type":"mcp_approval_request","id":"` + id + `","server_label":"s","name":"f","arguments":"{}"}`
	case 17:
		return made("function_call", "fc_", `"call_id":"`+call+`","namespace":"n","name":"f","arguments":"{}"`, `"output":[{"type":"input_text","text":"r"}]`)
	case 18:
		return made("web_search_call", "ws_", `"status":"completed","action":`+m.one(`{"type":"open_page","url":"https://a.b"}`, `{"type":"find_in_page","pattern":"p","url":"https://a.b"}`, `{"type":"search","queries":["q"],"sources":[{"type":"url","url":"https://a.b"}],"query":"q"}`), "")
	case 19:
		return made("code_interpreter_call", "ci_", `"status":"completed","code":"1","container_id":"c","outputs":[`+m.one(`{"type":"logs","logs":"1"}`, `{"type":"image","url":"https://a.b"}`)+`]`, "")
	case 20:
		return made("function_call", "fc_", `"call_id":"`+call+`","caller":{"type":"program","caller_id":"c"},"async":true,"name":"f","arguments":"{}"`, `"caller":{"type":"program","caller_id":"c"},"output":"r"`)
	case 21:
		return made("program", "prg_", `"call_id":"`+call+`","code":"1","fingerprint":"p"`, "") + "\n" +
			`{"type":"program_output","id":"` + m.id("prgo_") + `","call_id":"` + call + `","result":"r","status":"` + m.one("completed", "incomplete") + `"}`
	case 22:
		return made("mcp_call", "mcp_", `"server_label":"s","name":"f","arguments":"{}","approval_request_id":null,"output":null,"status":"failed","error":`+
			m.one(`{"type":"mcp_protocol_error","code":1,"message":"m"}`, `{"type":"mcp_tool_execution_error","content":[]}`, `{"type":"http_error","code":500,"message":"m"}`), "")
	case 23:
		return made("apply_patch_call", "apc_", `"call_id":"`+call+`","operation":{"type":"`+m.one("create_file", "update_file")+`","path":"a","diff":"+a"},"status":"completed"`, `"status":"completed","output":"r"`)
	case 24:
		m.results = append(m.results, `{"type":"tool_search_output","call_id":"`+call+`","execution":"client","status":"completed","tools":[]}`)
		return made("tool_search_call", "tsc_", `"call_id":"`+call+`","execution":"client","status":"completed","arguments":{"q":"f"}`, "")
	case 11:
		return made("computer_call", "cu_", `"call_id":"`+call+`",`+m.one(`"action":{"type":"screenshot"}`, `"actions":[{"type":"click","button":"left","x":1,"y":2},{"type":"wait"}]`)+`,"pending_safety_checks":[],"status":"completed"`, `"output":{"type":"computer_screenshot","image_url":"data:image/png;base64,iVBORw0KGgo="}`)
	}
	return `{"type":"message","id":"` + m.id("msg_") + `","role":"assistant","status":"` + m.one("completed", "incomplete", "in_progress") + `",` + m.one("", `"phase":"commentary",`, `"phase":null,`, `"phase":"final_answer",`) + `"content":[` + m.some(2, func() string {
		return m.one(`{"type":"output_text","text":"x","annotations":[]}`, `{"type":"refusal","refusal":"no"}`, `{"type":"output_text","text":"`+m.text()+`","annotations":[]«,"parsed":{"a":1}»}`,
			`{"type":"output_text","text":"","annotations":[],"logprobs":[{"token":"x","bytes":[120],"logprob":-0.1,"top_logprobs":[{"token":"y","bytes":[],"logprob":-1}]}]}`,
			`{"type":"output_text","text":"x","annotations":[{"type":"url_citation","url":"https://a.b","title":"t","start_index":0,"end_index":1}],"logprobs":[]}`,
			`{"type":"output_text","text":"x","annotations":[{"type":"file_citation","file_id":"f","filename":"n","index":0},{"type":"container_file_citation","container_id":"c","file_id":"f","filename":"n","start_index":0,"end_index":1},{"type":"file_path","file_id":"f","index":0}]}`)
	}) + `]}`
}

// geminiTurn returns a content of the Part of @google/genai. The first call of a content is signed.
func (m *turnMaker) geminiTurn() []string {
	var responses []string
	parts := m.some(6, func() string {
		signature := m.one("", `,"thoughtSignature":"s"`)
		switch m.IntN(11) {
		case 6:
			return `{"fileData":{"mimeType":"image/png","fileUri":"gs://a/b"}` + signature + `}`
		case 7:
			return `{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo="},"thought":true` + signature + `}`
		case 8:
			id := m.id("t")
			return `{"toolCall":{"id":"` + id + `","toolType":"GOOGLE_SEARCH_WEB","args":{}}` + signature + `},{"toolResponse":{"id":"` + id + `","toolType":"GOOGLE_SEARCH_WEB","response":{}}}`
		case 0:
			id := m.id("c")
			if len(responses) == 0 {
				signature = `,"thoughtSignature":"s"`
			}
			responses = append(responses, `{"functionResponse":{"id":"`+id+`","name":"f","response":{"output":"r"}}}`)
			return `{"functionCall":{"id":"` + id + `","name":"f"` + m.one(`,"args":{"a":1}`, `,"args":{}`, `,"args":{"`+m.text()+`":[null,1e400]}`, ``) + m.one("", "", `,"partialArgs":null,"willContinue":null`) + `}` + signature + `}`
		case 1:
			return `{"text":"hm","thought":true` + signature + `}`
		case 2:
			return `{"executableCode":{"language":"PYTHON","code":"1"}` + signature + `}`
		case 3:
			return `{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1"}}`
		case 4:
			return `{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo="}` + signature + `}`
		case 5:
			return m.one(`{"text":"","thoughtSignature":"s"}`, `{"text":"x","speechMetadata":{"speaker":"a"}}`, `{"text":"x","videoMetadata":{"fps":1}}`,
				`{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo="},"mediaResolution":{"level":"MEDIA_RESOLUTION_LOW"}}`, `{"text":"x","thought":false}`,
				`{"thoughtSignature":"s","text":"`+m.text()+`"}`, `{"executableCode":{"language":"LANGUAGE_UNSPECIFIED","code":""}}`, `{"codeExecutionResult":{"outcome":"OUTCOME_DEADLINE_EXCEEDED"}}`,
				`{"text":"x","thought":null,"inlineData":null,"thoughtSignature":null}`, `{"thought":true,"text":"hm","thought_signature":"s"}`)
		case 9:
			return m.one(`{"text":"x","partMetadata":{"a":1}}`, `{"executableCode":{"id":"e","language":"PYTHON","code":"1"}},{"codeExecutionResult":{"id":"e","outcome":"OUTCOME_FAILED","output":""}}`)
		}
		return `{"text":"x"` + signature + `}`
	})
	if len(responses) > 0 {
		m.results = append(m.results, `{"role":"user","parts":[`+strings.Join(responses, ",")+`]}`)
	}
	role := m.one(`"role":"model",`, `"role":"model",`, `"role":"model",`, ``)
	if len(responses) > 0 || strings.Contains(parts, "thought") {
		role = `"role":"model",`
	}
	return []string{`{` + role + `"parts":[` + parts + `]}`}
}

// uiTurn returns a message of UIMessagePart (vercel/ai).
func (m *turnMaker) uiTurn() []string {
	return []string{`{"id":"` + m.id("m") + `",` + m.one("", "", `"metadata":{"usage":{"totalTokens":9}},`, `"metadata":null,`) + `"role":"assistant","parts":[` + m.some(7, func() string {
		metadata := m.one("", `,"providerMetadata":{"openai":{"itemId":"rs_1"}}`)
		tool := m.one(`"type":"tool-f"`, `"type":"dynamic-tool","toolName":"f"`) + `,"toolCallId":"` + m.id("c") + `","input":` + m.one(`{}`, `{"a":1}`, `"text"`)
		return m.one(`{"type":"text","text":"x","state":"done"`+metadata+`}`, `{"type":"reasoning","text":"hm"`+metadata+`}`, `{"type":"step-start"}`,
			`{"type":"source-url","sourceId":"s","url":"https://a.b","title":"t"}`, `{"type":"source-document","sourceId":"s","mediaType":"a/b","title":"t"}`,
			`{"type":"file","mediaType":"image/png","url":"data:image/png;base64,iVBORw0KGgo="}`, `{"type":"data-x","data":{"a":1}}`,
			`{"type":"text","text":"sum","providerMetadata":{"anthropic":{"type":"compaction"}}}`, `{"type":"custom","kind":"openai.compaction","providerMetadata":{"openai":{"type":"compaction","itemId":"cmp_1","encryptedContent":"e"}}}`,
			`{"type":"reasoning-file","mediaType":"image/png","url":"data:image/png;base64,iVBORw0KGgo="}`, `{"type":"file","mediaType":"image/png","url":"https://a.b/c.png","filename":"c.png","providerMetadata":{"a":{}}}`,
			`{`+tool+`,"state":"output-available","output":{"a":[1]}}`, `{`+tool+`,"state":"output-error","errorText":"e"}`,
			`{`+tool+`,"state":"output-denied","approval":{"id":"a","approved":false,"reason":"r"}}`,
			`{"type":"text","text":"`+m.text()+`"}`, `{"type":"text","text":"","state":"streaming"}`, `{"type":"reasoning","text":"","state":"done","providerMetadata":{"anthropic":{"redactedData":"ZZ"}}}`,
			`{"type":"reasoning","text":"`+m.text()+`","providerMetadata":{"anthropic":{"signature":"s"},"google":{"thoughtSignature":"s"}}}`, `{"type":"data-x","id":"d","data":null}`,
			`{"type":"source-url","sourceId":"s","url":"https://a.b","providerMetadata":{"openai":{}}}`, `{"type":"source-document","sourceId":"s","mediaType":"a/b","title":"t","filename":"n"}`,
			`{`+tool+`,"state":"output-available","output":`+m.one(`null`, `""`, `[]`, `1e400`)+`,"preliminary":true,"resultProviderMetadata":{"openai":{"itemId":"x"}},"toolMetadata":{"a":1}}`,
			`{`+tool+`,"state":"output-available","output":"r","approval":{"id":"a","approved":true}}`, `{`+tool+`,"state":"output-error","errorText":"","rawInput":"{\"a\":","providerExecuted":false}`,
			`{"type":"custom","kind":"xai.x","providerMetadata":{"xai":{"a":[1]}}}`, `{"type":"steering-message","id":"s","parts":[{"type":"text","text":"x"}]}`,
			`{`+tool+`,"state":"output-available","output":"r","providerExecuted":true,"title":"T","callProviderMetadata":{"google":{"thoughtSignature":"s"}}}`)
	}) + `]}`}
}

// turnFormats have for each format who makes its turns, and what the user says.
var turnFormats = map[session.Format]struct {
	make func(*turnMaker) []string
	user string
}{
	session.OpenAIChat:      {(*turnMaker).chatTurn, `{"role":"user","content":"u"}`},
	session.OpenAIResponses: {(*turnMaker).itemTurn, `{"role":"user","content":"u"}`},
	session.Gemini:          {(*turnMaker).geminiTurn, `{"role":"user","parts":[{"text":"u"}]}`},
	session.AISDK:           {(*turnMaker).uiTurn, `{"id":"u","role":"user","parts":[{"type":"text","text":"u"}]}`},
}

// changedTurns are the rules that forbid what an answer has, with the source of each: a view may change only these.
var changedTurns = map[session.Format]map[string]string{
	session.Gemini: {
		"part_mended": "an empty text is a part without data: V-G4, Vertex AI refuses it",
		"empty_text":  "so is one without a signature",
	},
}

// turnsWanted returns how many turns a format are made: some thousand, or VARVE_TURNS.
func turnsWanted(t *testing.T) int {
	if n, err := strconv.Atoi(os.Getenv("VARVE_TURNS")); err == nil {
		return n
	}
	if testing.Short() {
		return 500
	}
	return 3000
}

// holdsStrictly reports what a strict append would refuse of what a provider has answered.
func holdsStrictly(t *testing.T, f session.Format, bodies []string) {
	t.Helper()
	whole := []byte(`[` + strings.Join(bodies, ",") + `]`)
	for _, model := range strictModels[f] {
		b := &ingest.Batch{Format: f, Tells: true, Strict: true}
		if err := b.Open(whole); err != nil {
			t.Fatal(err)
		}
		b.List("/messages", rawjson.Span{Start: 0, End: len(whole)}, len(bodies))
		if _, err := b.Messages(); err != nil {
			t.Fatalf("%s: strict refuses an answer: %v\n%s", f, err, whole)
		}
		if err := b.Tell(model); err != nil {
			t.Fatalf("%s: strict refuses an answer for %q: %v\n%s", f, model, err, whole)
		}
	}
}

// strictModels are models of each format's servers, "" for one that is not known.
var strictModels = map[session.Format][]string{
	session.OpenAIChat:      {"", "gpt-5.6", "deepseek-v4-pro", "groq/openai/gpt-oss-120b", "mistral-large-latest"},
	session.OpenAIResponses: {"", "gpt-5.6"},
	session.Anthropic:       {"", "claude-opus-5-5", "kimi-k3", "deepseek-v4-pro"},
	session.Gemini:          {"", "gemini-3.5-pro"},
	session.AISDK:           {"", "gpt-5.6", "claude-opus-5-5", "gemini-3.5-pro"},
}

// TestWhatAProviderReturnedGoesBackAsItWas reads turns in their own format. What a view changes must be in changedTurns.
func TestWhatAProviderReturnedGoesBackAsItWas(t *testing.T) {
	t.Parallel()
	for f, of := range turnFormats {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			for seed := range turnsWanted(t) {
				m := &turnMaker{Rand: rand.New(rand.NewPCG(uint64(seed), 34))}
				turn := of.make(m)
				log, bodies := []string{of.user}, []string{of.user}
				for _, answer := range append(turn, m.results...) {
					log, bodies = append(log, came(answer)), append(bodies, goesBack(answer))
				}
				user := strings.Replace(of.user, `"id":"u"`, `"id":"v"`, 1)
				log, bodies = append(log, user), append(bodies, user)
				holdsStrictly(t, f, log)
				made := wiretest.Render(f, storedOf(f, log), wire.Options{})
				if slices.Contains(repairKinds(made.Repairs), "compacted") {
					bodies = bodies[max(len(bodies)-len(made.Bodies), 0):]
				}
				known := slices.ContainsFunc(made.Repairs, func(r wire.Repair) bool { return changedTurns[f][r.Kind] != "" })
				if !known && string(bytes.Join(made.Bodies, []byte("\n"))) != strings.Join(bodies, "\n") {
					t.Fatalf("seed %d: the view has\n%s\nrepairs %v\nof\n%s", seed, bytes.Join(made.Bodies, []byte("\n")), made.Repairs, strings.Join(bodies, "\n"))
				}
			}
		})
	}
}
