package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/policy"
)

// systemRow shows rows of docs/compatibility.md on the running product: messages that one request has compacted.
type systemRow struct {
	policy   string // members beside the profile
	window   int    // 0: 1,000, so that everything is over its target
	format   string // "": openai-chat
	messages []string
	want     []string // texts that the answer has
	gone     []string // texts that it does not have
	results  []string // texts of what was taken out
	reason   string   // a text that the reason has
	same     bool     // nothing is changed
}

// checkRows compacts the messages of each row under a system's profile. The rows' names are their numbers on the page.
func checkRows(t *testing.T, profile string, rows map[string]systemRow) {
	t.Helper()
	w := newWorld(t)
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			got := w.compactsRow(t, profile, row)
			if got.Changed == row.same {
				t.Errorf("changed is %t", got.Changed)
			}
			if row.same && !strings.Contains(name, "repaired") && !row.kept(got.Messages) {
				t.Errorf("the messages are not those that were sent: %s", got.Messages)
			}
			shown := textsOf(t, got.Messages)
			for _, text := range row.want {
				if !strings.Contains(shown, text) {
					t.Errorf("no %q in\n%s", text, clip(shown))
				}
			}
			for _, text := range row.gone {
				if strings.Contains(shown, text) {
					t.Errorf("%q is still in\n%s", text, clip(shown))
				}
			}
			if !strings.Contains(got.Reason, row.reason) {
				t.Errorf("the reason is %q", got.Reason)
			}
			for _, text := range row.results {
				if !slices.ContainsFunc(got.Results, func(r returned) bool { return strings.Contains(r.Content, text) }) {
					t.Errorf("no result has %q", text)
				}
			}
			if len(got.Messages) != len(row.messages) && !strings.Contains(name, "fewer") {
				t.Errorf("%d messages became %d", len(row.messages), len(got.Messages))
			}
		})
	}
}

func (w *world) compactsRow(t *testing.T, profile string, row systemRow) statelessAnswer {
	t.Helper()
	policy := fmt.Sprintf(`{"profile":%q`, profile)
	if row.policy != "" {
		policy += "," + row.policy
	}
	if row.window == 0 {
		row.window = 1000
	}
	if row.format == "" {
		row.format = "openai-chat"
	}
	return decoded[statelessAnswer](w.must(http.StatusOK, "POST", "/v1/compact", fmt.Sprintf(
		`{"format":%q,"window_tokens":%d,"include_results":true,"policy":%s},"messages":[%s]}`,
		row.format, row.window, policy, strings.Join(row.messages, ","))))
}

func (row systemRow) kept(messages []json.RawMessage) bool {
	return slices.EqualFunc(row.messages, messages, func(a string, b json.RawMessage) bool { return a == string(b) })
}

func clip(text string) string { return text[:min(len(text), 3000)] }

// textsOf returns all strings of some messages, one a line.
func textsOf(t *testing.T, messages []json.RawMessage) string {
	t.Helper()
	var texts []string
	var walk func(value any)
	walk = func(value any) {
		switch value := value.(type) {
		case string:
			texts = append(texts, value)
		case []any:
			for _, v := range value {
				walk(v)
			}
		case map[string]any:
			for _, v := range value {
				walk(v)
			}
		}
	}
	for _, m := range messages {
		var value any
		if err := json.Unmarshal(m, &value); err != nil {
			t.Fatal(err)
		}
		walk(value)
	}
	return strings.Join(texts, "\n")
}

func quoted(text string) string {
	literal, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(literal)
}

// asks returns a call, answers its result, exchange both.
func asks(id, tool, arguments string) string {
	return fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":%q,"type":"function","function":{"name":%q,"arguments":%s}}]}`,
		id, tool, quoted(arguments))
}

func answers(id, text string) string {
	return fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":%s}`, id, quoted(text))
}

func exchange(id, tool, arguments, text string) []string {
	return []string{asks(id, tool, arguments), answers(id, text)}
}

// talk joins a user's question and exchanges.
func talk(exchanges ...[]string) []string {
	return slices.Concat(append([][]string{{user("go")}}, exchanges...)...)
}

// body returns a text of about n bytes that begins and ends with a name.
func body(name string, n int) string {
	line := "some text of a file, and more of it\n"
	return name + " begins\n" + strings.Repeat(line, n/len(line)) + name + " ends"
}

func TestRowsOfToolCompaction(t *testing.T) {
	t.Parallel()
	twice := talk(exchange("c1", "Read", `{"path":"a"}`, body("old", 1200)), exchange("c2", "Read", `{"path":"a"}`, body("new", 1200)))
	grouped := func(first, second string) []string {
		return talk(exchange("c1", "q", first, body("old", 1200)), exchange("c2", "q", second, body("new", 1200)))
	}
	const one = `"dedupe":{"fields":{"q":["id"]}}`
	exact := func(n int) []string {
		return talk(exchange("c1", "Read", `{}`, strings.Repeat("o", n)), exchange("c2", "Read", `{}`, "new"))
	}
	write := func(id, name string) []string {
		return exchange(id, "Write", `{"path":"`+strings.Repeat("p", 3000)+`","content":"`+name+strings.Repeat("x", 500)+`","n":7,"list":["`+strings.Repeat("y", 600)+`"]}`, "ok")
	}
	const omit = `"dedupe":{"fields":{"Write":["path"]}}`
	argument := func(n int) []string {
		return exchange(fmt.Sprint("c", n), "Write", `{"path":"p","content":"`+strings.Repeat("a", n)+`"}`, "ok")
	}
	checkRows(t, "tool-compaction", map[string]systemRow{
		"3 at the limit":          {policy: `"only_smaller":false`, messages: exact(100), same: true},
		"4 above the limit":       {policy: `"only_smaller":false`, messages: exact(101), gone: []string{"ooo"}, want: []string{"new"}},
		"2 at the limit":          {policy: `"only_smaller":false,` + omit, messages: talk(argument(100), argument(2)), same: true},
		"2 17 above the limit":    {policy: `"only_smaller":false,` + omit, messages: talk(argument(101), argument(2)), want: []string{`"bytes":101,"sha256":"` + digest(strings.Repeat("a", 101)) + `"`}},
		"2 not smaller":           {policy: omit, messages: talk(argument(101), argument(2)), same: true},
		"5":                       {policy: `"protect":{"tools":["Read"]}`, messages: twice, same: true},
		"6":                       {policy: one, messages: grouped(`{"id":1,"x":"a"}`, `{"id":1,"x":"b"}`), gone: []string{"old begins"}, want: []string{"new begins"}},
		"7":                       {messages: talk(exchange("c1", "list_files", `{"a":1}`, body("old", 1200)), exchange("c2", "list_files", `{"b":2}`, "new")), gone: []string{"old begins"}},
		"8 13 15 16 18 19":        {policy: omit, messages: talk(write("c1", "first"), write("c2", "second")), gone: []string{"firstx"}, want: []string{strings.Repeat("p", 3000), "[omitted]", `"_omitted"`, `"bytes":505`, `"sha256":`, `"n":7`, "secondx"}},
		"9":                       {policy: one, messages: grouped(`{"x":1}`, `{"id":null}`), gone: []string{"old begins"}},
		"10":                      {policy: one, messages: grouped(`{"id":"1"}`, `{"id":1}`), same: true},
		"11 12 20 21 22 25":       {messages: twice, want: []string{"[tool_compaction] Tool result compacted for tool=Read, callId=c1. Large fields omitted; full content: read_result r3.0-", "new begins", "new ends", `{"path":"a"}`}, gone: []string{"some text of a file, and more of it\nold ends", "old begins"}},
		"23 parallel":             {messages: []string{user("go"), `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"Read","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"Read","arguments":"{}"}}]}`, answers("a", body("old", 1200)), answers("b", body("new", 1200))}, gone: []string{"old begins"}, want: []string{"new begins"}},
		"24":                      {messages: append(talk(exchange("c1", "Read", `{}`, body("old", 1200))), asks("c2", "Read", `{}`)), gone: []string{"old begins"}},
		"24 given up, fewer":      {messages: append(talk(exchange("c1", "Read", `{}`, body("old", 1200))), asks("c2", "Read", `{}`), user("go on")), gone: []string{"old begins"}},
		"30 in a large window":    {window: 128_000, messages: twice, gone: []string{"old begins"}},
		"28 C nothing to compact": {messages: talk(exchange("c1", "Read", `{"path":"a"}`, "short"), exchange("c2", "Read", `{"path":"a"}`, "short")), same: true},
		"31":                      {policy: omit, messages: talk(write("c1", "first"), write("c2", "second")), results: []string{"firstxxx"}},
		"32 repaired":             {messages: append(twice[:1:1], answers("nobody", body("orphan", 1200))), same: true, want: []string{"orphan begins", "orphan ends"}},
	})
}

func TestRowsOfCortex(t *testing.T) {
	t.Parallel()
	// turns returns results of about 1,000 tokens, the first of them oldest.
	turns := func(n int, tool, text string) (all [][]string) {
		for i := range n {
			all = append(all, exchange(fmt.Sprintf("c%d", i), tool, fmt.Sprintf(`{"n":%d}`, i), fmt.Sprintf("%s%d ", text, i)+strings.Repeat("word ", 800)))
		}
		return all
	}
	const near = `"trim":{"hot_zone_min_tokens":2000,"hot_zone_ratio":0.01,"degradation_span_ratio":0.1}`
	const line = `"trim":{"hot_zone_min_tokens":2000,"hot_zone_ratio":0.01,"degradation_span_ratio":0}`
	of := func(tool string) []string { return talk(turns(30, tool, "first line of ")...) }
	whole := func(n int) string { return fmt.Sprintf("first line of %d ", n) + strings.Repeat("word ", 799) + "word" }
	checkRows(t, "cortex", map[string]systemRow{
		"10 not widened":       {policy: near, window: 40_000, messages: of("Read"), gone: []string{whole(24)}},
		"10 widened":           {policy: `"trim":{"hot_zone_min_tokens":2000,"hot_zone_ratio":0.01,"degradation_span_ratio":0.1,"extended_retention_multiplier":4}`, window: 40_000, messages: of("Bash"), want: []string{whole(24)}},
		"39":                   {policy: line, window: 40_000, format: "anthropic", messages: pictured(12), want: []string{"[Tool result trimmed -- Read", "picture 0"}, gone: []string{"seen 0 ends"}},
		"41":                   {policy: line, window: 40_000, format: "anthropic", messages: parallel(30), want: []string{"full content: read_result r3.0-", "full content: read_result r3.1-"}},
		"14 16 38":             {policy: near, window: 40_000, messages: of("Read"), want: []string{"first line of 29 word"}, gone: []string{"first line of 0 word word word word word word word word word word word word word word word word word word word word word word word word"}},
		"18":                   {policy: near, window: 40_000, messages: of("Bash"), want: []string{"... [~", " tokens trimmed; full content: read_result r"}},
		"19":                   {policy: near, window: 40_000, messages: of("Bash"), want: []string{"[Result persisted: r", "tokens) -- Bash]\n\nfirst line of"}},
		"20 22 35":             {policy: line, window: 40_000, messages: of("Read"), want: []string{`[Tool result trimmed -- Read: "first line of 0 word`, "see assistant response below for findings"}},
		"13":                   {policy: line, window: 40_000, messages: of("Mystery"), want: []string{`[Tool result trimmed -- Mystery: "first line of 0`}},
		"21":                   {policy: line, window: 40_000, messages: of("Bash"), want: []string{`[Tool result persisted -- Bash: "first line of 0 word`}},
		"12":                   {policy: `"trim":{"hot_zone_min_tokens":2000,"hot_zone_ratio":0.01,"degradation_span_ratio":0,"categories":{"Read":"computational"}}`, window: 40_000, messages: of("Read"), want: []string{"[Tool result persisted -- Read"}},
		"23":                   {policy: line, window: 40_000, messages: of("TaskOutput"), want: []string{"[Tool result cleared"}, gone: []string{"first line of 0"}},
		"30 parallel":          {window: 1_000_000, messages: talk(exchange("c", "Read", `{}`, body("1", 140_000)), exchange("d", "Read", `{"n":2}`, body("2", 140_000)), exchange("e", "Read", `{"n":3}`, body("3", 140_000)), exchange("f", "Read", `{"n":4}`, body("4", 140_000))), same: true},
		"33 below a quarter":   {policy: near, window: 400_000, messages: of("Read"), same: true},
		"40 text beside":       {policy: line, window: 40_000, format: "anthropic", messages: besides(30), want: []string{"keep this text 0", "[Tool result"}, gone: []string{"answer 0 ends"}},
		"27 cap at insertion":  {window: 1_000_000, messages: talk(exchange("c", "Read", `{}`, body("big", 400_000))), policy: `"target":0.001`, want: []string{"tokens trimmed at insertion; full content: read_result r", "big begins", "big ends"}},
		"28 not above the cap": {window: 1_000_000, messages: talk(exchange("c", "Read", `{}`, body("small", 4_000))), same: true},
	})
}

// besides returns turns of Anthropic's format in which the user's text stands beside a result.
func besides(n int) []string {
	messages := []string{`{"role":"user","content":"go"}`}
	for i := range n {
		messages = append(messages,
			fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":"t%d","name":"Read","input":{"n":%d}}]}`, i, i),
			fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":%s},{"type":"text","text":"keep this text %d"}]}`,
				i, quoted(body(fmt.Sprintf("answer %d", i), 4000)), i))
	}
	return messages
}

// pictured returns turns of Anthropic's format with an image beside the text of a result.
func pictured(n int) []string {
	messages := []string{`{"role":"user","content":"go"}`}
	for i := range n {
		messages = append(messages,
			fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":"t%d","name":"Read","input":{"n":%d}}]}`, i, i),
			fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":[{"type":"text","text":%s},{"type":"image","source":{"type":"url","url":"https://a.example/picture %d"}}]}]}`,
				i, quoted(body(fmt.Sprintf("seen %d", i), 4000)), i))
	}
	return messages
}

// parallel returns turns of Anthropic's format with two results in one message.
func parallel(n int) []string {
	messages := []string{`{"role":"user","content":"go"}`}
	for i := range n {
		messages = append(messages,
			fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":"a%d","name":"Read","input":{"n":%d}},{"type":"tool_use","id":"b%d","name":"Read","input":{"m":%d}}]}`, i, i, i, i),
			fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a%d","content":%s},{"type":"tool_result","tool_use_id":"b%d","content":%s}]}`,
				i, quoted(body("one", 4000)), i, quoted(body("two", 4000))))
	}
	return messages
}

func TestRowsOfFalai(t *testing.T) {
	t.Parallel()
	const brief = `{"role":"system","content":"be brief"}`
	results := func(n int) (all [][]string) {
		for i := range n {
			all = append(all, exchange(fmt.Sprintf("c%d", i), "Read", fmt.Sprintf(`{"n":%d}`, i), fmt.Sprintf("result %d ", i)+strings.Repeat("1234567890", 1200)))
		}
		return all
	}
	checkRows(t, "falai", map[string]systemRow{
		"3 4":                                 {window: 60_000, policy: `"target":0.5`, messages: talk(results(10)...), want: []string{"[Truncated: 12009 chars total, showing first 5000; read_result r"}},
		"2":                                   {window: 1_000_000, messages: talk(results(10)...), same: true, reason: "the target is 790000: no stage has to act"},
		"5 of JSON":                           {window: 1000, policy: `"summarise":{"enabled":false},"truncate":{"enabled":false}`, messages: talk(exchange("c", "Read", `{}`, "["+strings.Repeat(`{"id":1},`, 700)+"0]"), results(2)[0], results(2)[1]), want: []string{"[Truncated: 6303 chars total, showing first 5000; read_result r"}},
		"6 25":                                {window: 1000, policy: `"only_smaller":false,"whitespace":{"enabled":false},"cap":{"max_chars":100,"head_chars":100},"summarise":{"enabled":false},"truncate":{"enabled":false}`, messages: talk(results(10)...), want: []string{"[Truncated: 12009 chars total, showing first 100; read_result r"}},
		"7":                                   {window: 1000, policy: `"summarise":{"enabled":false},"truncate":{"enabled":false}`, messages: talk(exchange("c", "Read", `{}`, "a   \n\n\n\n  b"+strings.Repeat(" \n\n\n x", 500)), results(4)[0], results(4)[1]), gone: []string{"a   \n\n\n\n  b"}},
		"16":                                  {window: 20_000, messages: talk(results(6)...), want: []string{"result 5 " + strings.Repeat("1234567890", 1200)}, policy: `"summarise":{"enabled":false},"truncate":{"enabled":false}`},
		"9 the system's message stays, fewer": {window: 10_000, policy: `"target":0.3`, messages: append([]string{brief}, talk(results(12)...)...), want: []string{"[Conversation Summary; in full: get_messages m2-"}},
		"9 or not, fewer":                     {window: 10_000, policy: `"target":0.3,"protect":{"system":false}`, messages: append([]string{brief}, talk(results(12)...)...), want: []string{"[Conversation Summary; in full: get_messages m1-"}},
		"9 17 fewer":                          {window: 10_000, policy: `"target":0.3`, messages: talk(results(12)...), want: []string{"[Conversation Summary; in full: get_messages m1-", "result 11 "}},
	})
}

func TestRowsOfLLMProxy(t *testing.T) {
	t.Parallel()
	two := func(tool, first, second string) []string {
		return talk(exchange("c1", tool, first, body("old", 3000)), exchange("c2", tool, second, body("new", 3000)))
	}
	stub := []string{"[COMPACTED] Previous output for "}
	gone := []string{"old begins"}
	checkRows(t, "llm-proxy", map[string]systemRow{
		"6 7 27": {messages: two("read_file", `{"path":"/a.py"}`, `{"path":"/a.py"}`), gone: gone, want: []string{
			"[COMPACTED] Previous output for /a.py (3007 bytes) was removed because a newer result for this resource exists later in the conversation. In full: read_result r3.0-", "new begins", "go"}},
		"9 cat":            {messages: two("cat", `{"path":"a"}`, `{"path":"a"}`), gone: gone, want: stub},
		"10 writes":        {messages: two("write_file", `{"path":"a"}`, `{"path":"a"}`), same: true},
		"10 commands":      {messages: two("bash", `{"command":"ls"}`, `{"command":"ls"}`), same: true},
		"11 search":        {messages: two("grep_search", `{"query":"x"}`, `{"query":"x"}`), gone: gone, want: stub},
		"11 grep is other": {messages: two("grep", `{"pattern":"x"}`, `{"pattern":"x"}`), same: true},
		"12":               {policy: `"dedupe":{"allow_operations":[],"deny_operations":[]}`, messages: two("bash", `{"command":"ls"}`, `{"command":"ls"}`), gone: gone, want: stub},
		"13 denied wins":   {policy: `"dedupe":{"allow_operations":["search"],"deny_operations":["search"]}`, messages: two("search", `{"query":"x"}`, `{"query":"x"}`), same: true},
		"14":               {policy: `"dedupe":{"allow_operations":["other"]}`, messages: two("mystery", `{"path":"x"}`, `{"path":"x"}`), gone: gone, want: stub},
		"15":               {policy: `"dedupe":{"allow_operations":[],"deny_operations":[]}`, messages: two("weather", `{"city":"x"}`, `{"city":"x"}`), same: true},
		"16":               {messages: two("pytest", `{"path":"t"}`, `{"path":"t"}`), gone: gone, want: stub},
		"17":               {messages: two("read_file", `{"path":"C:\\x\\y.py"}`, `{"path":"c:/x/y.py/"}`), gone: gone, want: []string{"output for c:/x/y.py"}},
		"18":               {messages: two("read_file", `{"path":"/a//b"}`, `{"path":"/a/b"}`), same: true},
		"19":               {messages: two("view_file", `{"AbsolutePath":"a","StartLine":1}`, `{"AbsolutePath":"a","StartLine":9}`), same: true},
		"20":               {messages: two("view_file", `{"TargetFile":"a"}`, `{"file_path":"a"}`), gone: gone, want: stub},
		"20 not filePath":  {messages: two("view_file", `{"filePath":"a"}`, `{"filePath":"a"}`), same: true},
		"21":               {policy: `"dedupe":{"keep_last":2}`, messages: two("cat", `{"path":"a"}`, `{"path":"a"}`), same: true},
		"23":               {policy: `"wording":{"stub":"[COMPACTED] A newer result for {resource} exists later.\nThis one had\n{bytes} bytes."}`, messages: two("cat", `{"path":"a"}`, `{"path":"a"}`), gone: gone, want: []string{"for a exists later.\nThis one had\n3007 bytes."}},
		"24":               {messages: two("cat", `{"path":"/k/sk-abcdefghijklmnopqrstuv"}`, `{"path":"/k/sk-abcdefghijklmnopqrstuv"}`), gone: gone, want: []string{"output for /k/sk-abcdefghijklmnopqrstuv ("}},
		"25":               {policy: `"dedupe":{"redact":true}`, messages: two("cat", `{"path":"/k/sk-abcdefghijklmnopqrstuv/f.py"}`, `{"path":"/k/sk-abcdefghijklmnopqrstuv/f.py"}`), gone: gone, want: []string{"output for /k/***/f.py ("}},
		"26":               {policy: `"dedupe":{"redact":true}`, messages: two("cat", `{"path":"/home/user/f.py"}`, `{"path":"/home/user/f.py"}`), gone: gone, want: []string{"output for /home/user/f.py ("}},
		"38":               {messages: talk(exchange("c1", "cat", `{"path":"a"}`, strings.Repeat("word ", 150)), exchange("c2", "cat", `{"path":"a"}`, "new")), same: true},
		"40 empty":         {messages: two("cat", ``, `{}`), same: true},
		"40 no JSON":       {messages: two("cat", `not json`, `not json`), gone: gone, want: []string{"output for not json ("}},
		"42":               {messages: talk(exchange("c1", "read_file", `{"path":"a"}`, body("old", 3000)), exchange("c2", "view_file", `{"path":"a"}`, body("new", 3000))), same: true},
		"8 list_dir":       {messages: two("list_directory", `{"path":"a"}`, `{"path":"a"}`), gone: gone, want: stub},
	})
}

func TestRowsOfCodelia(t *testing.T) {
	t.Parallel()
	big := body("big", 100_000)
	results := func(n, size int) (all [][]string) {
		for i := range n {
			all = append(all, exchange(fmt.Sprintf("c%d", i), "Read", fmt.Sprintf(`{"n":%d}`, i), body(fmt.Sprintf("result %d", i), size)))
		}
		return all
	}
	checkRows(t, "codelia", map[string]systemRow{
		"4 6":                                {window: 128_000, policy: `"target":0.1`, messages: talk(exchange("c", "Read", `{}`, big)), want: []string{"big begins\n", "[tool output truncated; read_result ref=r3.0-"}, gone: []string{"big ends"}},
		"5":                                  {window: 128_000, policy: `"target":0.001,"budget":{"enabled":false}`, messages: talk(exchange("c", "Read", `{}`, "begins "+strings.Repeat("x", 5000)+" ends\nnext line")), gone: []string{strings.Repeat("x", 2001)}},
		"2 9 10":                             {window: 80_000, messages: talk(results(12, 9000)...), want: []string{"[tool output trimmed; read_result ref=r3.0-", "result 11 begins"}, gone: []string{"result 0 begins"}},
		"3":                                  {window: 1_000_000, policy: `"budget":{"tokens":5000}`, messages: talk(results(12, 9000)...), want: []string{"[tool output trimmed; read_result ref=r3.0-", "result 11 begins"}, gone: []string{"result 0 begins"}},
		"10 one large newest":                {window: 128_000, policy: `"tokens":{"tokenizer":"bytes4"}`, messages: talk(append(results(3, 38_000), exchange("n", "Read", `{}`, body("huge", 370_000)))...), want: []string{"huge begins", "result 2 begins", "result 1 begins"}, gone: []string{"result 0 begins"}},
		"33 the newest turn is large, fewer": {window: 64_000, messages: append([]string{`{"role":"system","content":"be brief"}`, user(body("old", 200_000)), user("the task")}, talk(results(5, 9000)...)[1:]...), want: []string{"the task", "result 0 begins", "result 4 begins"}, gone: []string{"old ends"}},
		"29 33 fewer":                        {window: 8_000, policy: `"budget":{"enabled":false},"target":0.2`, messages: append(append([]string{`{"role":"system","content":"be brief"}`}, talk(results(8, 4000)...)...), user("and now?")), want: []string{"be brief", "and now?"}, gone: []string{"result 0 begins\nsome text of a file, and more of it\nsome text of a file, and more of it\nsome"}},
	})
}

func TestAnAnswerThatIsFedBackIsUnchanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for system, row := range map[string]systemRow{
		"tool-compaction 29": {messages: talk(exchange("c1", "Read", `{}`, body("old", 1200)), exchange("c2", "Read", `{}`, body("new", 1200)))},
		"falai 26":           {window: 6_000, policy: `"target":0.5`, messages: talk(exchange("c1", "Read", `{}`, body("a", 12_000)), exchange("c2", "Read", `{"n":2}`, body("b", 3_000)), exchange("c3", "Read", `{"n":3}`, "c"), exchange("c4", "Read", `{"n":4}`, "d"))},
		"llm-proxy 29":       {messages: talk(exchange("c1", "cat", `{"path":"a"}`, body("old", 3000)), exchange("c2", "cat", `{"path":"a"}`, body("new", 3000)))},
	} {
		profile, _, _ := strings.Cut(system, " ")
		once := w.compactsRow(t, profile, row)
		row.messages = nil
		for _, m := range once.Messages {
			row.messages = append(row.messages, string(m))
		}
		if again := w.compactsRow(t, profile, row); !once.Changed || again.Changed || !row.kept(again.Messages) {
			t.Errorf("%s: changed %t, then %t: %s", system, once.Changed, again.Changed, again.Messages)
		}
	}
}

// TestProfilesHaveTheSystemsNumbers shows the rows of defaults.
func TestProfilesHaveTheSystemsNumbers(t *testing.T) {
	t.Parallel()
	profile := func(name string) policy.Policy {
		p, err := policy.Profile(name)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	cortex, falai, proxy, codelia := profile("cortex"), profile("falai"), profile("llm-proxy"), profile("codelia")
	for row, numbers := range map[string][2]any{
		"cortex 1-8": {
			[]any{cortex.Cap.MaxTokens, cortex.Trim.FloorRatio, cortex.Trim.HotZoneMinTokens, cortex.Trim.HotZoneRatio, cortex.Trim.BookendMaxChars, cortex.Trim.BookendMinChars, cortex.Trim.DegradationSpanRatio, cortex.Trim.ExtendedRetentionMultiplier},
			[]any{50_000, .25, 16_000, .05, 2000, 256, .4, 1.}},
		"cortex 11":        {len(cortex.Trim.Categories), 7},
		"cortex 15 and 17": {[]any{cortex.Trim.HotZoneMaxRatio, cortex.Trim.BookendSizes}, []any{0., 0}},
		"cortex 46":        {[]any{cortex.Summarise.Over, cortex.Summarise.KeepMessages, cortex.Summarise.Model, cortex.Truncate.Enabled}, []any{.7, 6, "", true}},
		"falai 5, 29":      {[]any{falai.Cap.MaxChars, falai.Protect.LastMessages}, []any{5000, 4}},
		"llm-proxy 24, 38": {[]any{proxy.Dedupe.Redact, proxy.Dedupe.MinTokens}, []any{false, 250}},
		"codelia 2":        {[]any{codelia.Budget.Tokens, codelia.Budget.Ratio, codelia.Budget.Min, codelia.Budget.Max}, []any{0, .25, 20_000, 60_000}},
		"codelia 4":        {[]any{codelia.Cap.MaxBytes, codelia.Cap.WholeLines}, []any{51_200, true}},
		"codelia 22, 27":   {[]any{codelia.Trigger, codelia.Summarise.KeepTurns}, []any{.8, 1}},
	} {
		if diff := cmp.Diff(numbers[1], numbers[0]); diff != "" {
			t.Errorf("%s (-system +profile):\n%s", row, diff)
		}
	}
}

// TestOnlyTheStagesThatAreNeededAct shows falai's rows 1 and 25: cheap stages first, and none after the view fits.
func TestOnlyTheStagesThatAreNeededAct(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	messages := talk()
	for i := range 10 {
		messages = append(messages, exchange(fmt.Sprintf("c%d", i), "Read", fmt.Sprintf(`{"n":%d}`, i), body("big", 12_000))...)
	}
	for window, want := range map[int][]string{60_000: {"cap"}, 20_000: {"cap", "whitespace", "summarise", "truncate"}} {
		got := w.compactsRow(t, "falai", systemRow{window: window, policy: `"target":0.5`, messages: messages})
		var entered []string
		for _, stage := range got.Stages {
			if stage.Entered {
				entered = append(entered, stage.Stage)
			}
		}
		if diff := cmp.Diff(want, entered); diff != "" {
			t.Errorf("in a window of %d (-want +got):\n%s", window, diff)
		}
	}
}
