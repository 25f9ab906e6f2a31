package wire

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// checkMessage holds m to what is promised of every message that Inspect accepts.
func checkMessage(t testing.TB, f session.Format, body []byte, m Facts) {
	t.Helper()
	tokens := MessageTokens
	var raws []Span
	var edits []Edit
	for i, p := range m.Parts {
		if p.Index != i || p.Tokens < 0 {
			t.Fatalf("part %d of %q is numbered %d and has %d tokens", i, body, p.Index, p.Tokens)
		}
		checkSpan(t, body, p.Raw, Span{Start: 0, End: len(body)})
		checkSpan(t, body, p.Value, p.Raw)
		tokens += p.Tokens
		raws = append(raws, p.Raw)
		if p.Kind == Result && p.Value != (Span{}) {
			checkResult(t, f, body, p)
			edits = append(edits, Edit{p.Value, []byte(`"trimmed"`)})
		}
	}
	if tokens > m.Tokens { // it has more for members that are in no part
		t.Fatalf("%q has %d tokens, its parts %d", body, m.Tokens, tokens)
	}
	slices.SortFunc(raws, func(a, b Span) int { return a.Start - b.Start })
	for i := 1; i < len(raws); i++ {
		if raws[i].Start < raws[i-1].End {
			t.Fatalf("parts of %q overlap: %v", body, raws)
		}
	}
	checkReplaced(t, f, body, m, edits)
}

// checkSpan wants at to be not there or exactly one value inside outer.
func checkSpan(t testing.TB, body []byte, at, outer Span) {
	t.Helper()
	if at == (Span{}) {
		return
	}
	if at.Start < outer.Start || at.End > outer.End || rawjson.Check(at.Of(body), rawjson.Limits{}) != nil || rawjson.Value(at.Of(body)).End != at.End-at.Start {
		t.Fatalf("%v is no value of %q inside %v", at, body, outer)
	}
}

func checkResult(t testing.TB, f session.Format, body []byte, p Part) {
	t.Helper()
	content := ResultText(f, body, p)
	switch {
	case content.MediaType == textMediaType:
		if again, ok := rawjson.Unquote(nil, rawjson.Quote(nil, content.Stored)); !ok || !bytes.Equal(again, content.Stored) {
			t.Fatalf("%q cannot be quoted again", content.Stored)
		}
	case !bytes.Equal(content.Stored, p.Value.Of(body)):
		t.Fatalf("the stored JSON of %q is %q", body, content.Stored)
	}
}

// checkReplaced replaces nothing, then every result, and wants the second to be the same message but for the results.
func checkReplaced(t testing.TB, f session.Format, body []byte, m Facts, edits []Edit) {
	t.Helper()
	if same := Replace(nil, body, nil); !bytes.Equal(same, body) {
		t.Fatalf("Replace of nothing changed %q to %q", body, same)
	}
	trimmed := Replace(nil, body, edits)
	if err := rawjson.Check(trimmed, rawjson.Limits{}); err != nil {
		t.Fatalf("%q became %q: %v", body, trimmed, err)
	}
	again, err := Inspect(f, trimmed)
	if err != nil || len(again.Parts) != len(m.Parts) || again.StartsUnit != m.StartsUnit || again.Role != m.Role {
		t.Fatalf("%q became %q: %v, %v", body, trimmed, again, err)
	}
	for i, p := range m.Parts {
		if q := again.Parts[i]; q.Kind != p.Kind || q.CallID != p.CallID || q.Name != p.Name {
			t.Fatalf("part %d of %q became %+v", i, body, q)
		}
	}
}

func FuzzInspect(f *testing.F) {
	for _, seed := range []string{
		`{"role":"user","content":[{"type":"text","text":"a\u0000"},{"type":"image_url"},{"type":"image"},7]}`,
		`{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}},{"id":"b","custom":{"input":{}}}],"content":null,"role":"assistant","reasoning_content":"r"}`,
		`{"role":"tool","tool_call_id":"a","content":"\ud800"}`,
		`{"role":"function","name":"f","content":[{"type":"text","text":"x"}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"x"},{"type":"document"}]},{"type":"tool_result"}]}`,
		`{"role":"assistant","content":[{"type":"thinking","thinking":"t"},{"type":"tool_use","id":"a","name":"n","input":{"a":1},"input":2}]}`,
		`{"role":"user","content":[{"type":"document","source":{"type":"text","data":"d"}}],"r\u006fle":"x"}`,
	} {
		for i := range session.Formats() {
			f.Add(i, []byte(seed))
		}
	}
	f.Fuzz(func(t *testing.T, format int, body []byte) {
		formats := session.Formats()
		if format < 0 || format >= len(formats) || rawjson.Check(body, rawjson.Limits{Depth: 64}) != nil {
			return
		}
		m, err := Inspect(formats[format], body)
		if err != nil {
			return
		}
		checkMessage(t, formats[format], body, m)
		AppendSystem(session.Anthropic, nil, [][]byte{body, body})
		validated(formats[format], [][]byte{body, body}, Options{})
	})
}

// corpus returns the folder of real conversations, "" if this machine has none, or none with a folder for each provider.
func corpus() string {
	folder := RecordedDir()
	for _, f := range []session.Format{session.OpenAIChat, session.OpenAIResponses, session.Anthropic, session.Gemini} {
		if _, err := os.Stat(filepath.Join(folder, string(f))); err != nil {
			return ""
		}
	}
	return folder
}

// RecordedDir returns the folder of recorded conversations, which need not be there.
func RecordedDir() string {
	if dir := os.Getenv("VARVE_DATA"); dir != "" {
		return dir
	}
	return filepath.Join("..", "..", "..", "shared", "data")
}

func TestCorpusMessagesAreUnderstood(t *testing.T) {
	t.Parallel()
	folder := corpus()
	if folder == "" {
		t.Log("no recorded conversations: set VARVE_DATA to a folder of them")
		return
	}
	for f, name := range map[session.Format]string{session.OpenAIChat: "openai-chat", session.Anthropic: "anthropic"} {
		lists := conversations(t, filepath.Join(folder, name))
		count := 0
		for _, bodies := range lists {
			for _, body := range bodies {
				m, err := Inspect(f, body)
				if err != nil {
					t.Fatalf("%.200s: %v", body, err)
				}
				checkMessage(t, f, body, m)
				count++
			}
		}
		t.Logf("%s: %d conversations, %d messages", f, len(lists), count)
		if count == 0 {
			t.Errorf("%s holds no messages", filepath.Join(folder, name))
		}
	}
}

// conversations finds the lists of messages in files: every member "messages" that is an array, and files that are one
// message. The path is a folder or a pattern of files.
func conversations(t testing.TB, path string) map[string][][]byte {
	t.Helper()
	files, err := filepath.Glob(path)
	if err == nil && len(files) == 1 && files[0] == path {
		files, err = filepath.Glob(filepath.Join(path, "*"))
	}
	if err != nil {
		t.Fatal(err)
	}
	lists := map[string][][]byte{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts := [][]byte{data}
		if strings.HasSuffix(file, ".jsonl") {
			texts = bytes.Split(bytes.TrimSpace(data), []byte("\n"))
		}
		for _, text := range texts {
			if err := rawjson.Check(text, rawjson.Limits{}); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if bodies := findMessages(text, rawjson.Value(text)); len(bodies) > 0 {
				lists[file] = bodies
			}
		}
	}
	return lists
}

func findMessages(data []byte, at Span) [][]byte {
	if data[at.Start] != '{' {
		return nil
	}
	var found [][]byte
	for key, value := range rawjson.Members(data, at.Start) {
		switch {
		case rawjson.KeyIs(data, key, "messages") && data[value.Start] == '[':
			for element := range rawjson.Elements(data, value.Start) {
				found = append(found, element.Of(data))
			}
		case rawjson.KeyIs(data, key, "request"), rawjson.KeyIs(data, key, "body"), rawjson.KeyIs(data, key, "request_params"):
			found = append(found, findMessages(data, value)...)
		case rawjson.KeyIs(data, key, "role"):
			return [][]byte{at.Of(data)}
		}
	}
	return found
}

// BenchmarkInspect reads real conversations where there are any, else ones made up here, beside json.Valid over the
// same bytes.
func BenchmarkInspect(b *testing.B) {
	call := `{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"read","arguments":"{\"path\":\"a.go\"}"}}]}`
	result := `{"role":"tool","tool_call_id":"call_1","content":"` + strings.Repeat(`func f() error {\n\treturn fmt.Errorf(\"%w\", err) // a comment\n}\n`, 50) + `"}`
	sets := map[string][][]byte{"openai-chat/made": bytesOf(slices.Repeat([]string{call, result}, 50))}
	if folder := corpus(); folder != "" {
		for _, f := range session.Formats() {
			for _, bodies := range conversations(b, filepath.Join(folder, string(f))) {
				sets[string(f)+"/recorded"] = append(sets[string(f)+"/recorded"], bodies...)
			}
		}
	}
	for name, bodies := range sets {
		f := session.Format(filepath.Dir(name))
		size := int64(len(bytes.Join(bodies, nil)))
		each := func(what string, do func(body []byte) bool) {
			b.Run(what+"/"+name, func(b *testing.B) {
				b.SetBytes(size)
				b.ReportAllocs()
				for b.Loop() {
					for _, body := range bodies {
						if !do(body) {
							b.Fatalf("%s refuses %.100s", what, body)
						}
					}
				}
				b.ReportMetric(float64(len(bodies)), "messages/op")
			})
		}
		each("Inspect", func(body []byte) bool { _, err := Inspect(f, body); return err == nil })
		each("CheckAndInspect", func(body []byte) bool {
			_, err := Inspect(f, body)
			return err == nil && rawjson.Check(body, rawjson.Limits{Depth: 64}) == nil
		})
		each("Valid", json.Valid)
	}
}
