package conformance

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/api/stateless"
	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/llm/llmtest"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// vector is one recorded call of a system.
type vector struct {
	ID           string          `json:"id"`
	System       string          `json:"oracle"`
	Op           string          `json:"op"`
	Scope        string          `json:"scope"`
	Input        json.RawMessage `json:"input"`
	InputRawText *string         `json:"input_raw_text"` // the input once more, in the original's order of members
	Output       object          `json:"output"`
}

// object is a decoded JSON object.
type object = map[string]any

// systems answer the vectors: each translates the input, asks the product, and translates the outcome back. Of the
// record, the members that the answer has are compared.
var systems = map[string]func(v vector) (object, error){
	"tool-compaction": toolCompaction, "cortex": cortex, "falai": falai, "llm-proxy": llmProxy, "codelia": codelia,
}

func TestConformance(t *testing.T) {
	t.Parallel()
	dir := "testdata/vectors"
	if named := os.Getenv("VARVE_VECTORS"); named != "" {
		if dir = named; !filepath.IsAbs(named) {
			dir = filepath.Join("../../..", named)
		}
	}
	listed, passed, different, others := readDocumented(t), 0, 0, 0
	for _, v := range readVectors(t, dir) {
		diff := run(v)
		switch {
		case diff == "" && !listed[v.ID]:
			passed++
		case diff != "" && listed[v.ID]:
			different++
		case diff == "":
			others++
			t.Errorf("%s passes, but docs/compatibility.md lists it", v.ID)
		default:
			others++
			t.Errorf("%s (-recorded +ours):\n%s", v.ID, diff)
		}
	}
	for k, n := range refused {
		fmt.Println("REFUSED", n, k)
	}
	total := passed + different + others
	fmt.Printf("%d vectors through the product: %d pass, %d documented, %d other\n", total, passed, different, others)
}

// readVectors reads the vectors below dir, of which those of scope seed count.
func readVectors(t *testing.T, dir string) (vectors []vector) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".json" {
			return err
		}
		raw, err := os.ReadFile(path)
		var v vector
		if err == nil && json.Unmarshal(raw, &v) == nil && v.Scope == "seed" {
			vectors = append(vectors, v)
		}
		return err
	})
	if err != nil || len(vectors) == 0 {
		t.Fatalf("no vectors in %s (%v)", dir, err)
	}
	return vectors
}

// readDocumented returns the vectors that a table of docs/compatibility.md lists, each with its reason.
func readDocumented(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("../../../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	rows := regexp.MustCompile("(?m)^\\| `([a-z-]+-\\d+[^`]*)` \\|([^|]*)\\|([^|]*)\\|$").FindAllSubmatch(text, -1)
	for _, row := range rows {
		id := string(row[1])
		if listed[id] || len(bytes.TrimSpace(row[2])) == 0 || len(bytes.TrimSpace(row[3])) == 0 {
			t.Errorf("docs/compatibility.md lists %s twice, or without a reason", id)
		}
		listed[id] = true
	}
	return listed
}

// run returns how the product's answer differs from the record, "" if it does not.
func run(v vector) (diff string) {
	defer func() {
		if panicked := recover(); panicked != nil {
			diff = fmt.Sprintf("panic: %v\n%s", panicked, debug.Stack())
		}
	}()
	answer, ok := systems[v.System]
	if !ok {
		return "there is no system " + v.System
	}
	got, err := answer(v)
	if err != nil || len(got) == 0 {
		return fmt.Sprintf("no answer: %v", err)
	}
	want := object{}
	for member := range got {
		want[member] = v.Output[member]
	}
	return gocmp.Diff(plain(want), plain(got))
}

// plain returns a value as its JSON decodes, with numbers by their value.
func plain(value any) any {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	var decoded any
	decode(raw, &decoded)
	return numbers(decoded)
}

func numbers(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key := range value {
			value[key] = numbers(value[key])
		}
	case []any:
		for i := range value {
			value[i] = numbers(value[i])
		}
	case json.Number:
		if number, ok := new(big.Rat).SetString(value.String()); ok {
			return "number " + number.RatString()
		}
	}
	return value
}

// decode reads JSON; numbers that go into an any stay as they were written.
func decode(raw []byte, into any) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		panic(fmt.Sprintf("%s: %v", raw, err))
	}
}

// input reads the vector's input into value.
func (v vector) input(value any) {
	if v.InputRawText != nil {
		decode([]byte(*v.InputRawText), value)
		return
	}
	decode(v.Input, value)
}

// question is what the product is asked: to compact messages that are in no session.
type question struct {
	profile string
	format  session.Format
	patch   object // of the policy
	window  int
	context *int64 // tokens of the conversation by the caller's count; nil: they are counted
	bodies  [][]byte
	seqs    []int64         // of the vector's messages; others were added
	replies []llmtest.Reply // of the model that writes summaries
	open    map[string]bool // ids of the calls without a result
}

// ask starts a question about a profile.
func ask(profile string, format session.Format, window int) *question {
	return &question{profile: profile, format: format, window: window, patch: object{}, open: map[string]bool{}}
}

// set sets a field of the policy, named by its path.
func (q *question) set(path string, value any) {
	at := q.patch
	section, field, nested := strings.Cut(path, ".")
	if nested {
		if at[section] == nil {
			at[section] = object{}
		}
		at = at[section].(object)
	} else {
		field = section
	}
	at[field] = value
}

// settings sets the fields of the policy that have the names of a system's settings: "name path path …".
func (q *question) settings(config object, names ...string) {
	for _, line := range names {
		fields := strings.Fields(line)
		if value := config[fields[0]]; value != nil {
			for _, path := range fields[1:] {
				q.set(path, value)
			}
		}
	}
}

// add appends a message and returns its seq.
func (q *question) add(message any) (seq int64) {
	q.bodies = append(q.bodies, []byte(jsonText(message)))
	return int64(len(q.bodies))
}

// jsonText returns a value as JavaScript writes it.
func jsonText(value any) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// chat appends a message of an OpenAI-like shape. A result without a call, which providers refuse, gets a call before
// it, which the translation back leaves out; a result that is no text becomes its JSON. tool is the member that names a
// result's tool.
func (q *question) chat(m object, tool string) {
	m = maps.Clone(m)
	if id, ok := m["tool_call_id"].(string); ok && m["role"] == "tool" {
		if !q.open[id] {
			q.add(object{"role": "assistant", "tool_calls": []object{toolCall(id, m[tool], "{}")}})
		}
		delete(q.open, id)
		if _, parts := m["content"].([]any); !parts {
			m["content"] = textOf(m["content"])
		}
	}
	calls, _ := m["tool_calls"].([]any)
	for i, c := range calls {
		call := c.(object)
		q.open[call["id"].(string)] = true
		if call["function"] == nil {
			calls[i] = toolCall(call["id"].(string), call["name"], jsonText(call["arguments"]))
		}
	}
	q.seqs = append(q.seqs, q.add(m))
}

func toolCall(id string, name any, arguments string) object {
	return object{"id": id, "type": "function", "function": object{"name": name, "arguments": arguments}}
}

// textOf returns a content that is a text as it is, and another one's JSON.
func textOf(content any) string {
	if text, ok := content.(string); ok {
		return text
	}
	return jsonText(cmp.Or[any](content, ""))
}

// outcome is the product's answer.
type outcome struct {
	*compactor.Proposal
	bodies  map[int64][]byte // by seq, as the view has them; an evicted message has none
	notice  []byte           // the message that replaces the evicted ones
	summary bool             // it is a summary
}

// compact has the product compact the messages, as POST /v1/compact does.
func (q *question) compact() (o outcome, err error) {
	parsed, err := q.resolve()
	if err != nil {
		return o, err
	}
	snap := postgres.Snapshot{
		Format: q.format, WindowTokens: q.window, Calibration: 1, LastSeq: int64(len(q.bodies)),
	}
	for i, body := range q.bodies {
		found, err := wire.Accept(q.format, body)
		if err != nil {
			return o, fmt.Errorf("message %d: %w", i+1, err)
		}
		snap.ContextTokens += int64(found.Tokens)
		snap.Tail = append(snap.Tail, postgres.LogMessage{
			Seq: int64(i + 1), Format: q.format, Tokens: int64(found.Tokens), Body: body,
		})
	}
	if q.context != nil {
		snap.ContextTokens = *q.context
	}
	request := compactor.Request{Cause: compactor.CausePreview, Policy: &parsed}
	o.Proposal, err = compactor.Propose(context.Background(), nil, snap, request, llmtest.New(q.replies...))
	if err != nil {
		return o, err
	}
	return o, o.read()
}

// resolve returns the policy: the profile with the changes.
func (q *question) resolve() (policy.Policy, error) {
	q.set("profile", q.profile)
	document, err := json.Marshal(q.patch)
	if err != nil {
		return policy.Policy{}, err
	}
	parsed, err := policy.Parse(document)
	if err != nil && os.Getenv("LENIENT") != "" && strip(q, err) {
		return q.resolve()
	}
	return parsed, err
}

// changed reports whether the view changes.
func (o *outcome) changed() bool { return o.Changed && o.Decision.Verdict == compactor.Now }

// read pairs the messages of the new view with those of the log.
func (o *outcome) read() error {
	bodies, err := stateless.Messages(o.Proposal)
	if err != nil {
		return err
	}
	o.bodies = map[int64][]byte{}
	first, last := int64(0), int64(-1)
	for _, a := range o.Plan.Actions {
		if a.Part < 0 && o.changed() {
			first, last = a.Seq, a.LastSeq
			o.summary = a.Kind == compact.Summarise
		}
	}
	for _, m := range o.Snapshot.Tail {
		if m.Seq == first {
			o.notice, bodies = bodies[0], bodies[1:]
		}
		if m.Seq < first || m.Seq > last {
			o.bodies[m.Seq], bodies = bodies[0], bodies[1:]
		}
	}
	return nil
}

// messages translates the view back. A message that did not change is the vector's; change puts the content of another
// one into a copy of it. A summary is a message of that role; the notice of a truncation, which is a handle like a ref,
// has no counterpart.
func (q *question) messages(o *outcome, of []object, role string, change func(i int, m, body object)) []object {
	list := []object{}
	told := false
	for i, m := range of {
		body, inView := o.bodies[q.seqs[i]]
		switch {
		case !inView && !told && o.summary:
			var notice object
			decode(o.notice, &notice)
			list = append(list, object{"role": role, "content": notice["content"]})
		case inView && bytes.Equal(body, q.bodies[q.seqs[i]-1]):
			list = append(list, m)
		case inView:
			var now object
			decode(body, &now)
			m = maps.Clone(m)
			change(i, m, now)
			list = append(list, m)
		}
		told = told || !inView
	}
	return list
}

// refOf matches a ref of the product, with the clause that introduces it.
var refOf = regexp.MustCompile(`(; [a-z ]+[ =])?\b(r\d+\.\d+-[0-9a-f]+)\b`)

// named returns a text with the record's name for the product's ref: a path, a call id, or "" for a record that has
// nothing to name, whose text lacks the clause about it.
func named(text, name string) string {
	if name == "" {
		return refOf.ReplaceAllString(text, "")
	}
	return refOf.ReplaceAllString(text, "${1}"+name)
}
