package conformance

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// difference is a call that Varve answers differently, by the class that names why; "" is one in which it does not.
type difference struct{ system, op, input, class string }

// differences returns some that few vectors have.
func differences() []difference {
	const (
		engine  = `"config":{"maxTokens":100,"compactionThreshold":0.5,"preserveRecentCount":2,"maxToolResultChars":40}`
		long    = `"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"`
		calls   = `{"role":"assistant","content":"","tool_calls":[{"id":"a","name":"f","arguments":{}},{"id":"b","name":"g","arguments":{}}]}`
		first   = `{"role":"tool","tool_call_id":"a","name":"f","content":` + long + `}`
		brief   = `{"role":"tool","tool_call_id":"a","name":"f","content":"no"}`
		second  = `{"role":"tool","tool_call_id":"b","name":"g","content":"yes"}`
		spaced  = `{"role":"tool","tool_call_id":"a","name":"f","content":"x          y          z"}`
		longer  = `{"role":"tool","tool_call_id":"b","name":"g","content":` + long + `}`
		open    = `{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}`
		turns   = `{"role":"user","content":"u1"},{"role":"assistant","content":"a1"},{"role":"user","content":"u2"},` + open
		sums    = `"llm":{"responses":[{"text":"<summary>S</summary>"}]}`
		emoji   = `"💻🚀 ok 😀👩‍💻🚀 ok 😀👩‍💻🚀 ok 😀👩‍💻🚀 "`
		proxied = `"configBase":"default","config":{"enabled":true,"min_tool_output_tokens_to_compact":0},"messages":[`
	)
	large := strings.Repeat(`word word\n`, 200)
	reads := func(id, path string) string {
		return `{"role":"assistant","content":"","tool_calls":[{"id":"` + id + `","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"` + path + `\"}"}}]}`
	}
	returned := func(id string) string { return `{"role":"tool","tool_call_id":"` + id + `","content":"` + large + `"}` }
	parts := func(id, name string) string {
		return `{"role":"tool","tool_call_id":"` + id + `",` + name + `"content":[{"type":"text","text":"` + large + `"}]}`
	}
	return []difference{
		{"falai", "checkAndCompact", engine + `,"messages":[{"role":"user","content":` + long + `},{"role":"user","content":` + long + `}],"llm":{"responses":[{"message":"S"}]}`, "nothing"},
		{"falai", "checkAndCompact", engine + `,"messages":[{"role":"user","content":` + long + `},` + calls + `,` + first + `,` + second + `,{"role":"assistant","content":"x"}],"llm":{"responses":[{"message":"S"}]}`, "units"},
		{"falai", "checkAndCompact", strings.Replace(engine, "100", "48", 1) + `,"messages":[{"role":"user","content":` + long + `},` + calls + `,` + brief + `,` + second + `,{"role":"user","content":"x"},{"role":"assistant","content":"y"}],"llm":{"responses":[{"error":"down"}]}`, "units"},
		{"falai", "checkAndCompact", strings.Replace(engine, "100", "88", 1) + `,"messages":[{"role":"user","content":"go"},` + calls + `,` + spaced + `,` + longer + `,{"role":"user","content":"u"},{"role":"assistant","content":"v"}]`, "own"},
		{"codelia", "compact", `"config":{},"messages":[{"role":"user","content":"u"}],` + sums, "nothing"},
		{"codelia", "compact", `"config":{},"messages":[` + turns + `,{"role":"user","content":"u3"}],` + sums, "units"},
		{"codelia", "compact", `"config":{"retainLastTurns":0},"messages":[` + turns + `],` + sums, "units"},
		{"codelia", "processToolMessage", `"config":{"maxMessageBytes":2},"messages":[{"role":"tool","tool_call_id":"c","tool_name":"f","content":"xxxx"},{"role":"tool","tool_call_id":"d","tool_name":"f","content":"日本"}]`, "limit"},
		{"codelia", "trimMessages", `"config":{"contextBudgetTokens":10},"messages":[{"role":"tool","tool_call_id":"é","tool_name":"f","content":` + long + `,"output_ref":{"id":"é"}}]`, ""},
		{"codelia", "shouldCompact", `"config":{"thresholdRatio":2},"llm":{"model":"m"},"registry":[{"id":"m","contextWindow":10}],"usages":[{"model":"m","total_tokens":10}]`, "manual"},
		{"cortex", "micro", `"config":{"hotZoneRatio":2},"contextWindow":1000,"currentTokens":900,"messages":[{"role":"user","content":"u"}]`, "manual"},
		{"cortex", "computeAction", `"config":{"bookendMaxChars":60,"bookendMinChars":22},"degradationSpan":400,"hotZone":100,"offsets":[499],"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","name":"Read","text":` + emoji + `}]}]`, ""},
		{"cortex", "micro", `"config":{"hotZoneMinTokens":1,"hotZoneRatio":0,"bookendMaxChars":2,"bookendMinChars":2},"contextWindow":1000,"currentTokens":900,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","name":"Read","text":"a😀 and then much more of it, and the end😀z"}]},{"role":"assistant","content":"pppppppppp"}]`, "whole"},
		{"llm-proxy", "compact", proxied + reads("1", "a") + `,` + parts("1", "") + `,` + reads("2", "a") + `,` + parts("2", "") + `]`, "own"},
		{"llm-proxy", "compact", proxied + reads("1", "a") + `,` + returned("1") + `,` + reads("1", "b") + `,` + returned("1") + `]`, "units"},
		{"codelia", "processToolMessage", `"config":{"maxMessageBytes":100},"messages":[` + parts("1", `"tool_name":"f",`) + `]`, "own"},
		{"tool-compaction", "transform", `"config":{},"messages":[{"role":"assistant","toolCalls":[{"id":"1","toolName":"é","arguments":{}}],"toolResults":[]},{"role":"tool","content":"","toolCalls":[],"toolResults":[{"id":"1","toolName":"é","result":{"r":` + long + `}}]},{"role":"assistant","toolCalls":[{"id":"2","toolName":"é","arguments":{}}],"toolResults":[]},{"role":"tool","content":"","toolCalls":[],"toolResults":[{"id":"2","toolName":"é","result":{"r":"x"}}]}]`, "plain"},
	}
}

// TestADifferenceIsInTheClassOfItsReason asks for the class of each.
func TestADifferenceIsInTheClassOfItsReason(t *testing.T) {
	t.Parallel()
	for _, c := range differences() {
		v := vector{System: c.system, Op: c.op}
		decode([]byte(`{`+c.input+`}`), &v.Input)
		v.Output = says(v)
		v.Half = c.class == "whole"
		class, diff := answered(v)
		if class != c.class || (diff == "") != (c.class == "") {
			t.Errorf("%s %s is in class %q, not %q:\n%s\nof %s", c.system, c.op, class, c.class, diff, c.input)
		}
	}
}

// classRow is a row of the table of classes in docs/compatibility.md.
type classRow struct{ name, systems, says string }

func classRows() (rows []classRow) {
	page, _, _ := strings.Cut(string(must(os.ReadFile("../../../docs/compatibility.md"))), "## The engine")
	_, page, _ = strings.Cut(page, "| --- |")
	row := regexp.MustCompile(`(?m)^\| ([a-z ]+) \| ([a-z, -]+) \| [^|]+ \| ([^|]+) \|$`)
	for _, cells := range row.FindAllStringSubmatch(page, -1) {
		rows = append(rows, classRow{cells[1], cells[2], cells[3]})
	}
	return rows
}
