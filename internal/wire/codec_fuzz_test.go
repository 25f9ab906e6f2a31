package wire

import (
	"bytes"
	"testing"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// fuzzDecode holds a codec to what is promised of every message that Inspect accepts: it comes back as the bytes that
// came in, and in every format, its own when a repair has changed it included, it is messages that can be read.
func fuzzDecode(f *testing.F, own session.Format, seeds ...string) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if rawjson.Check(body, rawjson.Limits{Depth: 64}) != nil {
			return
		}
		m, err := Inspect(own, body)
		if err != nil {
			return
		}
		checkMessage(t, own, body, m)
		list := Decode(own, body)
		if got := Encode(own, list); len(got) != 1 || !bytes.Equal(got[0], body) {
			t.Fatalf("%q came back as %q", body, got)
		}
		for _, f := range session.Formats() {
			checkEncoded(t, f, list)
		}
		for i := range list {
			list[i].Edited = true
		}
		checkEncoded(t, own, list)
		edit(list)
		checkEncoded(t, own, list)
	})
}

// edit makes a repair's work of everything, so that nothing is written as it came.
func edit(list []Message) {
	for i := range list {
		list[i].Edited = true
		for j := range list[i].Blocks {
			list[i].Blocks[j].Edited = true
		}
	}
}

func checkEncoded(t *testing.T, f session.Format, list []Message) {
	t.Helper()
	for _, body := range Encode(f, list) {
		if err := rawjson.Check(body, rawjson.Limits{}); err != nil {
			t.Fatalf("%s: %q: %v", f, body, err)
		}
		if _, err := Inspect(f, body); err != nil {
			t.Fatalf("%s: %q: %v", f, body, err)
		}
	}
}

func FuzzDecodeGemini(f *testing.F) {
	fuzzDecode(f, session.Gemini,
		`{"role":"model","parts":[{"text":"hmm","thought":true,"thoughtSignature":"c2ln"},{"functionCall":{"id":"c1","name":"f","args":{"a":1}},"thoughtSignature":"c2ln"},{"function_call":{"name":"g"},"thought_signature":"x"}],"more":1}`,
		`{"role":"user","parts":[{"functionResponse":{"id":"c","name":"f","response":{"output":"see"},"parts":[{"inline_data":{"mime_type":"image/jpeg","data":"_9j_4A"}},{"x":1}]}},{"text":"go"},{"fileData":{"mimeType":"application/pdf","fileUri":"gs://a","displayName":"a"}}]}`,
		`{"role":"exit","parts":[{"executableCode":{"code":"1"}},7]}`,
		`{"parts":{"functionResponse":{"name":"\ud800","response":[1]}}}`,
		`{"parts":"a\u0000"}`,
	)
}

func FuzzDecodeAISDK(f *testing.F) {
	fuzzDecode(f, session.AISDK,
		`{"id":"m1","role":"user","metadata":{"a":1},"parts":[{"type":"text","text":"see"},{"type":"file","mediaType":"image/png","url":"data:image/png;base64,AAAA","filename":"a.png","providerMetadata":{"openai":{"imageDetail":"low"}}},{"type":"file","mediaType":"image/*","url":"https://a.b/c"},{"type":"data-x","data":1}]}`,
		`{"id":"m2","role":"assistant","parts":[{"type":"step-start"},{"type":"reasoning","text":"hmm","providerMetadata":{"anthropic":{"signature":"s"}}},{"type":"tool-f","toolCallId":"c1","state":"output-available","input":{"a":1},"output":{"type":"content","value":[{"type":"media","data":"AAAA"},{"type":"image-url","url":"u"}]}},{"type":"dynamic-tool","toolName":"g h","toolCallId":"c2","state":"output-error","rawInput":"ls","errorText":"boom"},{"type":"step-start"},{"type":"tool-f","toolCallId":"c3","state":"output-denied","approval":{"reason":"no"}},{"type":"text","text":"done"}]}`,
		`{"id":"m","role":"assistant","content":"hi","toolInvocations":[{"state":"call"}],"createdAt":1}`,
		`{"role":"data","content":7}`,
		`{"role":"assistant","parts":[{"type":"\u0074ool-\ud800","state":"input-available"},{"type":"tool-","state":"x"}]}`,
	)
}
