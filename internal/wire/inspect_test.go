package wire

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// inspect inspects a message that must be valid.
func inspect(t testing.TB, f session.Format, body string) Facts {
	t.Helper()
	if err := rawjson.Check([]byte(body), rawjson.Limits{}); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	m, err := Inspect(f, []byte(body))
	if err != nil {
		t.Fatalf("Inspect(%s): %v", body, err)
	}
	return m
}

// describe writes a message down: role, tokens, flags, then a line a part with the bytes of its spans.
func describe(body string, m Facts) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %d", m.Role, m.Tokens)
	if !m.StartsUnit {
		b.WriteString(" continues")
	}
	names := []string{"empty", "empty-text", "image", "reasoning", "duplicate-keys", "pinned", "empty-array", "result-not-text"}
	for i, name := range names {
		if m.Flags&(1<<i) != 0 {
			b.WriteString(" " + name)
		}
	}
	kinds := []string{"opaque", "text", "image", "file", "call", "result", "reasoning"}
	for _, p := range m.Parts {
		fmt.Fprintf(&b, "\n%d %s %d", p.Index, kinds[p.Kind], p.Tokens)
		for _, word := range []string{p.CallID, p.Name} {
			if word != "" {
				b.WriteString(" " + word)
			}
		}
		if p.IsError {
			b.WriteString(" error")
		}
		fmt.Fprintf(&b, " %s", body[p.Value.Start:p.Value.End])
		if p.Raw != p.Value {
			fmt.Fprintf(&b, " in %s", body[p.Raw.Start:p.Raw.End])
		}
	}
	return b.String()
}

type inspectCase struct{ name, body, want string }

func testInspect(t *testing.T, f session.Format, cases []inspectCase) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, describe(c.body, inspect(t, f, c.body))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestInspectOpenAIChat(t *testing.T) {
	t.Parallel()
	testInspect(t, session.OpenAIChat, []inspectCase{
		{"a string is one text part", ` {"role":"user","content":"12345\n"} `, "user 8\n0 text 4 \"12345\\n\""},
		{"content may be null", `{"role":"assistant","content":null,"function_call":null,"tool_calls":null}`, "assistant 4 empty"},
		{"content may be missing", `{"role":"user"}`, "user 4 empty"},
		{"an empty string is content, but no part", `{"role":"assistant","content":""}`, "assistant 4"},
		{"an empty array is neither", `{"role":"user","content":[]}`, "user 4 empty empty-array"},
		{"an unknown role is accepted, an unknown member ignored", `{"role":"exit","content":"bye!","extra":{"role":1}}`, "exit 5\n0 text 1 \"bye!\""},
		{"developer messages are pinned", `{"role":"developer","content":"be!!"}`, "developer 5 pinned\n0 text 1 \"be!!\""},
		{"each element of an array is a part",
			`{"role":"user","content":[{"type":"text","text":""},{"type":"image_url","image_url":{"url":"data:"}},{"type":"file","file":{}},{"type":"input_audio"},{"type":"zzz_future","x":1},"bare",7]}`,
			"user 4514 empty-text image\n" +
				"0 text 0 \"\" in {\"type\":\"text\",\"text\":\"\"}\n" +
				"1 image 1500  in {\"type\":\"image_url\",\"image_url\":{\"url\":\"data:\"}}\n" +
				"2 file 1500  in {\"type\":\"file\",\"file\":{}}\n" +
				"3 file 1500  in {\"type\":\"input_audio\"}\n" +
				"4 opaque 8  in {\"type\":\"zzz_future\",\"x\":1}\n" +
				"5 opaque 1  in \"bare\"\n" +
				"6 opaque 1  in 7"},
		{"calls come after content, wherever they stand",
			`{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{\"a\":1}"}},{"id":"c2","type":"custom","custom":{"name":"sh","input":"ls"}},{"function":{"name":"o","arguments":{"b":2}}},{"id":"c4"},9],"reasoning_content":"hmm","refusal":"no","content":"ok"}`,
			"assistant 18 reasoning\n" +
				"0 text 1 \"ok\"\n" +
				"1 text 1 \"no\"\n" +
				"2 reasoning 1 \"hmm\"\n" +
				"3 call 4 c1 read \"{\\\"a\\\":1}\" in {\"id\":\"c1\",\"type\":\"function\",\"function\":{\"name\":\"read\",\"arguments\":\"{\\\"a\\\":1}\"}}\n" +
				"4 call 2 c2 sh \"ls\" in {\"id\":\"c2\",\"type\":\"custom\",\"custom\":{\"name\":\"sh\",\"input\":\"ls\"}}\n" +
				"5 call 4 o {\"b\":2} in {\"function\":{\"name\":\"o\",\"arguments\":{\"b\":2}}}\n" +
				"6 call 0 c4  in {\"id\":\"c4\"}\n" +
				"7 opaque 1  in 9"},
		{"a legacy call and its result are paired by the function's name", `{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}`,
			"assistant 6\n0 call 2 function:f f \"{}\" in {\"name\":\"f\",\"arguments\":\"{}\"}"},
		{"a message of role function is a result", `{"role":"function","name":"f","content":"four"}`, "function 5 continues\n0 result 1 function:f f \"four\""},
		{"a legacy call beside tool calls is a copy", `{"role":"assistant","function_call":{"name":"f","arguments":"{}"},"tool_calls":[{"id":"c"}]}`, "assistant 4\n0 call 0 c  in {\"id\":\"c\"}"},
		{"a tool message is one result", `{"role":"tool","content":"a\u0000\ud800","tool_call_id":"c1","name":"read"}`, "tool 7 continues\n0 result 3 c1 read \"a\\u0000\\ud800\""},
		{"a result may be empty", `{"role":"tool","content":"","tool_call_id":""}`, "tool 4 continues\n0 result 0 \"\""},
		{"a result that is null has no value", `{"role":"tool","content":null,"tool_call_id":null}`, "tool 4 continues\n0 result 0  in null"},
		{"a result that is missing has no value", `{"role":"tool","tool_call_id":"c"}`, "tool 4 continues\n0 result 0 c "},
		{"a result may be any JSON", `{"role":"tool","content":{"a":[1e400]},"tool_call_id":"c"}`, "tool 12 continues result-not-text\n0 result 8 c {\"a\":[1e400]}"},
		{"a result may be an array of texts", `{"role":"tool","content":[{"type":"text","text":"abcd"},{"text":"e","type":"text"}],"tool_call_id":"c"}`,
			"tool 6 continues\n0 result 2 c [{\"type\":\"text\",\"text\":\"abcd\"},{\"text\":\"e\",\"type\":\"text\"}]"},
		{"a result with an image is not only text", `{"role":"tool","content":[{"type":"image_url"}],"tool_call_id":"c"}`,
			"tool 1504 continues image result-not-text\n0 result 1500 c [{\"type\":\"image_url\"}]"},
		{"of repeated keys the last one counts", `{"role":"user","role":"tool","r\u006fle":"user","content":"1"}`, "user 5 duplicate-keys\n0 text 1 \"1\""},
		{"unknown keys that repeat are noticed", `{"role":"user","x":1,"\u0078":2}`, "user 4 empty duplicate-keys"},
		{"keys that repeat in a block are noticed", `{"role":"user","content":[{"type":"a","k":1,"k":1}]}`, "user 13 duplicate-keys\n0 opaque 9  in {\"type\":\"a\",\"k\":1,\"k\":1}"},
		{"an id that no database text can hold stands for itself as written", `{"role":"tool","tool_call_id":"a\u0000\n","content":"x"}`, "tool 5 continues\n0 result 1 a\\u0000\\n \"x\""},
		{"members of a wrong type are ignored", `{"role":"assistant","content":7,"tool_calls":{},"refusal":1,"reasoning_content":[],"function_call":"f"}`, "assistant 5\n0 opaque 1  in 7"},
	})
}

func TestInspectAnthropic(t *testing.T) {
	t.Parallel()
	testInspect(t, session.Anthropic, []inspectCase{
		{"a string is one text part", `{"role":"user","content":"12345"}`, "user 6\n0 text 2 \"12345\""},
		{"an empty string is an empty message", `{"role":"user","content":""}`, "user 4 empty"},
		{"content may be null", `{"role":"assistant","content":null}`, "assistant 4 empty"},
		{"empty texts make an empty message", `{"role":"user","content":[{"type":"text","text":""}]}`, "user 4 empty empty-text\n0 text 0 \"\" in {\"type\":\"text\",\"text\":\"\"}"},
		{"thinking is reasoning, counted without its signature",
			`{"role":"assistant","content":[{"type":"thinking","thinking":"hmm","signature":"c2lnbmF0dXJl"},{"type":"redacted_thinking","data":"abcdefgh"},{"type":"tool_use","id":"t1","name":"read","input":{"a":1}}]}`,
			"assistant 11 reasoning\n" +
				"0 reasoning 1 \"hmm\" in {\"type\":\"thinking\",\"thinking\":\"hmm\",\"signature\":\"c2lnbmF0dXJl\"}\n" +
				"1 reasoning 2 \"abcdefgh\" in {\"type\":\"redacted_thinking\",\"data\":\"abcdefgh\"}\n" +
				"2 call 4 t1 read {\"a\":1} in {\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"read\",\"input\":{\"a\":1}}"},
		{"a user message with results continues the unit, text or not",
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":"boom"},{"type":"tool_result","tool_use_id":"t2"},{"type":"text","text":"go"}]}`,
			"user 6 continues\n" +
				"0 result 1 t1 error \"boom\" in {\"type\":\"tool_result\",\"tool_use_id\":\"t1\",\"is_error\":true,\"content\":\"boom\"}\n" +
				"1 result 0 t2  in {\"type\":\"tool_result\",\"tool_use_id\":\"t2\"}\n" +
				"2 text 1 \"go\" in {\"type\":\"text\",\"text\":\"go\"}"},
		{"a result may hold images",
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"abcd"},{"type":"image","source":{}}]}]}`,
			"user 1505 continues image result-not-text\n0 result 1501 t [{\"type\":\"text\",\"text\":\"abcd\"},{\"type\":\"image\",\"source\":{}}] in " +
				`{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"abcd"},{"type":"image","source":{}}]}`},
		{"images and files count 1,500, a document of text counts its text",
			`{"role":"user","content":[{"type":"image"},{"type":"document","source":{"type":"base64","data":"aaaaaaaaaaaa"}},{"type":"document","source":{"type":"text","data":"abcdefgh"}},{"type":"document","source":{"type":"content","content":"abcd"}},{"type":"document"}]}`,
			"user 4506 image\n0 image 1500  in {\"type\":\"image\"}\n" +
				"1 file 1500  in {\"type\":\"document\",\"source\":{\"type\":\"base64\",\"data\":\"aaaaaaaaaaaa\"}}\n" +
				"2 file 1  in {\"type\":\"document\",\"source\":{\"type\":\"text\",\"data\":\"abcdefgh\"}}\n" +
				"3 file 1  in {\"type\":\"document\",\"source\":{\"type\":\"content\",\"content\":\"abcd\"}}\n" +
				"4 file 1500  in {\"type\":\"document\"}"},
		{"the provider's own tools are opaque",
			`{"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"n"},{"type":"web_search_tool_result","tool_use_id":"s"},{"type":"compaction","content":"sum"}]}`,
			"assistant 41\n0 opaque 14  in {\"type\":\"server_tool_use\",\"id\":\"s\",\"name\":\"n\"}\n" +
				"1 opaque 13  in {\"type\":\"web_search_tool_result\",\"tool_use_id\":\"s\"}\n" +
				"2 opaque 10  in {\"type\":\"compaction\",\"content\":\"sum\"}"},
	})
}

func TestInspectRefusesOnlyWhatItCannotStore(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 64<<10+1)
	for _, c := range []struct {
		format          session.Format
		body            string
		pointer, detail string
	}{
		{session.OpenAIChat, `[]`, "", "a message must be a JSON object, this is an array"},
		{session.OpenAIChat, ` "hello" `, "", "a message must be a JSON object, this is a string"},
		{session.OpenAIChat, `{}`, "/role", `a message needs a role, for example "user"`},
		{session.OpenAIChat, `{"role":null}`, "/role", "role must be a string, this is null"},
		{session.OpenAIChat, `{"role":""}`, "/role", `role must not be empty, it could be "user"`},
		{session.OpenAIChat, `{"role":"` + long + `"}`, "/role", "role must have at most 64 bytes, this one has 65537"},
		{session.OpenAIChat, `{"role":"assistant","tool_calls":[{},{"id":7}]}`, "/tool_calls/1/id", "the id of a call must be a string, this is a number"},
		{session.OpenAIChat, `{"role":"tool","tool_call_id":"` + long + `"}`, "/tool_call_id", "the id of a call must have at most 65536 bytes, this one has 65537"},
		{session.OpenAIChat, `{"role":"function","name":"` + long + `"}`, "/name", "the name of a function must have at most 65527 bytes, this one has 65537"},
		{session.Anthropic, `{"role":"user","content":[{"type":"tool_result","tool_use_id":{}}]}`, "/content/0/tool_use_id", "the id of a call must be a string, this is an object"},
		{session.Anthropic, `{"role":"assistant","content":[{"type":"text","text":"x"},{"type":"tool_use","id":true}]}`, "/content/1/id", "the id of a call must be a string, this is a boolean"},
		{session.Gemini, `{"role":7}`, "/role", "role must be a string, this is a number"},
		{session.Gemini, `{"parts":[{},{"functionCall":{"id":7}}]}`, "/parts/1/functionCall/id", "the id of a call must be a string, this is a number"},
		{session.Gemini, `{"parts":{"functionResponse":{"name":"` + long + `"}}}`, "/parts/0/functionResponse/name", "the name of a function must have at most 65527 bytes, this one has 65537"},
		{session.AISDK, `{"parts":[]}`, "/role", `a message needs a role, for example "user"`},
		{session.AISDK, `{"role":"assistant","parts":[{},{"type":"tool-f","toolCallId":{}}]}`, "/parts/1/toolCallId", "the id of a call must be a string, this is an object"},
		{"morse", `{"role":"user"}`, "", `format "morse" is unknown`},
	} {
		_, err := Inspect(c.format, []byte(c.body))
		var got *session.InvalidError
		if !errors.As(err, &got) {
			t.Errorf("Inspect(%s) = %v", c.body, err)
			continue
		}
		want := session.Problem{Pointer: c.pointer, Code: "invalid_message", Detail: c.detail}
		if diff := cmp.Diff(want, got.Problems[0]); diff != "" {
			t.Errorf("Inspect(%s) (-want +got):\n%s", c.body, diff)
		}
	}
}

func TestInspectRefusesAMessageThatIsTooLarge(t *testing.T) {
	t.Parallel()
	body := `{"role":"user","content":"` + strings.Repeat("x", session.MaxMessageBytes) + `"}`
	_, err := Inspect(session.OpenAIChat, []byte(body))
	var got *session.InvalidError
	if !errors.As(err, &got) || got.Code != "message_too_large" {
		t.Errorf("Inspect = %v", err)
	}
}

func TestAnObjectOfManyKeysIsReadInReasonableTime(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(`{"role":"user"`)
	for i := range session.MaxJSONNodes {
		fmt.Fprintf(&b, `,"k%d":0`, i)
	}
	body := b.String() + `}`
	if m := inspect(t, session.OpenAIChat, body); m.Flags&^(FlagAssessed|FlagMayNeedRepair) != FlagEmpty {
		t.Errorf("flags = %b", m.Flags)
	}
	if m := inspect(t, session.OpenAIChat, b.String()+`,"k99999":0}`); m.Flags&^(FlagAssessed|FlagMayNeedRepair) != FlagEmpty|FlagDuplicateKeys {
		t.Errorf("flags = %b", m.Flags)
	}
}

func TestPinnedHeadEndsAtTheFirstOtherRole(t *testing.T) {
	t.Parallel()
	system, user := Facts{Flags: FlagPinned}, Facts{}
	for want, messages := range [][]Facts{{user, system}, {system, user, system}, {system, system}} {
		if got := PinnedHead(messages); got != want {
			t.Errorf("PinnedHead(%v) = %d, want %d", messages, got, want)
		}
	}
}
