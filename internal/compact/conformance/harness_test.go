package conformance

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/api/stateless"
	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/llm"
	"github.com/varve-dev/varve/internal/llm/llmtest"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/policy/foreign"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// object is a decoded JSON object.
type object = map[string]any

// vector is one recorded call of a system.
type vector struct {
	ID            string `json:"id"`
	System        string `json:"oracle"`
	Op            string `json:"op"`
	Scope         string `json:"scope"`
	Half          bool   `json:"lone_surrogate"`
	Surprise      string // what a reader of the system's document would not expect of its answer
	Raw           string `json:"input_raw_text"` // where the order of members counts
	Input, Output object

	asked object // the input before it was translated
}

// systems translate a vector into questions to the product, and its answers back. The members that they return are
// compared with those of the record.
var systems = map[string]func(v vector) object{
	"tool-compaction": toolCompaction, "cortex": cortex, "falai": falai, "llm-proxy": llmProxy, "codelia": codelia,
}

// TestConformance asks the product every vector. One that differs is in a class, or fails.
func TestConformance(t *testing.T) {
	t.Parallel()
	passed, other, in, differ := 0, 0, map[string]int{}, map[string]int{}
	expected, asExpected := 0, 0 // of those without a surprise
	all := vectors(t)
	for _, v := range all {
		class, diff := answered(v)
		if v.Surprise == "" {
			expected++
		}
		switch {
		case diff == "":
			passed++
			if v.Surprise == "" {
				asExpected++
			}
		case class != "":
			in[class]++
			differ[v.System+": "+class]++
			t.Logf("%s: %s", v.ID, class)
		default:
			other++
			t.Errorf("%s is in no class (-recorded +ours):\n%s", v.ID, diff)
		}
	}
	fmt.Printf("%d vectors through the product: %d pass, %d in %d classes, %d other; without a surprise %d of %d, %.1f %%\n",
		len(all), passed, len(all)-passed-other, len(in), other, asExpected, expected, 100*float64(asExpected)/float64(expected))
	if os.Getenv("VARVE_VECTORS") != "" {
		return
	}
	if diff := gocmp.Diff(differing, differ); diff != "" || 10*asExpected < 9*expected {
		t.Errorf("90 %% of those without a surprise should pass, and of the others differ (-want +got):\n%s", diff)
	}
}

// differing are how many of the vectors in testdata are in each class: without them, nothing would show that its row in
// docs/compatibility.md is so.
var differing = map[string]int{
	"codelia: limit": 1, "codelia: models": 1, "codelia: nothing": 5, "codelia: one message": 1, "codelia: units": 1, "codelia: untouched": 2,
	"cortex: limit": 1, "cortex: nothing": 1, "cortex: own": 5, "cortex: saved": 2,
	"falai: manual": 1, "falai: nothing": 4, "falai: units": 1, "falai: whole": 3,
	"llm-proxy: bookkeeping": 4, "llm-proxy: manual": 2, "llm-proxy: plain": 1, "llm-proxy: smaller": 2,
}

// TestAChangedVectorIsInNoClass changes what is compared of each record, and asks: no class may take it for one of its
// cases.
func TestAChangedVectorIsInNoClass(t *testing.T) {
	t.Parallel()
	tried := 0
	for _, v := range vectors(t) {
		asked, again := v, v
		asked.Input, asked.Output = normal(v.Input), normal(v.Output)
		again.Input, again.Output = normal(v.Input), normal(v.Output)
		_, before := answered(again)
		for member := range productAnswer(asked) {
			for name, change := range map[string]func(any) bool{"a text": misquote, "a role": recast, "a list": shorten} {
				changed := v
				changed.Input, changed.Output = normal(v.Input), normal(v.Output)
				if !change(changed.Output[member]) {
					continue
				}
				class, diff := answered(changed)
				if diff == before { // what changed is not compared
					continue
				}
				if tried++; class != "" {
					t.Errorf("%s with %s of %s changed: in class %q\n%s", v.ID, name, member, class, diff)
				}
			}
		}
	}
	if tried < 200 {
		t.Errorf("%d changes only", tried)
	}
}

// change changes the last value below a value that a function changes, and reports whether there is one.
func change(value any, one func(o object, name string) bool) bool {
	switch value := value.(type) {
	case []any:
		for _, element := range slices.Backward(value) {
			if change(element, one) {
				return true
			}
		}
	case object:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if one(value, name) || change(value[name], one) {
				return true
			}
		}
	}
	return false
}

func misquote(value any) bool {
	return change(value, func(o object, name string) bool {
		s, isText := o[name].(string)
		if !isText || len(s) < 4 || !slices.Contains([]string{"content", "text", "preview", "message"}, name) {
			return false
		}
		o[name] = s[:1] + "#" + s[1:]
		return true
	})
}

func recast(value any) bool {
	return change(value, func(o object, name string) bool {
		if name != "role" {
			return false
		}
		o[name] = "nobody"
		return true
	})
}

func shorten(value any) bool {
	return change(value, func(o object, name string) bool {
		list, isList := o[name].([]any)
		if !isList || len(list) == 0 {
			return false
		}
		o[name] = list[:len(list)-1]
		return true
	})
}

// vectorFiles returns the paths of all vectors.
func vectorFiles() []string {
	dir := cmp.Or(os.Getenv("VARVE_VECTORS"), "testdata/vectors")
	if _, err := os.Stat(dir); err != nil {
		dir = filepath.Join("../../..", dir)
	}
	return must(filepath.Glob(filepath.Join(dir, "*", "*.json")))
}

// vectors reads the vectors that Varve owes: those of scope seed.
func vectors(t *testing.T) (list []vector) {
	t.Helper()
	for _, path := range vectorFiles() {
		var v vector
		if json.Unmarshal(must(os.ReadFile(path)), &v) == nil && v.Scope == "seed" {
			list = append(list, v)
		}
	}
	if list == nil {
		t.Fatal("there are no vectors")
	}
	return list
}

// answered asks the product a vector. diff is how its answer differs from the record, class why.
func answered(v vector) (class, diff string) {
	want, got := object{}, object{}
	v.asked = normal(v.Input)
	answer := productAnswer(v)
	for member := range answer {
		want[member] = v.Output[member]
	}
	decode([]byte(jsonText(answer)), &got)
	if diff = gocmp.Diff(want, got); diff == "" && len(got) > 0 {
		return "", ""
	}
	defer func() {
		if failed := recover(); failed != nil {
			class, diff = "", fmt.Sprint(failed, "\n", diff)
		}
	}()
	if got["refused"] != nil {
		want = v.Output
	}
	return classOf(v, want, got), diff + "."
}

// productAnswer returns the product's answer to a vector; that it refuses one is an answer, too.
func productAnswer(v vector) (answer object) {
	defer func() {
		if failed := recover(); failed != nil {
			answer = object{"refused": fmt.Sprint(failed)}
		}
	}()
	if answer = systems[v.System](v); answer == nil {
		return object{"refused": "there is no operation " + v.Op}
	}
	return answer
}

func decode(raw []byte, into any) { must(0, json.Unmarshal(raw, into)) }

// must returns a value; an error ends the vector.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// jsonText returns a value as JavaScript writes it.
func jsonText(value any) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	must(0, encoder.Encode(value))
	return strings.NewReplacer("\n", "", `\u2028`, "\u2028", `\u2029`, "\u2029").Replace(b.String())
}

// text, number, section and objects return a value of a vector, or nothing if it is missing.
func text(value any) string    { s, _ := value.(string); return s }
func number(value any) float64 { n, _ := value.(float64); return n }
func section(value any) object { o, _ := value.(object); return o }
func objects(value any) (list []object) {
	if made, ok := value.([]object); ok {
		return made
	}
	elements, _ := value.([]any)
	for _, element := range elements {
		list = append(list, section(element))
	}
	return list
}

// settings are what the systems' settings do not say, by system and by operation: the formula that counts tokens, and
// that only the stages of the operation run, whatever the size is.
//
//go:embed testdata/settings.json
var settings []byte

// question is what the product is asked: to compact messages that are in no session.
type question struct {
	format  session.Format
	patch   []byte // of the profile
	window  int
	context int64 // tokens by the caller's count; 0: they are counted
	beside  bool  // those that the messages do not have are overhead
	bodies  [][]byte
	seqs    []int64 // of the vector's messages; the others were added
	open    map[string]bool
	replies []llmtest.Reply // of the model
	writer  llm.Writer      // nil: a model that gives the replies
	alone   bool            // there is no model
}

// always is a count of tokens with which a compaction is due.
const always = 1 << 40

// ask starts a question with the settings of a vector, translated as varve policy from FILE does it.
func ask(v vector, format session.Format, config object) *question {
	translated := must(foreign.Translate(v.System, []byte(jsonText(config))))
	q := &question{format: format, patch: translated.Patch, window: cmp.Or(translated.Window, 1000), context: always,
		open: map[string]bool{}}
	var all map[string]json.RawMessage
	decode(settings, &all)
	q.patch = policy.Merge(policy.Merge(q.patch, all[v.System]), all[v.System+"/"+v.Op])
	return q
}

// set sets a field of the policy.
func (q *question) set(path string, value any) {
	section, field, nested := strings.Cut(path, ".")
	patch := object{section: value}
	if nested {
		patch[section] = object{field: value}
	}
	q.patch = policy.Merge(q.patch, []byte(jsonText(patch)))
}

// reworded replaces a part of a text of the profile: what a system's text does not have, or has otherwise.
func (q *question) reworded(field, old, new string) {
	var profile struct{ Wording map[string]string }
	decode(q.resolve().Document(), &profile)
	if !strings.Contains(profile.Wording[field], old) {
		panic(fmt.Sprintf("wording.%s has no %q", field, old))
	}
	q.set("wording."+field, strings.Replace(profile.Wording[field], old, new, 1))
}

// model sets what the model answers: a text for each scripted response, or an error for one without.
func (q *question) model(v vector, member string) {
	for _, response := range objects(section(v.Input["llm"])["responses"]) {
		reply := llmtest.Reply{Err: errors.New("the model does not answer")}
		if text, ok := response[member].(string); ok {
			reply = llmtest.Reply{Text: text}
		} else if response["messages"] != nil { // of which a provider sends the texts
			reply = llmtest.Reply{Text: codeliaAnswer(response)}
		}
		q.replies = append(q.replies, reply)
	}
}

// add appends a message and returns its seq.
func (q *question) add(message any) int64 {
	q.bodies = append(q.bodies, []byte(jsonText(message)))
	return int64(len(q.bodies))
}

// chat appends messages of an OpenAI-like shape. A result without a call, which providers refuse, gets a call before
// it, which the translation back leaves out. tool is the member that names a result's tool.
func (q *question) chat(messages []object, tool string) {
	for _, m := range messages {
		m = maps.Clone(m)
		if id, ok := m["tool_call_id"].(string); ok && m["role"] == "tool" {
			if !q.open[id] {
				call := object{"id": id, "function": object{"name": text(m[tool]), "arguments": "{}"}}
				q.add(object{"role": "assistant", "tool_calls": []object{call}})
			}
			delete(q.open, id)
		}
		calls := objects(normal(m)["tool_calls"])
		for _, call := range calls {
			q.open[text(call["id"])] = true
			if call["function"] == nil {
				call["function"] = object{"name": call["name"], "arguments": jsonText(call["arguments"])}
			}
		}
		if calls != nil {
			m["tool_calls"] = calls
		}
		q.seqs = append(q.seqs, q.add(m))
	}
}

// outcome is the product's answer.
type outcome struct {
	*compactor.Proposal
	changed bool
	added   int              // tokens of the messages that the vector does not have
	bodies  map[int64][]byte // by seq, as the view has them; an evicted message has none
	summary []byte           // the message that replaces the evicted ones
}

// resolve returns the profile with the changes.
func (q *question) resolve() policy.Policy { return must(policy.Parse(q.patch)) }

// compact has the product compact the messages, as POST /v1/compact does.
func (q *question) compact() *outcome {
	resolved, added := q.resolve(), 0
	snap := postgres.Snapshot{Format: q.format, WindowTokens: q.window, Calibration: 1, LastSeq: int64(len(q.bodies))}
	for i, body := range q.bodies {
		found := must(wire.Accept(q.format, body))
		compact.Recount(&resolved, q.format, body, &found)
		m := postgres.LogMessage{Seq: int64(i + 1), Format: q.format, Tokens: int64(found.Tokens), Body: body}
		if snap.ContextTokens += m.Tokens; q.seqs != nil && !slices.Contains(q.seqs, m.Seq) {
			added += found.Tokens
		}
		snap.Tail = append(snap.Tail, m)
	}
	if q.context == 0 { // what was added must not count
		snap.WindowTokens += added
		resolved.TriggerTokens += added
		resolved.TargetTokens += added
	}
	if q.context > 0 && q.beside {
		snap.OverheadTokens = int(q.context - snap.ContextTokens)
	} else if q.context > 0 && q.context < always {
		snap.Unseen = q.context - snap.ContextTokens
	} else {
		snap.ContextTokens = cmp.Or(q.context, snap.ContextTokens)
	}
	request := compactor.Request{Cause: compactor.CausePreview, Policy: &resolved, Writer: q.writer}
	if q.writer == nil && !q.alone {
		request.Writer = llmtest.New(q.replies...)
	}
	p := must(compactor.Propose(context.Background(), nil, snap, request))
	o := &outcome{Proposal: p, changed: p.Changed && p.Decision.Verdict == compactor.Now, bodies: map[int64][]byte{}, added: added}
	view, first, last := must(stateless.Messages(p)), int64(0), int64(-1)
	for _, a := range p.Plan.Actions {
		if a.Part < 0 && o.changed {
			first, last = a.Seq, a.LastSeq
		}
	}
	for _, m := range snap.Tail {
		if m.Seq == first {
			o.summary, view = view[0], view[1:]
		}
		if m.Seq < first || m.Seq > last {
			o.bodies[m.Seq], view = view[0], view[1:]
		}
	}
	return o
}

// back translates the view back. A message that did not change is the vector's; change puts the content of another one
// into a copy of it. A summary becomes a message of the role that the system gives it. The notice of a truncation, a
// handle like a ref, has no counterpart.
func (q *question) back(o *outcome, messages []object, role string, change func(m, now object, seq int64)) []object {
	list := []object{}
	for i, m := range messages {
		var now object
		body := o.bodies[q.seqs[i]]
		switch {
		case body == nil && o.summary != nil:
			if decode(o.summary, &now); o.Plan.Actions[0].Kind == compact.Summarise {
				list = append(list, object{"role": role, "content": now["content"]})
			}
			o.summary = nil
		case body != nil && bytes.Equal(body, q.bodies[q.seqs[i]-1]):
			list = append(list, m)
		case body != nil:
			decode(body, &now)
			m = maps.Clone(m)
			change(m, now, q.seqs[i])
			list = append(list, m)
		}
	}
	return list
}

// refClause matches a ref of the product and, if there is one, the clause that introduces it, which names a tool.
var refClause = regexp.MustCompile(`(; full content: read_result |; read_result ref=|; read_result |\. In full: read_result )?` +
	`\b(r\d+\.\d+-[0-9a-f]+)\b`)

// systemsClause is how the systems introduce a name where the product has the clause with a tool.
var systemsClause = map[string]string{"; full content: read_result ": "; full content at ", "; read_result ref=": "; ref="}

// named returns a text with the record's name in place of a ref: a path or a call id. A record without a name has no
// clause about it.
func named(text any, name string) string {
	return refClause.ReplaceAllStringFunc(text.(string), func(found string) string {
		if name == "" {
			return ""
		}
		return systemsClause[refClause.FindStringSubmatch(found)[1]] + name
	})
}
