package wire

import (
	"testing"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tokens"
)

func TestInspectGemini(t *testing.T) {
	t.Parallel()
	testInspect(t, session.Gemini, []inspectCase{
		{"each element of parts is a part", `{"role":"user","parts":[{"text":"12345"},{"inlineData":{"mimeType":"image/png","data":"x"}},{"file_data":{"mime_type":"application/pdf","file_uri":"gs://a"}},{"executableCode":{}},"bare"]}`,
			`user 3012 image
0 text 2 "12345" in {"text":"12345"}
1 image 1500  in {"inlineData":{"mimeType":"image/png","data":"x"}}
2 file 1500  in {"file_data":{"mime_type":"application/pdf","file_uri":"gs://a"}}
3 opaque 5  in {"executableCode":{}}
4 opaque 1  in "bare"`},
		{"a single part may stand alone", `{"parts":{"text":"hi"}}`, `user 5
0 text 1 "hi" in {"text":"hi"}`},
		{"content without parts is empty", `{"role":"model"}`, `model 4 empty`},
		{"a system content is pinned", `{"role":"system","parts":[{"text":"be!!"}]}`, `system 5 pinned
0 text 1 "be!!" in {"text":"be!!"}`},
		{"thoughts are reasoning, signatures cost nothing", `{"role":"model","parts":[{"text":"hmm","thought":true,"thoughtSignature":"c2lnbmF0dXJl"},{"text":"ok","thoughtSignature":"c2lnbmF0dXJl"}]}`, `model 6 reasoning
0 reasoning 1 "hmm" in {"text":"hmm","thought":true,"thoughtSignature":"c2lnbmF0dXJl"}
1 text 1 "ok" in {"text":"ok","thoughtSignature":"c2lnbmF0dXJl"}`},
		{"a call has its id, or one of its name, numbered from the second on",
			`{"role":"model","parts":[{"functionCall":{"id":"c1","name":"f","args":{"a":1}}},{"function_call":{"name":"f","arguments":"{}"}},{"functionCall":{"name":"f","args":{}}},{"functionCall":{"name":"g","args":{}}}]}`, `model 13
0 call 4 c1 f {"a":1} in {"functionCall":{"id":"c1","name":"f","args":{"a":1}}}
1 call 1 function:f f  in {"function_call":{"name":"f","arguments":"{}"}}
2 call 2 function:f#2 f {} in {"functionCall":{"name":"f","args":{}}}
3 call 2 function:g g {} in {"functionCall":{"name":"g","args":{}}}`},
		{"responses pair the same way and continue the unit",
			`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"four"}}},{"function_response":{"name":"f","response":{"result":"5"}}}]}`, `user 6 continues
0 result 1 function:f f "four" in {"functionResponse":{"name":"f","response":{"output":"four"}}}
1 result 1 function:f#2 f "5" in {"function_response":{"name":"f","response":{"result":"5"}}}`},
		{"the text of a response of one member can be replaced, else the whole", `{"role":"function","parts":[{"functionResponse":{"name":"f","response":{"a":"x","b":1}}},{"functionResponse":{"name":"g","response":{"output":[1]}}},{"functionResponse":{"name":"h","response":"raw"}},{"functionResponse":{"name":"i"}}]}`, `function 17 continues result-not-text
0 result 6 function:f f {"a":"x","b":1} in {"functionResponse":{"name":"f","response":{"a":"x","b":1}}}
1 result 6 function:g g {"output":[1]} in {"functionResponse":{"name":"g","response":{"output":[1]}}}
2 result 1 function:h h "raw" in {"functionResponse":{"name":"h","response":"raw"}}
3 result 0 function:i i  in {"functionResponse":{"name":"i"}}`},
		{"an error says that the tool failed", `{"role":"user","parts":[{"functionResponse":{"id":"c","name":"f","response":{"error":"no"}}},{"functionResponse":{"id":"d","name":"f","response":{"error":null,"output":"y"}}}]}`, `user 14 continues result-not-text
0 result 1 c f error "no" in {"functionResponse":{"id":"c","name":"f","response":{"error":"no"}}}
1 result 9 d f {"error":null,"output":"y"} in {"functionResponse":{"id":"d","name":"f","response":{"error":null,"output":"y"}}}`},
		{"a response may hold images", `{"role":"user","parts":[{"functionResponse":{"id":"c","name":"f","response":{"output":"look"},"parts":[{"inlineData":{"mimeType":"image/png","data":""}}]}}]}`, `user 1505 continues image result-not-text
0 result 1501 c f "look" in {"functionResponse":{"id":"c","name":"f","response":{"output":"look"},"parts":[{"inlineData":{"mimeType":"image/png","data":""}}]}}`},
		{"what the user says beside responses does not begin a unit", `{"role":"user","parts":[{"functionResponse":{"id":"c","name":"f","response":{"output":"x"}}},{"text":"go"}]}`, `user 6 continues
0 result 1 c f "x" in {"functionResponse":{"id":"c","name":"f","response":{"output":"x"}}}
1 text 1 "go" in {"text":"go"}`},
		{"tools that the provider runs are opaque", `{"role":"model","parts":[{"toolCall":{"id":"t"}},{"toolResponse":{"id":"t"}}]}`, `model 21
0 opaque 8  in {"toolCall":{"id":"t"}}
1 opaque 9  in {"toolResponse":{"id":"t"}}`},
	})
}

// TestPicturesForGeminiCostTiles: the picture of 597 by 566 is a recorded one, for which the provider counted 1,088.
func TestPicturesForGeminiCostTiles(t *testing.T) {
	t.Parallel()
	for size, want := range map[tokens.Pixels]int{
		{}:                           tokens.Unknown,
		{Width: 384, Height: 1}:      258,
		{Width: 385, Height: 385}:    4 * 258,
		{Width: 597, Height: 566}:    4 * 258,
		{Width: 30000, Height: 3000}: 16 * 258,
	} {
		if got := geminiImage(size); got != want {
			t.Errorf("geminiImage(%v) = %d, want %d", size, got, want)
		}
	}
}
