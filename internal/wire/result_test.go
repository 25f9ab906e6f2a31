package wire

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/session"
)

func TestResultTextSaysWhatIsReadAndWhatIsStored(t *testing.T) {
	t.Parallel()
	type content struct {
		Text, Stored, MediaType string
		OnlyText                bool
	}
	const text, raw = "text/plain; charset=utf-8", "application/json"
	for _, c := range []struct {
		name, value string
		want        content
	}{
		{"a string is stored decoded", `"a\n\u0000\u00e9"`, content{"a\n\x00é", "a\n\x00é", text, true}},
		{"an empty string is a result", `""`, content{"", "", text, true}},
		{"a string with a lone surrogate is stored as it is written", `"a\ud800"`, content{"a\uFFFD", `"a\ud800"`, raw, true}},
		{"an array of texts is read as one", `[{"type":"text","text":"a\n"}, {"type":"text","text":"b"}]`,
			content{"a\nb", `[{"type":"text","text":"a\n"}, {"type":"text","text":"b"}]`, raw, true}},
		{"an array with an image is not only text", `[{"type":"text","text":"a"},{"type":"image"}]`,
			content{"a", `[{"type":"text","text":"a"},{"type":"image"}]`, raw, false}},
		{"an empty array is text", `[]`, content{"", "[]", raw, true}},
		{"any other JSON is read as it is written", `{"a": 1e400}`, content{`{"a": 1e400}`, `{"a": 1e400}`, raw, false}},
		{"null is no result", `null`, content{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for f, body := range map[session.Format]string{
				session.OpenAIChat: `{"role":"tool","content":` + c.value + `}`,
				session.Anthropic:  `{"role":"user","content":[{"type":"tool_result","content":` + c.value + `}]}`,
			} {
				got := ResultText(f, []byte(body), inspect(t, f, body).Parts[0])
				plain := content{string(got.Text), string(got.Stored), got.MediaType, got.OnlyText}
				if diff := cmp.Diff(c.want, plain); diff != "" {
					t.Errorf("%s (-want +got):\n%s", f, diff)
				}
			}
		})
	}
}

func TestReplaceLeavesEveryOtherByte(t *testing.T) {
	t.Parallel()
	body := `{"role":"assistant", "tool_calls":[{"function":{"arguments":"{}"}}], "content":"old" ,"x":1e0}`
	m := inspect(t, session.OpenAIChat, body)
	edits := []Edit{{m.Parts[0].Value, []byte(`"new"`)}, {m.Parts[1].Value, []byte(`"{\"a\":1}"`)}}
	got := string(Replace([]byte(">"), []byte(body), edits))
	want := `>{"role":"assistant", "tool_calls":[{"function":{"arguments":"{\"a\":1}"}}], "content":"new" ,"x":1e0}`
	if got != want {
		t.Errorf("Replace = %s, want %s", got, want)
	}
	if edits[0].Span != m.Parts[0].Value {
		t.Error("Replace reordered its caller's edits")
	}
}

func TestAppendSystem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, want string
		bodies     []string
	}{
		{"nothing makes nothing", "", nil},
		{"the content of one message stands as it is", `[ {"type":"text","text":"a"} ]`, []string{`{"role":"system","content":[ {"type":"text","text":"a"} ]}`}},
		{"a string stays a string", `"a\u0041"`, []string{`{"content":"a\u0041","role":"system"}`}},
		{"several become one array of blocks", `[{"type":"text","text":"a"},{"type":"text","text":"b","cache_control":{}},{"type":"text","text":"c"}]`, []string{
			`{"role":"system","content":"a"}`, `{"role":"system","content":[{"type":"text","text":"b","cache_control":{}}, {"type":"text","text":"c"}]}`}},
		{"empty contents make no block", `[{"type":"text","text":"a"}]`, []string{`{"content":""}`, `{"content":null}`, `{}`, `{"content":[]}`, `{"content":"a"}`}},
		{"one message without content is an empty array", `[]`, []string{`{"role":"system","content":null}`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := string(AppendSystem(session.Anthropic, []byte("="), bytesOf(c.bodies))); got != "="+c.want {
				t.Errorf("AppendSystem = %s, want %s", got, "="+c.want)
			}
		})
	}
}

func bytesOf(texts []string) [][]byte {
	var bodies [][]byte
	for _, text := range texts {
		bodies = append(bodies, []byte(text))
	}
	return bodies
}
