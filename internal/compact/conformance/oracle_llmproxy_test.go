package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// llmProxySays returns what llm-proxy's application makes of a vector.
func llmProxySays(v vector) object { return newProxy(v).says(v) }

func (p *proxy) says(v vector) object {
	messages := objects(v.Input["messages"])
	estimate, isGiven := v.Input["tokenEstimate"].(float64)
	switch v.Op {
	case "categorize":
		categories := []any{}
		for _, tool := range v.Input["tools"].([]any) {
			categories = append(categories, proxyCategory(text(tool)))
		}
		return object{"categories": categories}
	case "redact":
		texts := []any{}
		for _, s := range v.Input["texts"].([]any) {
			texts = append(texts, proxyRedacted(text(s)))
		}
		return object{"texts": texts}
	case "extractIdentity":
		identities := []any{}
		for _, c := range objects(v.Input["cases"]) {
			if is := proxyIdentity(text(c["tool_name"]), c["arguments"]); is != nil {
				identities = append(identities, object{"str": strings.Join(is, ":")})
			} else {
				identities = append(identities, nil)
			}
		}
		return object{"identities": identities}
	case "should_compact":
		results := 0
		for _, m := range messages {
			results += map[bool]int{true: 1}[m["role"] == "tool" && m["tool_call_id"] != nil]
		}
		return object{"result": p.on("enabled") && len(messages) > 0 && (!isGiven || estimate > p.threshold()) && results > 1}
	case "pipeline":
		sum := 0
		for _, m := range messages {
			s, isText := m["content"].(string)
			if !isText && m["content"] != nil {
				return nil // as Python prints a list
			}
			sum += len([]rune(s))
		}
		if estimate, isGiven = float64(sum/4), true; estimate < p.threshold() {
			return object{"stage": "below_threshold_fast", "tokenEstimate": estimate}
		}
	case "diagnostics":
		return nil
	}
	for _, m := range messages {
		for _, call := range objects(m["tool_calls"]) {
			call["type"] = "function"
		}
		maps.DeleteFunc(m, func(_ string, value any) bool { return value == nil })
	}
	if !p.on("enabled") || isGiven && estimate <= p.threshold() {
		return p.answer(messages)
	}
	return p.compact(messages, v.Input["forceError"] != nil)
}

// proxy is llm-proxy with its settings.
type proxy struct {
	config                     object
	allow, deny, tools, noTool []any
	stale                      map[string]bool
	compacted                  int

	// What its manual has and it does not do: a result that is only a picture is one, and three settings count.
	manual  bool
	errors  bool // a result that is an error supersedes nothing
	sound   bool // what fails inside is left out, and no metadata says that a result was compacted
	secrets bool // the report hides them, too
	paired  bool // a result is of the call before it that has its id
	stored  bool // a result in parts has the size that is stored
}

func newProxy(v vector) *proxy {
	p := &proxy{config: section(v.Input["config"]), stale: map[string]bool{}}
	if v.Input["configBase"] == "default" {
		p.allow = []any{"file_read", "view_file", "search", "list_dir", "test_execution"}
		p.deny = []any{"file_write", "command_execution"}
	}
	for name, list := range map[string]*[]any{"allowed_tool_categories": &p.allow, "denied_tool_categories": &p.deny} {
		if own, ok := p.config[name].([]any); ok {
			*list = own
		}
	}
	p.tools, _ = v.Input["tool_allowlist"].([]any)
	p.noTool, _ = v.Input["tool_denylist"].([]any)
	return p
}

func (p *proxy) on(name string) bool { return p.config[name] == true }

func (p *proxy) number(name string, preset float64) float64 {
	if n, ok := p.config[name].(float64); ok {
		return n
	}
	return preset
}

// threshold returns what the estimate must exceed: by its manual, max_tokens is a hard limit, too.
func (p *proxy) threshold() float64 {
	threshold := p.number("token_threshold", 100_000)
	if limit, isGiven := p.config["max_tokens"].(float64); p.manual && isGiven {
		return min(threshold, limit-1)
	}
	return threshold
}

func (p *proxy) answer(messages []object) object {
	return object{"messages": append([]object{}, messages...), "was_compacted": p.compacted > 0, "compacted_count": p.compacted,
		"stale_resources": append([]string{}, slices.Sorted(maps.Keys(p.stale))...)}
}

// compact replaces all results but the newest of each resource.
func (p *proxy) compact(messages []object, fails bool) object {
	calls, byResource, order := map[string]object{}, map[string][]int{}, []string{}
	for _, m := range messages {
		for _, c := range objects(m["tool_calls"]) {
			if f := section(c["function"]); m["role"] == "assistant" && (text(c["id"]) != "" || p.sound) && text(f["name"]) != "" {
				calls[text(c["id"])] = f
			}
		}
	}
	of, paired := make([][]string, len(messages)), pairedCalls(messages)
	for i, m := range messages {
		id, isResult := m["tool_call_id"].(string)
		isResult = isResult || p.sound && m["role"] == "tool"
		meta := section(m["metadata"])
		if empty := proxyText(m) == "" && !(p.manual && len(objects(m["content"])) > 0); !isResult || m["role"] != "tool" ||
			meta["_compacted"] == true && !p.sound || empty {
			continue
		}
		name, arguments := text(cmpOr(m["name"], meta["tool_name"])), meta["tool_args"]
		if p.sound {
			name, arguments = text(m["name"]), nil
		}
		call := calls[id]
		if p.paired || p.sound && id == "" {
			call = paired[i]
		}
		if call != nil {
			if name, arguments = text(call["name"]), call["arguments"]; arguments == nil || arguments == "" {
				arguments = "{}"
			}
		}
		if _, isList := arguments.([]any); (isList || fails) && !p.sound {
			return p.answer(messages)
		}
		if of[i] = proxyIdentity(name, arguments); name == "" || of[i] == nil {
			continue
		}
		key := jsonText(append([]string{strings.ToLower(name)}, of[i][1:]...))
		if byResource[key] == nil {
			order = append(order, key)
		}
		byResource[key] = append(byResource[key], i)
	}
	list := slices.Clone(messages)
	for _, key := range order {
		if is := of[byResource[key][0]][0]; len(p.tools) > 0 && !slices.ContainsFunc(p.tools, func(t any) bool { return strings.EqualFold(text(t), is) }) {
			return nil // whether the other lists hold for tools that this one lacks
		}
		keep := 1
		if p.manual {
			keep = int(max(p.number("preserve_last_n_results", 1), 1))
		}
		for p.errors && len(byResource[key]) > 0 && strings.HasPrefix(proxyText(list[byResource[key][len(byResource[key])-1]]), "Error: ") {
			byResource[key] = byResource[key][:len(byResource[key])-1]
		}
		for _, i := range byResource[key][:max(len(byResource[key])-keep, 0)] {
			if p.allows(of[i][0]) && float64(len([]rune(proxyText(list[i])))/4) >= p.number("min_tool_output_tokens_to_compact", 250) {
				list[i] = p.stub(list[i], of[i])
			}
		}
	}
	return p.answer(list)
}

// pairedCalls returns the calls before the results that answer them, by result.
func pairedCalls(messages []object) map[int]object {
	open, of := map[string]object{}, map[int]object{}
	for i, m := range messages {
		if id := text(m["tool_call_id"]); m["role"] == "tool" {
			of[i] = open[id]
			delete(open, id)
		}
		for _, c := range objects(m["tool_calls"]) {
			open[text(c["id"])] = section(c["function"])
		}
	}
	return of
}

// allows reports whether results of a tool are replaced.
func (p *proxy) allows(tool string) bool {
	has := func(list []any, name string) bool {
		return slices.ContainsFunc(list, func(entry any) bool { return strings.EqualFold(text(entry), name) })
	}
	switch category := any(proxyCategory(tool)); {
	case has(p.noTool, tool):
		return false
	case has(p.tools, tool):
		return true
	default:
		return !slices.Contains(p.deny, category) && (len(p.allow) == 0 || slices.Contains(p.allow, category))
	}
}

func (p *proxy) stub(m object, is []string) object {
	name := is[1]
	if p.on("redact_resource_identifiers") {
		name = proxyRedacted(name)
	}
	p.compacted++
	if stale := strings.Join(is, ":"); p.secrets {
		p.stale[proxyRedacted(stale)] = true
	} else {
		p.stale[stale] = true
	}
	size := len(proxyText(m))
	if parts, isList := m["content"].([]any); isList && p.stored {
		size = len(jsonText(parts))
	}
	stub := object{"role": "tool", "tool_call_id": m["tool_call_id"], "metadata": object{"_compacted": true, "_original_bytes": size},
		"content": fmt.Sprintf("[COMPACTED] Previous output for %s (%d bytes) was removed because a newer result for this resource exists "+
			"later in the conversation.", name, size)}
	if template := text(p.config["stub_template"]); p.manual && template != "" {
		stub["content"] = strings.NewReplacer("{resource}", name, "{size}", strconv.Itoa(size)).Replace(template)
	}
	maps.Copy(section(stub["metadata"]), section(m["metadata"]))
	if m["name"] != nil {
		stub["name"] = m["name"]
	}
	maps.DeleteFunc(stub, func(_ string, value any) bool { return value == nil })
	return stub
}

// proxyText returns the text of a message: that of its parts in lines.
func proxyText(m object) string {
	if s, ok := m["content"].(string); ok {
		return s
	}
	var lines []string
	for _, part := range objects(m["content"]) {
		if s, ok := part["text"].(string); ok && part["type"] == "text" {
			lines = append(lines, s)
		}
	}
	return strings.Join(lines, "\n")
}

// proxyTools are the tools of each category, in lower case without _ and -.
var proxyTools = map[string]string{
	"view_file": "viewfile viewfileoutline", "file_read": "readfile cat read getfilecontents fileread viewcodeitem searchinfile",
	"file_write":        "writefile writetofile replacefilecontent multireplacefilecontent applydiff applypatch editfile createfile",
	"command_execution": "runcommand executecommand bash shell terminal commandstatus sendcommandinput",
	"search":            "grepsearch codebasesearch findbyname search ripgrep find", "list_dir": "listdir ls directory listdirectory",
	"test_execution": "runpytest runtests test pytest unittest jest mocha npmtest",
}

func proxyCategory(tool string) string {
	plain := strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(tool))
	for category, tools := range proxyTools {
		if slices.Contains(strings.Fields(tools), plain) {
			return category
		}
	}
	return "other"
}

// notFinite are the numbers that Python reads and JSON does not have.
var notFinite = regexp.MustCompile(`\b(NaN|Infinity)\b`)

// proxyIdentity returns the tool and the keys of a call's resource, nil if it has none.
func proxyIdentity(tool string, arguments any) []string {
	values, _ := arguments.(object)
	if raw, isText := arguments.(string); isText {
		var parsed any
		if raw = strings.TrimSpace(raw); raw == "" {
			return nil
		}
		if err := json.Unmarshal(notFinite.ReplaceAll([]byte(raw), []byte("0.5")), &parsed); err != nil {
			return []string{tool, raw}
		}
		inner, isObject := parsed.(object)
		if !isObject {
			return []string{tool, raw}
		}
		values = inner
	}
	first := func(names string) (string, bool) {
		for name := range strings.FieldsSeq(names) {
			if s := strings.TrimSpace(text(values[name])); s != "" {
				return s, true
			}
		}
		return "", false
	}
	if path, ok := first("file_path path AbsolutePath filepath File TargetFile target_file filename"); ok {
		keys := []string{tool, proxyPath(path)}
		if category := proxyCategory(tool); category == "file_read" || category == "view_file" {
			keys = append(keys, proxyInteger(values, "offset", "offset start_line StartLine line_offset from_line")...)
			keys = append(keys, proxyInteger(values, "limit", "limit max_lines MaxLines end_line EndLine num_lines count")...)
		}
		return keys
	}
	if directory, ok := first("DirectoryPath SearchDirectory directory dir Cwd"); ok {
		keys := []string{tool, proxyPath(directory)}
		if pattern, ok := first("Pattern pattern"); ok {
			keys = append(keys, pattern)
		}
		return keys
	}
	if command, ok := first("command CommandLine cmd Input"); ok {
		word := strings.Fields(command)[0]
		word = strings.ToLower(word[strings.LastIndexAny(word, `/\`)+1:])
		for _, extension := range []string{".exe", ".sh", ".bat", ".cmd", ".ps1"} {
			word = strings.TrimSuffix(word, extension)
		}
		return []string{tool, word}
	}
	if query, ok := first("Query query pattern SearchPath"); ok {
		keys := []string{tool, query}
		if in, ok := first("SearchPath path directory"); ok {
			keys = append(keys, in)
		}
		return keys
	}
	return nil
}

func proxyPath(s string) string {
	s = strings.TrimRight(strings.ReplaceAll(s, `\`, "/"), "/")
	if len(s) > 1 && s[1] == ':' {
		s = strings.ToLower(s[:1]) + s[1:]
	}
	return s
}

// proxyInteger returns the first whole number among some arguments, as a key.
func proxyInteger(values object, key, names string) []string {
	for name := range strings.FieldsSeq(names) {
		switch value := values[name].(type) {
		case bool:
			return []string{key + ":" + map[bool]string{true: "True", false: "False"}[value]}
		case float64:
			if value == math.Trunc(value) {
				return []string{key + ":" + strconv.FormatFloat(value, 'f', 0, 64)}
			}
		case string:
			plain := strings.ReplaceAll(strings.TrimSpace(value), "_", "")
			if n, err := strconv.ParseInt(plain, 10, 64); err == nil {
				return []string{key + ":" + strconv.FormatInt(n, 10)}
			}
		}
	}
	return nil
}

var (
	proxyKeys   = regexp.MustCompile(`\b(sk[-_][A-Za-z0-9][\w-]{15,}|ak-(ant|sk|proj)[\w-]{17,})|\b[0-9a-f]{32}\.[A-Za-z0-9]{16,}`)
	proxyBearer = regexp.MustCompile(`Bearer \S+`)
)

func proxyRedacted(s string) string {
	return proxyBearer.ReplaceAllString(proxyKeys.ReplaceAllString(s, "***"), "Bearer ***")
}
