package wire

import "strings"

const uiThought = `{"id":"m","role":"assistant","parts":[{"type":"step-start"},{"type":"reasoning","text":"hm"`

func uiParts(role, parts string) string {
	return `{"id":"m","role":"` + role + `","parts":[` + parts + `]}`
}

func uiRan(name, more string) string {
	return uiParts("assistant", `{"type":"tool-`+name+`","toolCallId":"s","state":"output-available","input":{},"output":[],"providerExecuted":true`+more+`}`)
}

// uiSteps returns a message of the assistant with a text and a call, in one step or in two.
func uiSteps(two bool) string {
	between := ""
	if two {
		between = `{"type":"step-start"},`
	}
	return uiParts("assistant", `{"type":"step-start"},{"type":"text","text":"I look."},`+between+
		`{"type":"tool-f","toolCallId":"a","state":"output-available","input":{},"output":"x"}`)
}

// uiFormFixtures are messages that the library itself takes, or does not.
var uiFormFixtures = []fixture{
	{"V-U9", "parts of all types", Options{}, []string{aiSDKUser, uiParts("assistant", `{"type":"step-start"},{"type":"reasoning","text":""},{"type":"custom","kind":"a.b"},{"type":"file","mediaType":"a/b","url":"https://a.b"},`+
		`{"type":"reasoning-file","mediaType":"a/b","url":"https://a.b"},{"type":"source-url","sourceId":"s","url":"u"},{"type":"source-document","sourceId":"s","mediaType":"a/b","title":"t"},{"type":"data-x","data":null},{"type":"steering-message","id":"x","parts":[]},{"type":"text","text":"t"}`)}, nil},
	{"V-U9", "tools in all states", Options{}, []string{aiSDKUser, aiSDKTool("output-available"), uiParts("assistant", `{"type":"dynamic-tool","toolName":"f","toolCallId":"b","state":"output-error","errorText":"e","approval":{"id":"p","approved":true}},`+
		`{"type":"tool-f","toolCallId":"c","state":"output-denied","input":{},"approval":{"id":"p","approved":false}}`), aiSDKUser,
		uiParts("assistant", `{"type":"tool-f","toolCallId":"d","state":"input-streaming"},{"type":"tool-f","toolCallId":"e","state":"input-available","input":1},{"type":"tool-f","toolCallId":"g","state":"approval-requested","input":{},"approval":{"id":"p"}},`+
			`{"type":"tool-f","toolCallId":"h","state":"approval-responded","input":{},"approval":{"id":"p","approved":false}}`)}, nil},
	{"V-U9", "no id, no parts, and parts without elements", Options{}, []string{`{"role":"user","parts":[{"type":"text","text":"u"}]}`, `{"id":"m","role":"assistant","content":"a"}`, `{"id":"m","role":"user","parts":[]}`, `{"id":7,"role":"user","parts":[{"type":"text","text":"u"}]}`}, []string{"V-U9 0", "V-U9 1", "V-U9 2", "V-U9 3"}},
	{"V-U9", "parts that lack something", Options{}, []string{uiParts("user", `{"type":"text"},{"type":"text","text":"u"}`), uiParts("user", `{"type":"file","url":"https://a.b"}`), uiParts("assistant", `{"type":"source-document","sourceId":"s","mediaType":"a/b"}`),
		uiParts("user", `{"type":"data-x"}`), uiParts("user", `{"type":"tool-f"}`)}, []string{"V-U9 0", "V-U9 1", "V-U9 2", "V-U9 3", "V-U9 4"}},
	{"V-U9", "what a state must not have", Options{}, []string{aiSDKUser, uiDone("a", `"input":{},"errorText":"e",`), uiDone("b", ""), uiDone("c", `"input":{},"approval":{"id":"p","approved":false},`), uiDone("d", `"input":{},"approval":{"approved":true},`),
		uiParts("assistant", `{"type":"tool-f","toolCallId":"e","state":"output-error","input":{},"errorText":"e","output":1}`), uiParts("assistant", `{"type":"dynamic-tool","toolCallId":"g","state":"output-error","errorText":"e"}`), uiParts("assistant", `{"type":"tool-f","toolCallId":"h","state":"output-error","errorText":null}`)},
		[]string{"V-U9 1", "V-U9 2", "V-U9 3", "V-U9 4", "V-U9 5", "V-U9 6", "V-U11 6", "V-U9 7"}},
}

// uiSentFixtures are messages that the package of a provider sends, or does not.
var uiSentFixtures = []fixture{
	{"V-U12", "a call in the step of the words before it", Options{Model: "gemini-2.5-pro"}, []string{aiSDKUser, uiSteps(false), aiSDKUser}, nil},
	{"V-U12", "OpenAI takes a call in a step of its own", gptAsks, []string{aiSDKUser, uiSteps(true), aiSDKUser}, nil},
	{"V-U12", "a call in a step of its own", Options{Model: "gemini-2.5-pro"}, []string{aiSDKUser, uiSteps(true), aiSDKUser}, []string{"V-U12 1"}},
	{"V-U12", "a call in a message of its own", Options{Model: "gemini-2.5-pro"}, []string{aiSDKUser, uiSaid("assistant", "a"), uiDone("a", `"input":{},`), aiSDKUser}, []string{"V-U12 2"}},
	{"V-U10", "nobody knows the provider", Options{}, []string{aiSDKUser, uiRan("web_search", ""), uiParts("assistant", `{"type":"file","mediaType":"image/png","url":"https://a.b"}`), uiThought + `}]}`}, nil},
	{"V-U10", "tools and thoughts of Anthropic's", claudeAsks, []string{aiSDKUser, uiRan("web_search", ""), uiRan("x", `,"callProviderMetadata":{"anthropic":{"type":"mcp-tool-use","serverName":"s"}}`), uiThought + `,"providerMetadata":{"anthropic":{"signature":"c2ln"}}},{"type":"text","text":"t"}]}`, aiSDKUser}, nil},
	{"V-U8", "a thought is last of a turn before the last message", claudeAsks, []string{aiSDKUser, uiThought + `,"providerMetadata":{"anthropic":{"signature":"c2ln"}}}]}`, aiSDKUser}, []string{"V-U8 1"}},
	{"V-U10", "tools and thoughts of Google's", Options{Model: "gemini-3-pro"}, []string{aiSDKUser, uiParts("assistant", `{"type":"tool-code_execution","toolCallId":"s","state":"output-available","input":{"language":"PYTHON","code":"1"},"output":{"outcome":"OUTCOME_OK","output":"1"},"providerExecuted":true}`),
		strings.Replace(uiRan("x", `,"callProviderMetadata":{"google":{"serverToolCallId":"s","serverToolType":"GOOGLE_MAPS"}}`), `"output":[]`, `"output":{}`, 1), uiThought + `},{"type":"file","mediaType":"image/png","url":"data:image/png;base64,iVBORw0KGgo="}]}`, aiSDKUser}, nil},
	{"V-U10", "a tool and a thought of OpenAI's", gptAsks, []string{aiSDKUser, uiRan("web_search", `,"callProviderMetadata":{"openai":{"itemId":"ws_1"}}`), uiThought + `,"providerMetadata":{"openai":{"itemId":"rs_1"}}}]}`}, nil},
	{"V-U10", "files that all show", mistralAsks, []string{uiParts("user", `{"type":"file","mediaType":"image/png","url":"https://a.b"},{"type":"file","mediaType":"application/pdf","url":"https://a.b"}`)}, nil},
	{"V-U10", "a file that OpenAI knows by its id", gptAsks, []string{uiParts("user", `{"type":"file","mediaType":"application/pdf","url":"https://a.b","providerReference":{"openai":"file-1"}}`)}, nil},
	{"V-U10", "a thought that is not sent, beside a text and alone", claudeAsks, []string{aiSDKUser, uiThought + `},{"type":"text","text":"t"}]}`, aiSDKUser, uiThought + `}]}`, aiSDKUser}, []string{"V-U10 3"}},
	{"V-U10", "an empty signature", claudeAsks, []string{aiSDKUser, uiThought + `,"providerMetadata":{"anthropic":{"signature":""}}},{"type":"text","text":"t"}]}`}, []string{"V-U10 1"}},
	{"V-U10", "what only Anthropic's package knows", claudeAsks, []string{aiSDKUser, uiParts("assistant", `{"type":"custom","kind":"anthropic.fallback","providerMetadata":{"anthropic":{"from":{"model":"a"},"to":{"model":"b"}}}}`)}, nil},
	{"V-U10", "the same, at Mistral", mistralAsks, []string{aiSDKUser, uiParts("assistant", `{"type":"custom","kind":"anthropic.fallback"},{"type":"text","text":"t"}`), aiSDKUser}, []string{"V-U10 1"}},
	{"V-U10", "a thought's file", gptAsks, []string{aiSDKUser, uiParts("assistant", `{"type":"reasoning-file","mediaType":"image/png","url":"https://a.b"},{"type":"text","text":"t"}`), aiSDKUser}, []string{"V-U10 1"}},
	{"V-U10", "nothing that the user put in", gptAsks, []string{aiSDKUser, uiParts("assistant", `{"type":"steering-message","id":"x","parts":[]},{"type":"text","text":"t"}`), aiSDKUser}, []string{"V-U10 1"}},
	{"V-U3", "an empty text, for OpenAI", gptAsks, []string{uiSaid("user", "")}, []string{"V-U3 0"}},
	{"V-U10", "an empty text", gptAsks, []string{aiSDKUser, uiSaid("assistant", ""), aiSDKUser}, []string{"V-U10 1"}},
	{"V-U10", "tools of others", claudeAsks, []string{aiSDKUser, uiRan("web_search_preview", `,"callProviderMetadata":{"openai":{"itemId":"ws_1"}}`), aiSDKUser}, []string{"V-U10 1"}},
	{"V-U10", "what Google's tool returned, at Anthropic", claudeAsks, []string{aiSDKUser, strings.Replace(uiRan("code_execution", ""), `"output":[]`, `"output":{"outcome":"OUTCOME_OK"}`, 1), aiSDKUser}, []string{"V-U10 1"}},
	{"V-U10", "a list that a tool of Google's returned", Options{Model: "gemini-3-pro"}, []string{aiSDKUser, uiRan("code_execution", ""), aiSDKUser}, []string{"V-U10 1"}},
	{"V-U10", "a tool of Anthropic's that failed", claudeAsks, []string{aiSDKUser, strings.Replace(uiRan("web_search", ""), `"state":"output-available","input":{},"output":[]`, `"state":"output-error","input":{},"errorText":"e"`, 1), aiSDKUser}, []string{"V-U10 1"}},
	{"V-U10", "a tool of nobody's, at Mistral", mistralAsks, []string{aiSDKUser, uiRan("web_search", ""), aiSDKUser}, []string{"V-U10 1"}},
	{"V-U10", "the assistant's files", gptAsks, []string{aiSDKUser, uiParts("assistant", `{"type":"text","text":"t"},{"type":"file","mediaType":"image/png","url":"data:image/png;base64,iVBORw0KGgo="}`)}, []string{"V-U10 1"}},
	{"V-U10", "the assistant's file that Google had to fetch", Options{Model: "gemini-3-pro"}, []string{aiSDKUser, uiParts("assistant", `{"type":"text","text":"t"},{"type":"file","mediaType":"image/png","url":"https://a.b"}`), aiSDKUser}, []string{"V-U10 1"}},
	{"V-U10", "a sound for Anthropic", claudeAsks, []string{uiParts("user", `{"type":"file","mediaType":"audio/wav","url":"data:audio/wav;base64,AA=="}`)}, []string{"V-U10 0"}},
	{"V-U10", "a file that another provider knows by its id", gptAsks, []string{uiParts("user", `{"type":"file","mediaType":"application/pdf","url":"https://a.b","providerReference":{"anthropic":"file_1"}}`)}, []string{"V-U10 0"}},
}

func init() {
	fixtures["ai-sdk"] = append(append(fixtures["ai-sdk"], uiFormFixtures...), uiSentFixtures...)
}
