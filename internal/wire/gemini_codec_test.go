package wire

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/session"
)

func TestDecodeGemini(t *testing.T) {
	t.Parallel()
	testDecode(t, session.Gemini, []decodeCase{
		{"texts, thoughts and calls are the assistant's",
			`{"role":"model","parts":[{"text":"hmm","thought":true,"thoughtSignature":"c2ln"},{"text":"ok"},{"functionCall":{"id":"c1","name":"f","args":{"a":1}},"thoughtSignature":"c2ln"},{"function_call":{"name":"g"},"thought_signature":"x"}],"more":1}`, `
assistant "more":1
  reasoning "hmm" "c2ln"
  text "ok"
  call c1 "f" {"a":1} "c2ln"
  call function:g "g" {} "x"
`},
		{"a content of responses is a Tool", `{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"f","response":{"output":"four"}}},{"functionResponse":{"name":"g","response":{"error":"no"}}}]}`, `
tool
  result c1 "f"
    text "four"
  result function:g "g" error
    text "no"
`},
		{"a response of several members, or of an unusual one, is its JSON", `{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"a":"x","b":1}}},{"functionResponse":{"name":"f","response":{"degrees":"20"}}},{"functionResponse":{"name":"f","response":{"result":{"x":[1]}}}},{"functionResponse":{"name":"f","response":{}}},{"functionResponse":{"name":"f"}}]}`, `
tool
  result function:f "f"
    text "{\"a\":\"x\",\"b\":1}"
  result function:f#2 "f"
    text "{\"degrees\":\"20\"}"
  result function:f#3 "f"
    text "{\"x\":[1]}"
  result function:f#4 "f"
  result function:f#5 "f"
`},
		{"images of a response are in its content, in the alphabet that all read", `{"role":"user","parts":[{"functionResponse":{"id":"c","name":"f","response":{"output":"see"},"parts":[{"inline_data":{"mime_type":"image/jpeg","data":"_9j_4A"}},{"x":1}]}}]}`, `
tool
  result c "f"
    text "see"
    image type="image/jpeg" data="/9j/4A=="
    opaque {"x":1}
`},
		{"the user may say something behind responses", `{"role":"user","parts":[{"functionResponse":{"id":"c","name":"f","response":{"return_value":"x"}}},{"text":"go"},{"inlineData":{"mimeType":"image/png","data":"AAAA"}},{"fileData":{"mimeType":"application/pdf","fileUri":"gs://a","displayName":"a"}}]}`, `
user
  result c "f"
    text "x"
  text "go"
  image type="image/png" data="AAAA"
  file type="application/pdf" url="gs://a" name="a"
`},
		{"a system content", `{"role":"system","parts":[{"text":"be"}]}`, `
system
  text "be"
`},
		{"another role, and what nobody knows", `{"role":"exit","parts":[{"executableCode":{"code":"1"}},7]}`, `
other "exit"
  opaque {"executableCode":{"code":"1"}}
  opaque 7
`},
		{"no role, no array", ` {"parts":{"text":"a\ud800"}} `, `
user
  text "a\ud800"
`},
		{"no parts", `{"role":"model"}`, `
assistant
`},
	})
}

func TestEncodeGemini(t *testing.T) {
	t.Parallel()
	testEncode(t, session.Gemini, []encodeCase{
		{"all calls of a turn are in one content, and all results in the next",
			[]Message{
				{Role: Assistant, Blocks: []Block{plainText("I look."), callOf("c1", "f", `{"a":1}`)}},
				{Role: Assistant, Blocks: []Block{callOf("c2", "g", `"free"`), callOf("function:h", "h", `[1]`)}},
				{Role: Tool, Blocks: []Block{resultOf("c1", "f", plainText("one"), plainText("two"))}},
				{Role: User, Blocks: []Block{failureOf("c2", "g", plainText("boom")), resultOf("function:h", "h"), plainText("go")}},
			}, `
{"role":"model","parts":[{"text":"I look."},{"functionCall":{"id":"c1","name":"f","args":{"a":1}}},{"functionCall":{"id":"c2","name":"g","args":{"input":"free"}}},{"functionCall":{"name":"h","args":{"input":[1]}}}]}
{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"f","response":{"output":"one\ntwo"}}},{"functionResponse":{"id":"c2","name":"g","response":{"error":"boom"}}},{"functionResponse":{"name":"h","response":{"output":""}}}]}
{"role":"user","parts":[{"text":"go"}]}
`},
		{"images of a result stand behind the results",
			[]Message{{Role: Tool, Blocks: []Block{resultOf("c1", "f", plainText("see"), photo), resultOf("c2", "g", plainText("x"))}}, {Role: Assistant, Blocks: []Block{plainText("ok")}}}, `
{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"f","response":{"output":"see"}}},{"functionResponse":{"id":"c2","name":"g","response":{"output":"x"}}}]}
{"role":"user","parts":[{"text":"[image of the result of call c1]"},{"text":"[image a.png]"},{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]}
{"role":"model","parts":[{"text":"ok"}]}
`},
		{"thoughts of others have no signature, sealed ones are a note",
			[]Message{{Role: Assistant, Blocks: []Block{
				{Kind: Reasoning, Format: session.Anthropic, Text: []byte(`"hmm"`), Signature: []byte(`"sig"`)},
				{Kind: Reasoning, Format: session.Anthropic, Signature: []byte(`"data"`)},
				{Kind: Call, CallID: "c", Value: []byte(`{}`), Signature: []byte(`"skip"`)},
			}}}, `
{"role":"model","parts":[{"text":"hmm","thought":true},{"functionCall":{"id":"c","name":"unknown_9d0fd45228","args":{}},"thoughtSignature":"skip"}]}
`},
		{"images and files are data, a URL, or a note", []Message{{Role: User, Blocks: []Block{
			photo,
			{Kind: Image, Media: Media{URL: []byte(`"https://a.b/c"`)}},
			{Kind: File, Media: Media{Data: []byte(`"AAAA"`)}},
			{Kind: File, Media: Media{ID: []byte(`"file_1"`)}},
			{Kind: Opaque, Raw: []byte(`{"type":"x"}`)},
		}}}, `
{"role":"user","parts":[{"text":"[image a.png]"},{"inlineData":{"mimeType":"image/png","data":"AAAA"}},{"fileData":{"mimeType":"image/jpeg","fileUri":"https://a.b/c"}},{"inlineData":{"mimeType":"application/octet-stream","data":"AAAA"}},{"text":"[file] file_1"},{"text":"[opaque: {\"type\":\"x\"}]"}]}
`},
		{"a name is a note, and messages of the user stay apart", []Message{
			{Role: System, Blocks: []Block{plainText("be")}},
			{Role: User, Name: []byte(`"ann"`), Blocks: []Block{plainText("hi")}},
			{Role: User, Blocks: []Block{plainText("ho")}},
			{Role: Other, Name: []byte(`"exit"`), Blocks: []Block{plainText("bye")}},
			{Role: Assistant},
		}, `
{"role":"system","parts":[{"text":"be"}]}
{"role":"user","parts":[{"text":"[From ann]"},{"text":"hi"}]}
{"role":"user","parts":[{"text":"ho"}]}
{"role":"user","parts":[{"text":"[From exit]"},{"text":"bye"}]}
{"role":"model","parts":[]}
`},
	})
}

func TestGeminiContentsThatARepairEditedKeepTheirPartsAndMembers(t *testing.T) {
	t.Parallel()
	list := Decode(session.Gemini, []byte(`{"id":1,"parts":[{"text":"a","x":1},{"functionCall":{"name":"f","args":{}},"y":2},{"text":""}],"role":"model"}`))
	list[0].Blocks, list[0].Edited = list[0].Blocks[:2], true
	want := `{"role":"model","parts":[{"text":"a","x":1},{"functionCall":{"name":"f","args":{}},"y":2}],"id":1}`
	if got := encoded(t, session.Gemini, list); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestPartsThatGeminiWouldRefuseAreWrittenAsItWantsThemOnceTheirContentIsEdited(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"role":"user","parts":"bare"}`:                                      `{"role":"user","parts":[{"text":"bare"}]}`,
		`{"role":"user","parts":["bare",7]}`:                                  `{"role":"user","parts":[{"text":"bare"},{"text":"[opaque: 7]"}]}`,
		`{"role":"user","parts":{"text":"x","more":1}}`:                       `{"role":"user","parts":[{"text":"x"}]}`,
		`{"role":"user","parts":[{},{"thoughtSignature":"s"}]}`:               `{"role":"user","parts":[{"text":""},{"text":"","thoughtSignature":"s"}]}`,
		`{"role":"user","parts":[{"text":"x","inlineData":{"data":"AAAA"}}]}`: `{"role":"user","parts":[{"text":"x"},{"inlineData":{"mimeType":"application/octet-stream","data":"AAAA"}}]}`,
		`{"role":"model","parts":[{"functionCall":{"name":"f","args":"x"}}]}`: `{"role":"model","parts":[{"functionCall":{"name":"f","args":{"input":"x"}}}]}`,
		`{"parts":[{"functionResponse":{"name":"f","response":[1]}}]}`:        `{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"[1]"}}}]}`,
	} {
		list := Decode(session.Gemini, []byte(body))
		list[0].Edited = true
		if got := encoded(t, session.Gemini, list); got != want {
			t.Errorf("%s\nbecame %s\nwant   %s", body, got, want)
		}
	}
}

// geminiContents returns the contents of recorded requests and responses.
func geminiContents(t *testing.T, folder string) (contents []json.RawMessage) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "gemini", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		var recorded struct {
			Request struct {
				Body struct{ Contents []json.RawMessage }
			}
			Response struct {
				Body struct {
					Candidates []struct{ Content json.RawMessage }
				}
			}
		}
		data, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(data, &recorded)
		}
		if err != nil {
			t.Fatal(err)
		}
		contents = append(contents, recorded.Request.Body.Contents...)
		for _, c := range recorded.Response.Body.Candidates {
			contents = append(contents, c.Content)
		}
	}
	return contents
}

func TestCorpusContentsOfGeminiAreUnderstood(t *testing.T) {
	t.Parallel()
	folder := corpus()
	if folder == "" {
		t.Log("no recorded conversations: set VARVE_DATA to a folder of them")
		return
	}
	contents := geminiContents(t, folder)
	kinds := map[string]int{}
	for _, body := range contents {
		m := inspect(t, session.Gemini, string(body))
		checkMessage(t, session.Gemini, body, m)
		for _, p := range m.Parts {
			kinds[p.Kind.String()]++
		}
		for _, target := range session.Formats() {
			checkEncoded(t, target, Decode(session.Gemini, body))
		}
	}
	t.Logf("%d contents: %v", len(contents), kinds)
	if kinds["call"] == 0 || kinds["result"] == 0 || kinds["text"] == 0 {
		t.Error("the corpus holds no contents of every kind")
	}
}

func TestWhatGeminiAndTheAISDKBothSayIsTheSameThereAndBack(t *testing.T) {
	t.Parallel()
	for _, bodies := range [][]string{
		{`{"role":"system","parts":[{"text":"be"}]}`},
		{`{"role":"user","parts":[{"text":"a\ud800"},{"inlineData":{"mimeType":"image/png","data":"AAAA"}},{"fileData":{"mimeType":"application/pdf","fileUri":"gs://a"}}]}`},
		{
			`{"role":"model","parts":[{"text":"hmm","thought":true},{"text":"ok","thoughtSignature":"s"},{"functionCall":{"id":"a","name":"f","args":{"x":1}},"thoughtSignature":"s"},{"functionCall":{"name":"g.h","args":{}}},{"functionCall":{"name":"g.h","args":{}}}]}`,
			`{"role":"user","parts":[{"functionResponse":{"id":"a","name":"f","response":{"output":"one"}}},{"functionResponse":{"name":"g.h","response":{"error":"two"}}},{"functionResponse":{"name":"g.h","response":{"output":""}}}]}`,
			`{"role":"model","parts":[{"text":"done"}]}`,
		},
	} {
		var list, back []Message
		want := ""
		for i, body := range bodies {
			decoded := Decode(session.Gemini, []byte(body))
			decoded[0].Origin = i
			list = append(list, decoded...)
			want += body
		}
		for _, message := range Encode(session.AISDK, list) {
			back = append(back, Decode(session.AISDK, message)...)
		}
		got := ""
		for _, body := range Encode(session.Gemini, back) {
			got += string(body)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
