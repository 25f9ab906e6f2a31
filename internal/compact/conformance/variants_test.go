package conformance

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// oracles say what the systems do, by their documents and programs; nil is what those leave open.
var oracles = map[string]func(v vector) object{
	"tool-compaction": toolCompactionSays, "cortex": cortexSays, "falai": falaiSays, "llm-proxy": llmProxySays, "codelia": codeliaSays,
}

// says returns the record that a system would make of a vector.
func says(v vector) object {
	v.Input = normal(v.Input)
	if list, ok := v.Input["messages"]; ok && len(objects(list)) == 0 && v.Op != "micro" && v.System != "falai" && v.System != "llm-proxy" {
		return nil
	}
	answer := oracles[v.System](v)
	if answer == nil {
		return nil
	}
	return normal(answer)
}

// TestTheOraclesSayWhatWasRecorded holds the oracles to the systems themselves.
func TestTheOraclesSayWhatWasRecorded(t *testing.T) {
	t.Parallel()
	said := 0
	for _, v := range vectors(t) {
		answer := says(v)
		if answer == nil {
			continue
		}
		said++
		recorded := object{}
		for member := range answer {
			recorded[member] = v.Output[member]
		}
		for _, list := range []string{"rounds", "results", "identities"} {
			said := objects(answer[list])
			for i, one := range objects(recorded[list]) {
				maps.DeleteFunc(one, func(member string, _ any) bool { return said[i] != nil && said[i][member] == nil })
			}
		}
		if diff := gocmp.Diff(recorded, answer); diff != "" {
			t.Errorf("%s (-recorded +said):\n%s", v.ID, diff)
		}
	}
	if said < 150 {
		t.Errorf("the oracles answer %d vectors", said)
	}
}

// setting returns a number that the environment sets.
func setting(name string, preset int) int {
	if value := os.Getenv(name); value != "" {
		return must(strconv.Atoi(value))
	}
	return preset
}

// TestVariants asks the product 2,000 variants of the vectors: VARVE_VARIANTS of them, made from seed VARVE_SEED on. With
// the vectors and the differences they show each class in the systems for which the page lists it, and in no other.
func TestVariants(t *testing.T) {
	t.Parallel()
	few := 2000
	if testing.Short() {
		few = 400
	}
	all, next := variants(t, setting("VARVE_VARIANTS", few)), make(chan vector)
	var mu sync.Mutex
	passed, other, in, shown := 0, 0, map[string]int{}, map[string]bool{}
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			for v := range next {
				asked := jsonText(v.Input)
				class, diff := answered(v)
				mu.Lock()
				switch {
				case diff == "":
					passed++
				case class != "":
					in[class]++
					shown[class+" | "+v.System] = true
				default:
					if other++; other <= 40 {
						t.Errorf("%s is in no class (-system +ours):\n%s\nof %s", v.ID, diff, asked)
					}
				}
				mu.Unlock()
			}
		})
	}
	for _, v := range all {
		next <- v
	}
	close(next)
	asking.Wait()
	if len(all) >= 2000 && os.Getenv("VARVE_VECTORS") == "" {
		for _, v := range vectors(t) {
			if class, _ := answered(v); class != "" {
				shown[class+" | "+v.System] = true
			}
		}
		for _, d := range differences() {
			if d.class != "" {
				shown[d.class+" | "+d.system] = true
			}
		}
		listed := map[string]bool{}
		for _, c := range classRows() {
			for system := range strings.SplitSeq(c.systems, ", ") {
				listed[c.name+" | "+system] = true
			}
		}
		if diff := gocmp.Diff(listed, shown); diff != "" {
			t.Errorf("classes by system (-page +shown):\n%s", diff)
		}
	}
	fmt.Printf("%d variants: %d as the source, %d in %d classes, %d other\n", len(all), passed, len(all)-passed-other, len(in), other)
}

// variants makes n vectors of those that there are, each with its own input. The record is what the system's oracle
// says.
func variants(t *testing.T, n int) (list []vector) {
	t.Helper()
	all, seen := vectors(t), map[string]bool{}
	for _, v := range all {
		seen[jsonText(v.Input)] = true
	}
	first := uint64(setting("VARVE_SEED", 0))
	for seed := first; len(list) < n; seed++ {
		if seed == first+50*uint64(n) {
			t.Fatalf("%d variants only", len(list))
		}
		v := all[int(seed)%len(all)]
		r := rand.New(rand.NewPCG(seed, 1))
		v.Input, v.Raw, v.ID = normal(v.Input), "", fmt.Sprintf("%s/%d", v.ID, seed)
		for range 1 + r.IntN(3) {
			changes[r.IntN(len(changes))](r, v)
		}
		if found, limit := textsOf(v), presets[v.System+"/"+v.Op]; seed%10 == 8 && limit > 0 && len(found) > 0 {
			found[0].set(strings.Repeat("x", limit-1+int(seed/10)%3))
		}
		if found := textsOf(v); seed%10 == 9 && len(found) > 0 {
			found[len(found)-1].set("Error: ENOENT: no such file or directory")
		}
		if key := jsonText(v.Input); !seen[key] {
			seen[key] = true
			if v.Output = says(v); v.Output != nil {
				v.Half = strings.Contains(jsonText(v.Output), "\ufffd")
				list = append(list, v)
			}
		}
	}
	return list
}

// presets are the sizes that matter where a vector does not set them: one below, at and one above each is asked.
var presets = map[string]int{"tool-compaction/transform": 100, "llm-proxy/compact": 1000, "codelia/processToolMessage": 51_200}

// changes make a vector another one.
var changes = []func(r *rand.Rand, v vector){
	otherTexts, otherSize, otherRole, otherIDs, otherTools, otherOrder, another, lastTurn, otherNumber, atThreshold, otherCases, surrogates,
	otherSetting,
}

// place is where a value is.
type place struct {
	of    object
	name  string
	index int // of a list below the name; −1: the value itself
}

func (p place) get() any {
	if p.index < 0 {
		return p.of[p.name]
	}
	return p.of[p.name].([]any)[p.index]
}

func (p place) set(value any) {
	if p.index < 0 {
		p.of[p.name] = value
	} else {
		p.of[p.name].([]any)[p.index] = value
	}
}

// places returns where the values below o are that a test takes, in their order.
func places(o object, takes func(name string, value any) bool) (found []place) {
	for _, name := range slices.Sorted(maps.Keys(o)) {
		list, isList := o[name].([]any)
		if !isList {
			list = []any{o[name]}
		}
		for i, value := range list {
			if !isList {
				i = -1
			}
			if below, isObject := value.(object); isObject {
				found = append(found, places(below, takes)...)
			} else if takes(name, value) {
				found = append(found, place{o, name, i})
			}
		}
	}
	return found
}

// conversations returns the lists of messages of a vector.
func conversations(v vector) (all []place) {
	if v.Input["messages"] != nil {
		all = append(all, place{v.Input, "messages", -1})
	}
	for _, call := range objects(v.Input["calls"]) {
		if call["messages"] != nil {
			all = append(all, place{call, "messages", -1})
		}
	}
	if rounds, isList := v.Input["rounds"].([]any); isList {
		for i := range rounds {
			all = append(all, place{v.Input, "rounds", i})
		}
	}
	return all
}

// textsOf returns where the texts of messages are.
func textsOf(v vector) (found []place) {
	isText := func(name string, value any) bool {
		_, ok := value.(string)
		return ok && !slices.Contains([]string{"role", "id", "type", "name", "toolName", "tool_name", "tool_call_id", "tool_use_id",
			"toolCallId", "arguments", "url", "data", "provider", "kind", "tool_args"}, name)
	}
	for _, p := range conversations(v) {
		for _, m := range objects(p.get()) {
			if v.System == "tool-compaction" { // what the model reads; content is a copy of it
				for _, c := range append(objects(m["toolCalls"]), objects(m["toolResults"])...) {
					found = append(found, places(c, isText)...)
				}
				continue
			}
			found = append(found, places(m, isText)...)
		}
	}
	if _, isText := v.Input["text"].(string); isText {
		found = append(found, place{v.Input, "text", -1})
	}
	return found
}

var scripts = []string{
	"The port is 5433 and stays. ", "端口是五四三三，别改。", "😀👩‍💻🚀 ok ", "one\r\ntwo  three\r\n\r\n", "a\t\"b\" \\ / <c> & 'd'\u0001 ",
	"  two  spaces\n\n\n and\u00a0others\u2003here ", "é́ü\u2028ß\u2029 ", "[tool output trimmed] {\"a\": [1, 2]} ", "x",
}

// prose returns a text of n UTF-16 units.
func prose(r *rand.Rand, n int) string {
	script := []rune(scripts[r.IntN(len(scripts))])
	var b strings.Builder
	for i, left := r.IntN(len(script)), n; left > 0; i++ {
		size := units(string(script[i%len(script)]))
		if size > left {
			b.WriteByte('x')
			break
		}
		b.WriteRune(script[i%len(script)])
		left -= size
	}
	return b.String()
}

// otherTexts replaces texts by others of about their size; the same text by the same.
func otherTexts(r *rand.Rand, v vector) {
	other := map[string]string{}
	for _, p := range textsOf(v) {
		was := text(p.get())
		if _, ok := other[was]; !ok {
			other[was] = prose(r, max(units(was)+r.IntN(5)-2, 0))
		}
		p.set(other[was])
	}
}

// otherSize gives a text another size, often one next to a limit.
func otherSize(r *rand.Rand, v vector) {
	found, size := textsOf(v), r.IntN(300)
	if len(found) == 0 {
		return
	}
	limits := []float64{map[string]float64{"transform": 100, "compact_with_policies": 250, "processToolMessage": 51_200}[v.Op]} // by default
	for _, p := range places(section(v.Input["config"]), func(_ string, value any) bool { return number(value) < 5000 }) {
		limits = append(limits, number(p.get()))
	}
	if limit := limits[r.IntN(len(limits))]; limit >= 1 {
		size = int(limit)*[]int{1, 1, 2, 4}[r.IntN(4)] + r.IntN(3) - 1
	}
	found[r.IntN(len(found))].set(prose(r, size))
}

// surrogates puts characters of two units into a text, from an even or an odd place on.
func surrogates(r *rand.Rand, v vector) {
	found := textsOf(v)
	if len(found) == 0 {
		return
	}
	p := found[r.IntN(len(found))]
	n := units(text(p.get()))
	p.set(strings.Repeat("x", r.IntN(2)) + strings.Repeat("😀", n/2))
}

// plain reports whether a message is a text with a role and nothing else that counts.
func plain(m object) bool {
	return m["tool_calls"] == nil && m["tool_call_id"] == nil && m["toolCalls"] == nil && m["role"] != "tool" && m["role"] != "toolResult" &&
		m["role"] != "reasoning" && len(objects(m["content"])) == 0 && m["content"] != nil
}

func otherRole(r *rand.Rand, v vector) {
	roles := []string{"user", "assistant", "system"}
	if v.System == "cortex" {
		roles = roles[:2]
	}
	for _, p := range conversations(v) {
		for _, m := range objects(p.get()) {
			if plain(m) && r.IntN(2) == 0 {
				m["role"] = roles[r.IntN(len(roles))]
			}
		}
	}
}

// rename replaces the values of some names by others, the same by the same.
func rename(v vector, to func(was string) string, names ...string) {
	other := map[string]string{}
	for _, p := range conversations(v) {
		for _, m := range objects(p.get()) {
			for _, at := range places(m, func(name string, value any) bool { return slices.Contains(names, name) && text(value) != "" }) {
				was := text(at.get())
				if _, ok := other[was]; !ok {
					other[was] = to(was)
				}
				at.set(other[was])
			}
		}
	}
}

func otherIDs(r *rand.Rand, v vector) {
	rename(v, func(string) string {
		return fmt.Sprintf("call_%s%x", []string{"", "é.", "/-:"}[r.IntN(3)], r.Uint64())
	},
		"id", "tool_call_id", "tool_use_id", "toolCallId")
}

func otherTools(r *rand.Rand, v vector) {
	tools := []string{"Read", "Bash", "WebFetch", "SubAgent", "Mystery", "view_file", "Read-File", "tool_output_cache", "run_tests", "mcp__a__b"}
	rename(v, func(was string) string { return tools[(len(was)+r.IntN(len(tools)))%len(tools)] }, "name", "toolName", "tool_name")
}

// unitsOf returns where the units of a conversation begin: a message, and the results that follow it.
func unitsOf(messages []any) (begin []int) {
	for i, m := range messages {
		if role := section(m)["role"]; i == 0 || role != "tool" && role != "toolResult" {
			begin = append(begin, i)
		}
	}
	return append(begin, len(messages))
}

// otherOrder swaps two units.
func otherOrder(r *rand.Rand, v vector) {
	for _, p := range conversations(v) {
		list, _ := p.get().([]any)
		begin := unitsOf(list)
		if len(begin) < 3 {
			continue
		}
		i := r.IntN(len(begin) - 2)
		a, b, c := begin[i], begin[i+1], begin[i+2]
		p.set(slices.Concat(list[:a], list[b:c], list[a:b], list[c:]))
	}
}

// another appends a copy of a unit, with ids of its own.
func another(r *rand.Rand, v vector) {
	for _, p := range conversations(v) {
		list, _ := p.get().([]any)
		if len(list) == 0 {
			continue
		}
		begin := unitsOf(list)
		i := r.IntN(len(begin) - 1)
		copied := normal(object{"messages": list[begin[i]:begin[i+1]]})
		rename(vector{Input: copied}, func(was string) string { return was + fmt.Sprint(len(list)) }, "id", "tool_call_id", "tool_use_id", "toolCallId")
		p.set(slices.Concat(list, copied["messages"].([]any)))
	}
}

// lastTurn leaves the messages from the user's newest on, or all but the oldest unit.
func lastTurn(r *rand.Rand, v vector) {
	for _, p := range conversations(v) {
		list, _ := p.get().([]any)
		from := 0
		for i, m := range list {
			if section(m)["role"] == "user" {
				from = i
			}
		}
		if r.IntN(2) == 0 && len(list) > 0 {
			from = unitsOf(list)[1]
		}
		p.set(list[from:])
	}
}

// otherNumber changes a setting, or a size that the vector states.
func otherNumber(r *rand.Rand, v vector) {
	found := places(section(v.Input["config"]), func(_ string, value any) bool { _, ok := value.(float64); return ok })
	for _, name := range []string{"contextWindow", "currentTokens", "tokenEstimate", "hotZone", "degradationSpan", "headChars", "tailChars"} {
		if v.Input[name] != nil {
			found = append(found, place{v.Input, name, -1})
		}
	}
	if len(found) == 0 {
		return
	}
	p := found[r.IntN(len(found))]
	n := number(p.get())
	if n != math.Trunc(n) {
		p.set(max(math.Round((n+[]float64{-0.05, 0.01, 0.05}[r.IntN(3)])*100)/100, 0))
		return
	}
	p.set(max(n+[]float64{-1, 1, -2, 2, 10, n}[r.IntN(6)], 0))
}

// atThreshold brings a size to a threshold, or next to it.
func atThreshold(r *rand.Rand, v vector) {
	config, by := section(v.Input["config"]), float64(r.IntN(3)-1)
	set := func(name string, value float64) {
		if v.Input["config"] == nil {
			v.Input["config"] = object{}
		}
		section(v.Input["config"])[name] = max(value, 1)
	}
	messages := objects(v.Input["messages"])
	if len(messages) == 0 {
		return
	}
	switch v.System + "/" + v.Op {
	case "falai/checkAndCompact":
		e := falaiEngine{config: config}
		set("compactionThreshold", 0.5)
		set("maxTokens", 2*float64(e.tokens(messages))+by)
		config["compactionThreshold"] = 0.5
	case "llm-proxy/compact", "llm-proxy/should_compact":
		config["token_threshold"] = 100.0
		v.Input["tokenEstimate"] = 100 + by
	case "codelia/trimMessages":
		sum := 0
		for _, m := range messages[r.IntN(len(messages)):] {
			sum += (len(codeliaText(m["content"])) + 3) / 4
		}
		set("contextBudgetTokens", float64(sum)+by)
	case "codelia/processToolMessage":
		whole := codeliaText(messages[r.IntN(len(messages))]["content"])
		lines := strings.Split(whole, "\n")
		set("maxMessageBytes", float64(len(strings.Join(lines[:1+r.IntN(len(lines))], "\n")))+by)
	case "cortex/micro":
		if window := number(v.Input["contextWindow"]); window > 0 {
			v.Input["currentTokens"] = window*0.25 + by
		}
	case "tool-compaction/transform":
		if found := textsOf(v); len(found) > 0 {
			set([]string{"inputTrimBytes", "outputTrimBytes"}[r.IntN(2)], float64(len(text(found[r.IntN(len(found))].get())))+by)
		}
	}
}
