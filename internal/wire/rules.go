package wire

import (
	"context"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire/provider"
)

var (
	forChat      = []session.Format{session.OpenAIChat}
	forResponses = []session.Format{session.OpenAIResponses}
	forOpenAI    = []session.Format{session.OpenAIChat, session.OpenAIResponses}
	forAnthropic = []session.Format{session.Anthropic}
	forGemini    = []session.Format{session.Gemini}
	forAISDK     = []session.Format{session.AISDK}
	forRoles     = []session.Format{session.OpenAIChat, session.OpenAIResponses, session.Anthropic, session.AISDK}

	chat      = provider.Of(session.OpenAIChat)
	responses = provider.Of(session.OpenAIResponses)
	anthropic = provider.Of(session.Anthropic)
	aiSDK     = provider.Of(session.AISDK)
)

// rules are all rules. What each requires, and what the provider answers to a list that breaks it, is in the table of
// docs/formats.md. The comments name where that was seen: an issue of a project that ran into it, or a schema.
var rules = []Rule{
	// anthropics/claude-code#1939, #60394
	{Code: "V-T1", Formats: session.Formats(), check: (*checker).noHalves},
	// anthropics/claude-code#4778; wider limits: internal/wire/provider/media.go
	{Code: "V-T2", Formats: session.Formats(), check: (*checker).mediaTaken},
	{Code: "V-T3", Formats: session.Formats(), check: (*checker).mediaTaken},
	// BerriAI/litellm#10696
	{Code: "V-C1", Formats: forChat, check: (*checker).callsAnswered, shape: true},
	// BerriAI/litellm#4931, microsoft/semantic-kernel#12708
	{Code: "V-C2", Formats: forChat, check: (*checker).resultsAnswer, shape: true},
	// openai/openai-openapi, ChatCompletionRequestMessage
	{Code: "V-C3", Formats: forChat, check: (*checker).chatContent, shape: true},
	// vercel/ai#5171, camel-ai/camel#2215
	{Code: "V-C4", Formats: forChat, check: (*checker).idLength, shape: true, limits: map[string]int{"id": chat.IDMax}},
	// openai/openai-openapi, anthropics/anthropic-sdk-python and vercel/ai: the schemas' roles
	{Code: "V-C5", Formats: forRoles, check: (*checker).knownRoles, words: map[session.Format][]string{
		session.OpenAIChat: chat.Roles, session.OpenAIResponses: responses.Roles,
		session.Anthropic: anthropic.Roles, session.AISDK: aiSDK.Roles,
	}},
	// internal/wire/provider/members_openai.go, where each list names its source; so for the other formats
	{Code: "V-C6", Formats: forChat, check: (*checker).knownMembers},
	// The names of tools, for this and the other formats: internal/wire/provider/names.go
	{Code: "V-C7", Formats: forChat, check: (*checker).toolNames, limits: provider.ToolNameLimits(session.OpenAIChat)},
	{Code: "V-C8", Formats: forChat, check: (*checker).speakers, limits: map[string]int{"name": chat.Speakers.Max}},
	// aaif-goose/goose-mobile#20
	{Code: "V-C9", Formats: forOpenAI, check: (*checker).argumentsAreTexts},
	// "array too long. Expected an array with maximum length 128": openai/openai-dotnet#317,
	// pydantic/pydantic-ai#1105; so for 2048 messages
	{Code: "V-C10", Formats: forChat, check: (*checker).counts, shape: true,
		limits: map[string]int{"calls": chat.MaxCalls, "messages": provider.ShortestList(session.OpenAIChat)}},
	// openai/openai-openapi, ChatCompletionMessageToolCall
	{Code: "V-C11", Formats: forChat, check: (*checker).callsTyped},
	// agno-agi/agno#9372
	{Code: "V-R1", Formats: forResponses, check: (*checker).resultsAnswer, shape: true},
	// bytedance/trae-agent#358
	{Code: "V-R2", Formats: forResponses, check: (*checker).callsAnswered, shape: true},
	// vercel/ai#7099, continuedev/continue#8933, openai/openai-node#1567
	{Code: "V-R3", Formats: forResponses, check: (*checker).reasoningGoesOn},
	// openai/openai-openapi, FunctionToolCall. Its limit of an output, 10,485,760 characters, is more than a message
	// can have.
	{Code: "V-R4", Formats: forResponses, check: (*checker).callLengths, shape: true,
		limits: map[string]int{"id": responses.IDMax}},
	// microsoft/agent-framework#2203; members_openai.go
	{Code: "V-R5", Formats: forResponses, check: (*checker).knownMembers},
	{Code: "V-R6", Formats: forResponses, check: (*checker).toolNames,
		limits: provider.ToolNameLimits(session.OpenAIResponses)},
	// QuantumNous/new-api#4776
	{Code: "V-R7", Formats: forResponses, check: (*checker).messagesHaveContent},
	// langchain-ai/langchain#39116, Wei-Shaw/sub2api#3981, NousResearch/hermes-agent#33306, earendil-works/pi#5149
	{Code: "V-R8", Formats: forResponses, check: (*checker).idsFit, limits: map[string]int{"id": provider.MaxItemID},
		words: map[session.Format][]string{session.OpenAIResponses: provider.ItemIDPrefixes()}},
	// lidge-jun/opencodex#5583, openai/codex#3573
	{Code: "V-R9", Formats: forResponses, check: (*checker).reasoningBound},
	// https://community.openai.com/t/incorrect-behavior-of-conversation-api-with-mcp-approval-output-item/1365706
	{Code: "V-R10", Formats: forResponses, check: (*checker).approvalsAnswer},
	// openai/codex, context_manager/normalize.rs
	{Code: "V-R11", Formats: forResponses, check: (*checker).searchesPaired},
	// anthropics/claude-code#1237, OpenHands/OpenHands#7512
	{Code: "V-A1", Formats: forAnthropic, check: (*checker).callsAnswered, shape: true},
	// tghamm/Anthropic.SDK#184
	{Code: "V-A2", Formats: forAnthropic, check: (*checker).resultsAnswer, shape: true},
	// apify/tester-mcp-client#12
	{Code: "V-A3", Formats: forAnthropic, check: (*checker).resultsFirst, shape: true},
	// BerriAI/litellm#23510, vectorize-io/hindsight#4250, maximhq/bifrost#5097
	{Code: "V-A4", Formats: forAnthropic, check: (*checker).uniqueIDs, shape: true,
		limits: map[string]int{"id": anthropic.IDMax}},
	// anthropics/claude-code#6774, #23440
	{Code: "V-A5", Formats: forAnthropic, check: (*checker).notEmpty, shape: true},
	// vybestack/llxprt-code#3695, crewAIInc/crewAI#4413
	{Code: "V-A6", Formats: forAnthropic, check: (*checker).lastMessage},
	// The types of anthropics/anthropic-sdk-python
	{Code: "V-A7", Formats: forAnthropic, check: (*checker).thinkingSealed},
	// anthropics/claude-code#63203
	{Code: "V-A8", Formats: forAnthropic, check: (*checker).thinkingOwn, shape: true},
	// Wei-Shaw/sub2api#176
	{Code: "V-A9", Formats: forAnthropic, check: (*checker).cacheMarks,
		limits: map[string]int{"cache_control": anthropic.CacheMarks}},
	// anthropics/anthropic-sdk-python, MessageCreateParams and BetaCompactionBlockParam
	{Code: "V-A10", Formats: forAnthropic, check: (*checker).bounds,
		limits: map[string]int{"messages": anthropic.MaxMessages}},
	// Portkey-AI/gateway, error 10488
	{Code: "V-A11", Formats: forAnthropic, check: (*checker).toolsDefined, shape: true},
	// The API reference of Messages
	{Code: "V-A12", Formats: forAnthropic, check: (*checker).systemFirst, shape: true},
	// microsoft/autogen#3034, anthropics/claude-code#4378; members_anthropic.go
	{Code: "V-A13", Formats: forAnthropic, check: (*checker).knownMembers},
	{Code: "V-A14", Formats: forAnthropic, check: (*checker).toolNames,
		limits: provider.ToolNameLimits(session.Anthropic)},
	// anthropics/claude-code#62577, #64383
	{Code: "V-A15", Formats: forAnthropic, check: (*checker).serverToolsAnswered},
	// anthropics/anthropic-sdk-typescript#648
	{Code: "V-A17", Formats: forAnthropic, check: (*checker).inputsAreObjects},
	// anthropics/claude-code#245, #400, NousResearch/hermes-agent#55432; SEMOSS/Semoss#2323 (the assistant's);
	// vellum-ai/vellum-assistant#18387, caozhiyuan/copilot-api#196 (results that are errors)
	{Code: "V-A18", Formats: forAnthropic, check: (*checker).mediaShown,
		words: map[session.Format][]string{session.Anthropic: anthropicImages}},
	// experientiallabs/experiential#799
	{Code: "V-A19", Formats: forAnthropic, check: (*checker).resultTexts},
	// google-gemini/gemini-cli#26486, google/generative-ai#368
	{Code: "V-G1", Formats: forGemini, check: (*checker).callTurns, shape: true},
	// google-gemini/gemini-cli#3814, anomalyco/opencode#43479
	{Code: "V-G2", Formats: forGemini, check: (*checker).responseCount, shape: true},
	// nanbingxyz/5ire#405, trpc-group/trpc-agent-go#1894
	{Code: "V-G3", Formats: forGemini, check: (*checker).callsSigned},
	// google-gemini/gemini-cli, historyHardening.ts; googleapis/python-genai, types.py
	{Code: "V-G4", Formats: forGemini, check: (*checker).contents,
		words: map[session.Format][]string{session.Gemini: partData}},
	// members_google.go
	{Code: "V-G5", Formats: forGemini, check: (*checker).knownMembers},
	{Code: "V-G6", Formats: forGemini, check: (*checker).toolNames, limits: provider.ToolNameLimits(session.Gemini)},
	// nearai/ironclaw#1241, BerriAI/litellm#4931
	{Code: "V-M1", Formats: forChat, check: (*checker).mistral, limits: map[string]int{"id": provider.MistralIDLength}},
	// BerriAI/litellm#30835, janhq/jan#8136, BerriAI/litellm#28057, mastra-ai/mastra#12592
	{Code: "V-D1", Formats: forChat, check: (*checker).reasoningFits},
	// earendil-works/pi#1048, ogx-ai/ogx#6069
	{Code: "V-D2", Formats: forChat, check: (*checker).rolesFit},
	// vllm-project/vllm#41114; mistralai/mistral-common, validator.py
	{Code: "V-D3", Formats: forChat, check: (*checker).systemLeads, shape: true},
	// vllm-project/vllm#12864, ServiceStack/llms#17
	{Code: "V-D4", Formats: forChat, check: (*checker).membersFit},
	// BerriAI/litellm#6642, OpenHands/OpenHands#4643
	{Code: "V-D5", Formats: forChat, check: (*checker).contentFits},
	// anthropics/anthropic-sdk-typescript#565, langchain-ai/langchain-aws#71
	{Code: "V-D6", Formats: forAnthropic, check: (*checker).rolesAlternate, shape: true},
	// avante-corp/avante.nvim#2562, NousResearch/hermes-agent#20154
	{Code: "V-D7", Formats: forChat, check: (*checker).toolsAnswered, shape: true},
	// groq-sdk and mistralai, their types of calls and contents
	{Code: "V-D8", Formats: forChat, check: (*checker).toolsFit},
	{Code: "V-D9", Formats: forChat, check: (*checker).mediaFit},
	// https://ai.google.dev/gemini-api/docs/thought-signatures, earendil-works/pi#6733
	{Code: "V-D10", Formats: forChat, check: (*checker).chatCallsSigned},
	// vllm-project/vllm#43995, #47761; ollama/ollama, openai.go
	{Code: "V-D11", Formats: forChat, check: (*checker).inputsFit},
	// docs.morphllm.com/sdk/components/dynamic-tool-loading; MoonshotAI/kimi-code
	{Code: "V-D12", Formats: forChat, check: (*checker).declarationsFit},
	// vercel/ai, convert-to-model-messages.ts
	{Code: "V-U1", Formats: forAISDK, check: (*checker).toolStates,
		words: map[session.Format][]string{session.AISDK: finalStates}},
	// vercel/ai, validate-ui-messages.ts; members_vercel.go
	{Code: "V-U2", Formats: forAISDK, check: (*checker).knownMembers},
	// V-U3 to V-U8: vercel/ai, convert-to-anthropic-messages-prompt.ts; what Anthropic answers: V-A5, V-A10, V-A4,
	// V-A12 and V-A6
	{Code: "V-U3", Formats: forAISDK, check: (*checker).uiTexts},
	{Code: "V-U4", Formats: forAISDK, check: (*checker).uiFirst, shape: true},
	// vercel/ai#5171
	{Code: "V-U5", Formats: forAISDK, check: (*checker).uiIDs, shape: true},
	// anthropics/anthropic-sdk-typescript#648
	{Code: "V-U6", Formats: forAISDK, check: (*checker).uiInputs},
	{Code: "V-U7", Formats: forAISDK, check: (*checker).systemLeads, shape: true},
	{Code: "V-U8", Formats: forAISDK, check: (*checker).uiLast},
	// vercel/ai, validate-ui-messages.ts
	{Code: "V-U9", Formats: forAISDK, check: (*checker).uiForms},
	// vercel/ai, convert-to-anthropic-prompt.ts, convert-to-google-messages.ts, convert-to-mistral-chat-messages.ts
	{Code: "V-U10", Formats: forAISDK, check: (*checker).uiSent},
	{Code: "V-U11", Formats: forAISDK, check: (*checker).toolNames, limits: provider.ToolNameLimits(session.AISDK)},
	// vercel/ai, convert-to-google-messages.ts; what Google answers: V-G1
	{Code: "V-U12", Formats: forAISDK, check: (*checker).uiCallTurns},
}

// Validate reports how a list of messages breaks its provider's rules, in the order of the messages. Leading system
// messages are allowed in every format. So are calls of the last unit whose results are still to come, unless
// o.Pending settles them. A message that Inspect refuses is a violation of the rule "inspect", and the only one. Its
// only error is that of a context that has ended.
func Validate(ctx context.Context, f session.Format, bodies [][]byte, o Options) ([]Violation, error) {
	messages := make([]Facts, len(bodies))
	for i, body := range bodies {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var err error
		if messages[i], err = Inspect(f, body); err != nil {
			return []Violation{{Rule: "inspect", Message: i, Detail: err.Error()}}, nil
		}
	}
	return judged(ctx, rules, converse(f, messages, bodies, o))
}

// ValidateMessages reports what is to be seen without the bodies: chiefly how calls and results meet. What callers
// appended is kept even if it breaks a rule; a change of a view must not add violations to those of the messages it
// started from.
func ValidateMessages(f session.Format, messages []Facts) []Violation {
	found, _ := judged(context.Background(), rules, converse(f, messages, nil, Options{})) // which never ends
	return found
}
