package wire

import (
	"fmt"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire/provider"
)

var (
	forChat      = []session.Format{session.OpenAIChat}
	forResponses = []session.Format{session.OpenAIResponses}
	forAnthropic = []session.Format{session.Anthropic}
	forGemini    = []session.Format{session.Gemini}
	forAISDK     = []session.Format{session.AISDK}

	chat      = provider.Of(session.OpenAIChat)
	responses = provider.Of(session.OpenAIResponses)
	anthropic = provider.Of(session.Anthropic)
	aiSDK     = provider.Of(session.AISDK)
)

// The comments name where the providers' texts were seen: an issue of a project that ran into it, or a schema.
var rules = []Rule{
	// BerriAI/litellm#10696
	{Code: "V-C1", Formats: forChat, check: (*checker).callsAnswered, shape: true,
		Wants: "every tool call is answered by a tool message before a message of another role comes",
		Says: "An assistant message with 'tool_calls' must be followed by tool messages responding to " +
			"each 'tool_call_id'."},
	// BerriAI/litellm#4931, microsoft/semantic-kernel#12708
	{Code: "V-C2", Formats: forChat, check: (*checker).resultsAnswer, shape: true,
		Wants: "a tool message answers an open call of the assistant message before it",
		Says:  "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."},
	// openai/openai-openapi, ChatCompletionRequestMessage
	{Code: "V-C3", Formats: forChat, check: (*checker).chatContent, shape: true,
		Wants: "a message has content, an assistant's at least calls; an array has a part; a tool's content is text",
		Says:  "Invalid value for 'content': expected a string, got null."},
	// vercel/ai#5171, camel-ai/camel#2215
	{Code: "V-C4", Formats: forChat, check: (*checker).idLength, shape: true, limits: map[string]int{"id": chat.IDMax},
		Wants: fmt.Sprintf("the id of a call has at most %d characters", chat.IDMax),
		Says:  "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40."},
	// openai/openai-openapi, anthropics/anthropic-sdk-python and vercel/ai: the schemas' roles
	{Code: "V-C5",
		Formats: []session.Format{session.OpenAIChat, session.OpenAIResponses, session.Anthropic, session.AISDK},
		check:   (*checker).knownRoles,
		Wants:   "a message has a role that its format knows", words: map[session.Format][]string{
			session.OpenAIChat: chat.Roles, session.OpenAIResponses: responses.Roles,
			session.Anthropic: anthropic.Roles, session.AISDK: aiSDK.Roles,
		},
		Says: "Invalid value: 'exit'. Supported values are: 'system', 'assistant', 'user', 'function', " +
			"'tool', and 'developer'."},
	// agno-agi/agno#9372
	{Code: "V-R1", Formats: forResponses, check: (*checker).resultsAnswer, shape: true,
		Wants: "an output answers a call before it",
		Says:  "No tool call found for function call output with call_id call_1."},
	// bytedance/trae-agent#358
	{Code: "V-R2", Formats: forResponses, check: (*checker).callsAnswered, shape: true,
		Wants: "every call has an output",
		Says:  "No tool output found for function call call_1."},
	// vercel/ai#7099, continuedev/continue#8933, openai/openai-node#1567
	{Code: "V-R3", Formats: forResponses, check: (*checker).reasoningGoesOn,
		Wants: "a reasoning item is directly before the item that it led to, which has an id if the " +
			"reasoning is known by its id alone",
		Says: "Item 'rs_1' of type 'reasoning' was provided without its required following item."},
	// openai/openai-openapi, FunctionToolCall. Its limit of an output, 10,485,760 characters, is more than a message
	// can have.
	{Code: "V-R4", Formats: forResponses,
		check: (*checker).callLengths, shape: true,
		limits: map[string]int{"id": responses.IDMax, "name": responses.NameMax},
		Wants: fmt.Sprintf("a call_id has 1 to %d characters, the name of a tool at most "+
			"%d", responses.IDMax, responses.NameMax),
		Says: "Invalid 'input[2].call_id': string too long. Expected a string with maximum length 64."},
	// anthropics/claude-code#1237, OpenHands/OpenHands#7512
	{Code: "V-A1", Formats: forAnthropic, check: (*checker).callsAnswered, shape: true,
		Wants: "every tool_use is the assistant's, and is answered in the next message",
		Says:  "`tool_use` ids were found without `tool_result` blocks immediately after: toolu_1."},
	// tghamm/Anthropic.SDK#184
	{Code: "V-A2", Formats: forAnthropic, check: (*checker).resultsAnswer, shape: true,
		Wants: "a tool_result is the user's, and answers a tool_use of the message before",
		Says:  "unexpected `tool_use_id` found in `tool_result` blocks: toolu_1."},
	// apify/tester-mcp-client#12
	{Code: "V-A3", Formats: forAnthropic, check: (*checker).resultsFirst, shape: true,
		Wants: "tool_results come before everything else in their message",
		Says:  "Messages following `tool_use` blocks must begin with a matching number of `tool_result` blocks."},
	// BerriAI/litellm#23510, vectorize-io/hindsight#4250, maximhq/bifrost#5097
	{Code: "V-A4", Formats: forAnthropic,
		check: (*checker).uniqueIDs, shape: true, limits: map[string]int{"id": anthropic.IDMax},
		Wants: fmt.Sprintf("the ids of calls are 1 to %d letters, digits, _ and -, occur once, and have one "+
			"result", anthropic.IDMax),
		Says: "`tool_use` ids must be unique; each tool_use must have a single result; String should " +
			"match pattern '^[a-zA-Z0-9_-]+$'."},
	// anthropics/claude-code#6774, #23440
	{Code: "V-A5", Formats: forAnthropic, check: (*checker).notEmpty, shape: true,
		Wants: "a text is more than white space, and a message has content, except for an assistant's at the end",
		Says:  "text content blocks must contain non-whitespace text; all messages must have non-empty content."},
	// vybestack/llxprt-code#3695, crewAIInc/crewAI#4413
	{Code: "V-A6", Formats: forAnthropic, check: (*checker).lastMessage,
		Wants: "the last message is the user's if the model takes no prefill (from 4.6 on); a final " +
			"text of the assistant does not end in white space",
		Says: "This model does not support assistant message prefill; final assistant content cannot " +
			"end with trailing whitespace."},
	// anthropics/claude-code#63203; the types of anthropics/anthropic-sdk-python
	{Code: "V-A7", Formats: forAnthropic, check: (*checker).thinkingSealed,
		Wants: "thinking has its signature or data, and is before the tool_use of the latest assistant turn",
		Says: "messages.1.content.0.thinking.signature: Field required; thinking blocks in the latest " +
			"assistant message cannot be modified."},
	// anthropics/claude-code#63203
	{Code: "V-A8", Formats: forAnthropic, check: (*checker).thinkingOwn, shape: true,
		Wants: "thinking is that of the model that is asked",
		Says:  "Invalid `signature` in `thinking` block."},
	// Wei-Shaw/sub2api#176
	{Code: "V-A9", Formats: forAnthropic,
		check: (*checker).cacheMarks, limits: map[string]int{"cache_control": anthropic.CacheMarks},
		Wants: fmt.Sprintf("at most %d blocks have cache_control, and none with an empty text", anthropic.CacheMarks),
		Says:  "A maximum of 4 blocks with cache_control may be provided. Found 5."},
	// anthropics/anthropic-sdk-python, MessageCreateParams and BetaCompactionBlockParam
	{Code: "V-A10", Formats: forAnthropic, check: (*checker).bounds, limits: map[string]int{"messages": 100_000},
		Wants: "the first message is the user's, there are at most 100,000, and the content of a " +
			"compaction is not \"\"",
		Says: "messages: first message must use the \"user\" role."},
	// Portkey-AI/gateway, error 10488
	{Code: "V-A11", Formats: forAnthropic, check: (*checker).toolsDefined, shape: true,
		Wants: "a request with tool_use or tool_result defines tools, whichever",
		Says:  "Requests which include `tool_use` or `tool_result` blocks must define tools."},
	// The API reference of Messages
	{Code: "V-A12", Formats: forAnthropic, check: (*checker).systemFirst, shape: true,
		Wants: "messages of the system come before all others",
		Says:  "Unexpected role \"system\". The Messages API accepts a top-level `system` parameter."},
	// google-gemini/gemini-cli#26486, google/generative-ai#368
	{Code: "V-G1", Formats: forGemini, check: (*checker).callTurns, shape: true,
		Wants: "a content with calls is directly after one of the user, and the responses are directly after the calls",
		Says: "Please ensure that function call turn comes immediately after a user turn or after a " +
			"function response turn."},
	// google-gemini/gemini-cli#3814, anomalyco/opencode#43479
	{Code: "V-G2", Formats: forGemini, check: (*checker).responseCount, shape: true,
		Wants: "as many responses as calls, of the same names, in one content that contains nothing else",
		Says: "Please ensure that the number of function response parts is equal to the number of " +
			"function call parts of the function call turn."},
	// nanbingxyz/5ire#405, trpc-group/trpc-agent-go#1894
	{Code: "V-G3", Formats: forGemini, check: (*checker).callsSigned,
		Wants: "since the last message of the user, the first call of each content has a " +
			"thoughtSignature, and no other call has the stand-in for one; before Gemini 3 that is not checked",
		Says: "Function call is missing a thought_signature in functionCall parts."},
	// google-gemini/gemini-cli, historyHardening.ts; googleapis/python-genai, types.py
	{Code: "V-G4", Formats: forGemini,
		check: (*checker).contents, words: map[session.Format][]string{session.Gemini: partData},
		Wants: "roles are user and model, first and last is the user; a content has parts, a part " +
			"exactly one kind of data, a call or a response a name, and args and response are objects",
		Says: "Please use a valid role: user, model; required oneof field 'data' must have one initialized field."},
	// nearai/ironclaw#1241, BerriAI/litellm#4931
	{Code: "V-M1", Formats: forChat, check: (*checker).mistral, limits: map[string]int{"id": provider.MistralIDLength},
		Wants: "for Mistral's models, the id of a call is 9 letters and digits, and the last message is " +
			"the user's or a tool's",
		Says: "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9; Expected last " +
			"role User or Tool."},
	// vercel/ai, convert-to-model-messages.ts
	{Code: "V-U1", Formats: forAISDK,
		check: (*checker).toolStates,
		words: map[session.Format][]string{session.AISDK: finalStates},
		Wants: "a tool part is in a final state, except in the last message",
		Says:  "Tool result is missing for tool call call_1."},
}

// Validate reports how a list of messages breaks its provider's rules, in the order of the messages. Leading system
// messages are allowed in every format. So are calls of the last unit whose results are still to come, unless
// o.Pending settles them. A message that Inspect refuses is a violation of the rule "inspect", and the only one.
func Validate(f session.Format, bodies [][]byte, o Options) []Violation {
	messages := make([]Facts, len(bodies))
	for i, body := range bodies {
		var err error
		if messages[i], err = Inspect(f, body); err != nil {
			return []Violation{{Rule: "inspect", Message: i, Detail: err.Error()}}
		}
	}
	return judged(rules, converse(f, messages, bodies, o))
}

// ValidateMessages reports what is to be seen without the bodies: chiefly how calls and results meet. What callers
// appended is kept even if it breaks a rule; a change of a view must not add violations to those of the messages it
// started from.
func ValidateMessages(f session.Format, messages []Facts) []Violation {
	return judged(rules, converse(f, messages, nil, Options{}))
}
