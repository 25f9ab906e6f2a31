package wire

import "strings"

const (
	geminiUser = `{"role":"user","parts":[{"text":"u"}]}`
	geminiDone = `{"role":"model","parts":[{"text":"done"}]}`
)

func geminiCalls(names ...string) string {
	signature := `,"thoughtSignature":"s"}`
	var parts []string
	for _, name := range names {
		parts = append(parts, `{"functionCall":{"name":"`+name+`","args":{}}`+signature)
		signature = `}`
	}
	return geminiOf("model", parts...)
}

func geminiResponses(names ...string) string {
	var parts []string
	for _, name := range names {
		parts = append(parts, `{"functionResponse":{"name":"`+name+`","response":{"output":"r"}}}`)
	}
	return geminiOf("user", parts...)
}

func geminiOf(role string, parts ...string) string {
	return `{"role":"` + role + `","parts":[` + strings.Join(parts, ",") + `]}`
}

const unsignedCall = `{"functionCall":{"name":"f","args":{}}}`

var geminiFixtures = []fixture{
	{"V-G1", "calls behind the user and behind responses", Options{}, []string{geminiUser, geminiCalls("f"), geminiResponses("f"), geminiCalls("g"), geminiResponses("g"), geminiDone, geminiUser}, nil},
	{"V-G1", "calls behind words of the model", Options{}, []string{geminiUser, geminiDone, geminiCalls("f"), geminiResponses("f")}, []string{"V-G1 2"}},
	{"V-G1", "calls at the beginning", Options{}, []string{geminiCalls("f"), geminiResponses("f")}, []string{"V-G1 0", "V-G4 0"}},
	{"V-G1", "responses behind words", Options{}, []string{geminiUser, geminiCalls("f"), geminiUser, geminiResponses("f")}, []string{"V-G2 1", "V-G1 3"}},
	{"V-G1", "responses at the beginning", Options{}, []string{geminiResponses("f")}, []string{"V-G1 0"}},
	{"V-G2", "as many responses as calls", Options{}, []string{geminiUser, geminiCalls("f", "g", "f"), geminiResponses("f", "f", "g"), geminiDone, geminiUser}, nil},
	{"V-G2", "calls in flight", Options{}, []string{geminiUser, geminiCalls("f", "g")}, nil},
	{"V-G2", "half of the responses of the last calls", Options{}, []string{geminiUser, geminiCalls("f", "g"), geminiResponses("g")}, nil},
	{"V-G2", "calls in flight where they are to be settled", Options{Pending: DropPending}, []string{geminiUser, geminiCalls("f")}, []string{"V-G2 1", "V-G4 1"}},
	{"V-G2", "half of the responses before more is said", Options{}, []string{geminiUser, geminiCalls("f", "g"), geminiResponses("f"), geminiUser}, []string{"V-G2 1"}},
	{"V-G2", "more responses than calls", Options{}, []string{geminiUser, geminiCalls("f"), geminiResponses("f", "f")}, []string{"V-G2 1"}},
	{"V-G2", "the response of another tool", Options{}, []string{geminiUser, geminiCalls("f"), geminiResponses("g")}, []string{"V-G2 2"}},
	{"V-G2", "words beside a response", Options{}, []string{geminiUser, geminiCalls("f"), geminiOf("user", `{"functionResponse":{"name":"f","response":{}}}`, `{"text":"u"}`)}, []string{"V-G2 2"}},
	{"V-G3", "the first of parallel calls is signed", Options{}, []string{geminiUser, geminiCalls("f", "g"), geminiResponses("f", "g")}, nil},
	{"V-G3", "the other spelling", Options{}, []string{geminiUser, geminiOf("model", `{"function_call":{"name":"f","args":{}},"thought_signature":"s"}`)}, nil},
	{"V-G3", "the stand-in on the first call", Options{}, []string{geminiUser, geminiOf("model", `{"functionCall":{"name":"f"},"thoughtSignature":"skip_thought_signature_validator"}`)}, nil},
	{"V-G3", "calls of turns before the current one", Options{}, []string{geminiUser, geminiOf("model", unsignedCall), geminiResponses("f"), geminiDone, geminiUser}, nil},
	{"V-G3", "a model that does not check", Options{Model: "google/gemini-2.5-pro"}, []string{geminiUser, geminiOf("model", unsignedCall), geminiResponses("f")}, nil},
	{"V-G3", "an unsigned call of the current turn", Options{Model: "gemini-3-pro-preview"}, []string{geminiUser, geminiOf("model", unsignedCall), geminiResponses("f")}, []string{"V-G3 1"}},
	{"V-G3", "an unsigned call of a later step", Options{}, []string{geminiUser, geminiCalls("f"), geminiResponses("f"), geminiOf("model", unsignedCall), geminiResponses("f")}, []string{"V-G3 3"}},
	{"V-G3", "the stand-in on a parallel call", Options{}, []string{geminiUser, geminiOf("model", `{"functionCall":{"name":"f"},"thoughtSignature":"s"}`, `{"functionCall":{"name":"f"},"thoughtSignature":"skip_thought_signature_validator"}`)}, []string{"V-G3 1"}},
	{"V-G4", "the user is first and last", Options{}, []string{`{"role":"system","parts":[{"text":"s"}]}`, geminiUser, geminiDone, geminiUser}, nil},
	{"V-G4", "nothing but the head", Options{}, []string{`{"role":"system","parts":[{"text":"s"}]}`}, []string{"V-G4 0"}},
	{"V-G4", "every kind of data", Options{}, []string{geminiOf("user", `{"inlineData":{}}`, `{"fileData":{},"videoMetadata":{}}`, `{"inline_data":{}}`, `{"file_data":{}}`), geminiOf("model", `{"text":"x","thought":true}`, `{"text":"","thoughtSignature":"s"}`,
		`{"executableCode":{}}`, `{"codeExecutionResult":{}}`, `{"toolCall":{}}`, `{"toolResponse":{}}`, `{"executable_code":{}}`, `{"code_execution_result":{}}`, `{"tool_call":{}}`, `{"tool_response":{}}`), geminiUser}, nil},
	{"V-G4", "data that is not known yet", Options{}, []string{geminiOf("user", `{"hologram":{}}`)}, []string{"V-G5 0"}},
	{"V-G4", "calls in flight are last", Options{}, []string{geminiUser, geminiCalls("f")}, nil},
	{"V-G4", "a role of another format", Options{}, []string{geminiUser, `{"role":"assistant","parts":[{"text":"x"}]}`, geminiUser}, []string{"V-G4 1"}},
	{"V-G4", "the model is first", Options{}, []string{geminiDone, geminiUser}, []string{"V-G4 0"}},
	{"V-G4", "the model is last", Options{}, []string{geminiUser, geminiDone}, []string{"V-G4 1"}},
	{"V-G4", "no parts", Options{}, []string{`{"role":"user","parts":[]}`, `{"role":"user"}`}, []string{"V-G4 0", "V-G4 1"}},
	{"V-G4", "a text in the place of parts", Options{}, []string{` {"role":"user","parts":"u"}`}, []string{"V-G4 0"}},
	{"V-G4", "a role of another format behind white space", Options{}, []string{geminiUser, "\n{\"role\":\"function\",\"parts\":[{\"text\":\"u\"}]}"}, []string{"V-G4 1", "V-G4 1"}},
	{"V-G4", "a part without data", Options{}, []string{geminiOf("user", `{"thoughtSignature":"s"}`)}, []string{"V-G4 0"}},
	{"V-G4", "a part of nothing", Options{}, []string{geminiOf("user", `{}`)}, []string{"V-G4 0"}},
	{"V-G4", "an empty text", Options{}, []string{geminiOf("user", `{"text":""}`)}, []string{"V-G4 0"}},
	{"V-G4", "a part that is no object", Options{}, []string{geminiOf("user", `"text"`)}, []string{"V-G4 0"}},
	{"V-G4", "two kinds of data, by each of their names", Options{}, []string{geminiOf("user", `{"text":"x","inlineData":{}}`), geminiOf("user", `{"text":"x","fileData":{}}`), geminiOf("user", `{"text":"x","inline_data":{}}`), geminiOf("user", `{"text":"x","file_data":{}}`),
		geminiOf("user", `{"text":"x","executableCode":{}}`), geminiOf("user", `{"text":"x","codeExecutionResult":{}}`), geminiOf("user", `{"text":"x","executable_code":{}}`), geminiOf("user", `{"text":"x","code_execution_result":{}}`),
		geminiOf("user", `{"text":"x","toolCall":{}}`), geminiOf("user", `{"text":"x","toolResponse":{}}`), geminiOf("user", `{"text":"x","tool_call":{}}`), geminiOf("user", `{"text":"x","tool_response":{}}`)},
		[]string{"V-G4 0", "V-G4 1", "V-G4 2", "V-G4 3", "V-G4 4", "V-G4 5", "V-G4 6", "V-G4 7", "V-G4 8", "V-G4 9", "V-G4 10", "V-G4 11"}},
	{"V-G4", "arguments that are no object", Options{}, []string{geminiUser, geminiOf("model", `{"functionCall":{"name":"f","args":"x"},"thoughtSignature":"s"}`)}, []string{"V-G4 1"}},
	{"V-G4", "arguments that are no object, in the other spelling", Options{}, []string{geminiUser, geminiOf("model", `{"function_call":{"name":"f","args":"x"},"thought_signature":"s"}`)}, []string{"V-G4 1"}},
	{"V-G6", "calls and responses without a name", Options{}, []string{geminiUser, geminiOf("model", `{"functionCall":{"args":{}},"thoughtSignature":"s"}`), geminiOf("user", `{"functionResponse":{"response":{}}}`)}, []string{"V-G6 1", "V-G6 2"}},
	{"V-G4", "a response that is no object", Options{}, []string{geminiUser, geminiCalls("f"), geminiOf("user", `{"functionResponse":{"name":"f","response":"x"}}`)}, []string{"V-G4 2"}},
	{"V-G4", "a response that is no object, in the other spelling", Options{}, []string{geminiUser, geminiCalls("f"), geminiOf("user", `{"function_response":{"name":"f","response":"x"}}`)}, []string{"V-G4 2"}},
}

func aiSDKTool(state string) string {
	return `{"id":"m2","role":"assistant","parts":[{"type":"step-start"},{"type":"tool-f","toolCallId":"a","state":"` + state + `","input":{}` + map[string]string{
		"output-available": `,"output":"r"`, "output-error": `,"errorText":"e"`, "output-denied": `,"approval":{"id":"p","approved":false}`, "approval-requested": `,"approval":{"id":"p"}`,
	}[state] + `},{"type":"text","text":"x"}]}`
}

const aiSDKUser = `{"id":"m1","role":"user","parts":[{"type":"text","text":"u"}]}`

var aiSDKFixtures = []fixture{
	{"V-U1", "output-available is final", Options{}, []string{aiSDKUser, aiSDKTool("output-available"), aiSDKUser}, nil},
	{"V-U1", "output-error is final", Options{}, []string{aiSDKUser, aiSDKTool("output-error"), aiSDKUser}, nil},
	{"V-U1", "output-denied is final", Options{}, []string{aiSDKUser, aiSDKTool("output-denied"), aiSDKUser}, nil},
	{"V-U1", "calls of the last message are in flight", Options{}, []string{aiSDKUser, aiSDKTool("input-available")}, nil},
	{"V-U1", "a tool part that is not the assistant's", Options{}, []string{`{"id":"m0","role":"user","parts":[{"type":"tool-f","toolCallId":"a","state":"input-available","input":{}}]}`, aiSDKUser}, nil},
	{"V-U1", "a call that the provider executes has no result yet", Options{}, []string{aiSDKUser, `{"id":"m2","role":"assistant","parts":[{"type":"tool-f","toolCallId":"a","state":"input-available","input":{},"providerExecuted":true},{"type":"text","text":"x"}]}`, aiSDKUser}, nil},
	{"V-U1", "calls of the last message where they are to be settled", Options{Pending: SynthesizePending}, []string{aiSDKUser, aiSDKTool("input-available")}, []string{"V-U1 1"}},
	{"V-U1", "a call that waits for approval", Options{}, []string{aiSDKUser, aiSDKTool("approval-requested"), aiSDKUser}, []string{"V-U1 1"}},
	{"V-U1", "a call of a tool that is known by name only", Options{}, []string{aiSDKUser, `{"id":"m2","role":"assistant","parts":[{"type":"dynamic-tool","toolName":"f","toolCallId":"a","state":"input-streaming","input":{}}]}`, aiSDKUser}, []string{"V-U1 1"}},
	{"V-C5", "all roles", Options{}, []string{uiSaid("system", "s"), aiSDKUser, uiSaid("system", "s"), uiSaid("assistant", "a")}, nil},
	{"V-C5", "a role of another format", Options{}, []string{aiSDKUser, uiSaid("tool", "r")}, []string{"V-C5 1"}},
}
