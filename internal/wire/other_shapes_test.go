package wire_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/provider"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

const pngHead = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"

// TestOtherShapesOfMessages has what programs and SDKs of other versions write, and what a view has and lacks then.
func TestOtherShapesOfMessages(t *testing.T) {
	t.Parallel()
	screenshot := func(url string) []string {
		return []string{`{"type":"computer_call","id":"cu_1","call_id":"c","action":{"type":"screenshot"},"pending_safety_checks":[],"status":"completed"}`,
			`{"type":"computer_call_output","call_id":"c","acknowledged_safety_checks":[],"output":{"type":"computer_screenshot","image_url":"` + url + `"}}`}
	}
	responded := func(mimeType, data string) []string {
		return []string{`{"role":"user","parts":[{"text":"u"}]}`, `{"role":"model","parts":[{"functionCall":{"name":"f","args":{}},"thoughtSignature":"QQ=="}]}`,
			`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"a":1},"parts":[{"inlineData":{"mimeType":"` + mimeType + `","data":"` + data + `"}}]}}]}`}
	}
	output := func(element string) []string {
		return []string{`{"id":"1","role":"user","parts":[{"type":"text","text":"u"}]}`,
			`{"id":"2","role":"assistant","parts":[{"type":"tool-f","toolCallId":"c","state":"output-available","input":{},"output":{"type":"content","value":[` + element + `]}}]}`,
			`{"id":"3","role":"user","parts":[{"type":"text","text":"and?"}]}`}
	}
	signed := func(call string) []string {
		return []string{`{"role":"user","content":"u"}`, `{"role":"assistant","content":null,"tool_calls":[` + call + `]}`, `{"role":"tool","tool_call_id":"c","content":"r"}`}
	}
	denied := []string{`{"id":"1","role":"user","parts":[{"type":"text","text":"u"}]}`,
		`{"id":"2","role":"assistant","parts":[{"type":"tool-rm","toolCallId":"c","input":{},"state":"approval-responded","approval":{"id":"a","approved":false,"reason":"too risky"}}]}`}
	gemini := wire.Options{Model: "gemini/gemini-3.5-flash"}
	claude := wire.Options{Model: "claude-opus-4-8"}
	for name, c := range map[string]struct {
		from, to session.Format
		log      []string
		o        wire.Options
		has      string
		lacks    string
	}{
		"results beside what only Anthropic has, by its package": {session.Anthropic, session.AISDK, []string{`{"role":"user","content":"u"}`, `{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"kept"},{"type":"document","source":{"type":"content","content":"shown"}}]}`}, claude, `"output":"kept"`, "lost"},
		"what only Anthropic has, alone": {session.Anthropic, session.AISDK, []string{`{"role":"user","content":[{"type":"search_result","source":"s","title":"kept","content":[{"type":"text","text":"x"}]}]}`}, wire.Options{Model: "gpt-5.6"}, "kept", "[The conversation"},

		"a screenshot of another type":  {session.OpenAIResponses, session.OpenAIResponses, screenshot("data:image/jpeg;base64," + pngHead), wire.Options{}, `"image_url":"data:image/png;base64,` + pngHead, "function_call"},
		"a screenshot of no bytes":      {session.OpenAIResponses, session.OpenAIResponses, screenshot("data:image/png;base64,"), wire.Options{}, `{"type":"function_call_output","call_id":"c","output":"[image image/png: it is empty`, "computer_call"},
		"a response's picture, retyped": {session.Gemini, session.Gemini, responded("image/jpeg", pngHead), gemini, `"mimeType":"image/png"`, "image/jpeg"},
		"a response's empty picture":    {session.Gemini, session.Gemini, responded("image/png", ""), gemini, `"parts":[{"inlineData":{"mimeType":"text/plain","data":"W2ltYWdl`, "image/png"},

		"an output's picture of version 6": {session.AISDK, session.Anthropic, output(`{"type":"image-data","mediaType":"image/png","data":"` + pngHead + `"}`), claude, `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + pngHead, "opaque"},
		"an output's file of version 6":    {session.AISDK, session.Anthropic, output(`{"type":"file-data","mediaType":"application/pdf","data":"JVBERi0xLjQK"}`), claude, `"type":"document"`, "opaque"},
		"an output's picture of version 7": {session.AISDK, session.Anthropic, output(`{"type":"file","mediaType":"image/png","data":{"type":"data","data":"` + pngHead + `"}}`), claude, `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + pngHead, "opaque"},
		"an output's address of version 7": {session.AISDK, session.Anthropic, output(`{"type":"file","mediaType":"image","data":{"type":"url","url":"https://a.b/c.png"}}`), claude, `{"type":"image","source":{"type":"url","url":"https://a.b/c.png"}}`, "opaque"},
		"an output's text of version 7":    {session.AISDK, session.Anthropic, output(`{"type":"file","mediaType":"text/plain","data":{"type":"text","text":"kept"}}`), claude, `"content":"kept"`, "opaque"},
		"an output's empty picture":        {session.AISDK, session.AISDK, output(`{"type":"file","mediaType":"image/png","data":{"type":"data","data":""}}`), claude, "it is empty", `"data"`},
		"a ModelMessage's picture of version 7": {session.AISDK, session.Anthropic, []string{`{"role":"user","content":[{"type":"file","mediaType":"image/png","data":{"type":"data","data":"` + pngHead + `"}}]}`}, claude,
			`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + pngHead, "note"},
		"image/jpg, by Anthropic's package":           {session.AISDK, session.AISDK, []string{`{"id":"1","role":"user","parts":[{"type":"file","mediaType":"image/jpg","url":"data:image/jpg;base64,/9j/4AAQSkZJRg=="}]}`}, claude, `"url":"data:image/jpeg;base64,`, "image/jpg"},
		"a picture elsewhere, by Anthropic's package": {session.OpenAIChat, session.AISDK, []string{`{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://a.b/c.png"}}]}`}, claude, `"url":"https://a.b/c.png"`, "[image"},
		"a table that is a document":                  {session.Anthropic, session.Anthropic, []string{`{"role":"user","content":[{"type":"document","title":"kept","source":{"type":"base64","media_type":"text/csv","data":"YSxi"}}]}`}, claude, "[file kept text/csv", `"document"`},
		"a picture that is nowhere":                   {session.OpenAIChat, session.OpenAIChat, []string{`{"role":"user","content":[{"type":"text","text":"u"},{"type":"image_url","image_url":{"url":null}}]}`}, wire.Options{}, "[image: it is empty", "null"},
		"base64 with blanks":                          {session.Anthropic, session.Anthropic, []string{`{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo AAAANSUhE\n AAAA"}}]}`}, claude, `"data":"iVBORw0KGgoAAAANSUhEAAAA"`, "[image"},

		"LiteLLM's signature, back to it": {session.OpenAIChat, session.OpenAIChat, signed(`{"id":"c","type":"function","function":{"name":"f","arguments":"{}"},"provider_specific_fields":{"thought_signature":"SIG"}}`), gemini, `"provider_specific_fields":{"thought_signature":"SIG"}`, "extra_content"},
		"LiteLLM's signature, for Gemini": {session.OpenAIChat, session.Gemini, signed(`{"id":"c","type":"function","function":{"name":"f","arguments":"{}","provider_specific_fields":{"thought_signature":"SIG"}}}`), gemini, `"thoughtSignature":"SIG"`, "skip"},
		"LiteLLM's signature, for Groq":   {session.OpenAIChat, session.OpenAIChat, signed(`{"id":"c","type":"function","function":{"name":"f","arguments":"{}","provider_specific_fields":{"thought_signature":"SIG"}}}`), wire.Options{Model: "groq/llama-3.3-70b"}, `"name":"f"`, "SIG"},
		"a text's signature of Google's":  {session.OpenAIChat, session.OpenAIChat, []string{`{"role":"user","content":"u"}`, `{"role":"assistant","content":"a","extra_content":{"google":{"thought_signature":"SIG"}}}`, `{"role":"user","content":"u"}`}, gemini, "SIG", "note"},

		"a denial says why":                {session.AISDK, session.OpenAIChat, append(denied[:2:2], `{"id":"3","role":"user","parts":[{"type":"text","text":"and?"}]}`), wire.Options{}, "the user denied the call: too risky", "lost"},
		"a denial is a result":             {session.AISDK, session.Anthropic, denied, claude, `"tool_use_id":"c"`, "lost"},
		"a denial is left to the AI SDK":   {session.AISDK, session.AISDK, denied, claude, `"state":"approval-responded"`, "errorText"},
		"what Azure keeps of a thought":    {session.AISDK, session.OpenAIResponses, []string{`{"id":"1","role":"user","parts":[{"type":"text","text":"u"}]}`, `{"id":"2","role":"assistant","parts":[{"type":"reasoning","text":"","providerMetadata":{"azure":{"itemId":"rs_1","reasoningEncryptedContent":"ENC"}}},{"type":"text","text":"a"}]}`}, wire.Options{}, `"encrypted_content":"ENC"`, "azure"},
		"a ModelMessage keeps its options": {session.AISDK, session.AISDK, []string{`{"role":"user","content":"u"}`, `{"role":"assistant","content":[{"type":"text","text":"a","providerOptions":{"openai":{"itemId":"msg_1"}}}]}`, `{"role":"user","content":"u"}`}, wire.Options{Model: "gpt-5.6"}, `{"type":"text","text":"a","providerMetadata":{"openai":{"itemId":"msg_1"}}}`, "providerOptions"},
		"a ModelMessage with a compaction": {session.AISDK, session.AISDK, []string{`{"role":"user","content":"gone"}`, `{"role":"assistant","content":[{"type":"text","text":"s","providerOptions":{"anthropic":{"type":"compaction"}}},{"type":"text","text":"a"}]}`, `{"role":"user","content":"u"}`}, claude, `{"type":"text","text":"s","providerMetadata":{"anthropic":{"type":"compaction"}}}`, "gone"},
		"a ModelMessage with OpenAI's": {session.AISDK, session.AISDK, []string{`{"role":"user","content":"gone"}`, `{"role":"assistant","content":[{"type":"custom","kind":"openai.compaction","providerOptions":{"azure":{"type":"compaction","itemId":"cmp_1","encryptedContent":"ENC"}}},{"type":"text","text":"a"}]}`, `{"role":"user","content":"u"}`}, wire.Options{Model: "azure/gpt-5.6"},
			`{"type":"custom","kind":"openai.compaction","providerMetadata":{"azure":{"type":"compaction"`, "gone"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := wiretest.Render(c.to, stored(c.from, bytesOf(c.log)), c.o)
			text := string(bytes.Join(made.Bodies, []byte("\n")))
			if !strings.Contains(strings.ReplaceAll(text, `": "`, `":"`), c.has) || strings.Contains(text, c.lacks) {
				t.Errorf("it must have %s, and not %s:\n%s", c.has, c.lacks, text)
			}
			for _, v := range wiretest.Validate(c.to, made.Bodies, c.o) {
				t.Errorf("message %d breaks %s: %s\n%s", v.Message, v.Rule, v.Detail, text)
			}
		})
	}
}

func bytesOf(log []string) (list [][]byte) {
	for _, m := range log {
		list = append(list, []byte(m))
	}
	return list
}

// TestATextAmongBlocksIsATextForEveryServer has a content that is a list of texts, as programs write it.
func TestATextAmongBlocksIsATextForEveryServer(t *testing.T) {
	t.Parallel()
	for f, log := range map[session.Format][]string{
		session.OpenAIChat: {`{"role":"user","content":["kept",5,null]}`, `{"role":"assistant","content":["kept"],"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}`, `{"role":"tool","tool_call_id":"c","content":["kept",{"type":"text","text":"b"}]}`},
		session.Anthropic:  {`{"role":"user","content":["kept",5]}`, `{"role":"assistant","content":["kept",{"type":"tool_use","id":"c","name":"f","input":{}}]}`, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":["kept",7]}]}`},
		session.OpenAIResponses: {`{"role":"user","content":["kept",[]]}`, `{"role":"assistant","content":["kept"]}`, `{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}`,
			`{"type":"function_call_output","call_id":"c","output":["kept",7]}`},
		session.Gemini: {`{"role":"user","parts":["kept",{"text":"b"}]}`, `{"role":"model","parts":["kept"]}`, `{"role":"user","parts":["kept"]}`},
		session.AISDK:  {`{"id":"1","role":"user","parts":["kept"]}`, `{"id":"2","role":"assistant","parts":["kept"]}`, `{"id":"3","role":"user","parts":["kept"]}`},
	} {
		for _, d := range append(provider.DialectsOf(f), "") {
			o := wire.Options{Dialect: d}
			made := wiretest.Render(f, stored(f, bytesOf(log)), o)
			text := string(bytes.Join(made.Bodies, []byte("\n")))
			if strings.Contains(text, `["kept"`) || strings.Count(text, `"kept"`)+strings.Count(text, `"kept\n`) < 3 {
				t.Errorf("%s, %s: a text is no block:\n%s", f, d, text)
			}
			for _, v := range append(wiretest.Validate(f, made.Bodies, o), wiretest.Validate(f, nil, o)...) {
				t.Errorf("%s, %s: message %d breaks %s: %s\n%s", f, d, v.Message, v.Rule, v.Detail, text)
			}
			_ = wiretest.Validate(f, bytesOf(log), o) // which must look at what no server takes
		}
	}
}
