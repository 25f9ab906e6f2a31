package provider

import (
	"cmp"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/models"
	"github.com/varve-dev/varve/internal/session"
)

// Dialect names a server that takes a format with differences of its own. "" is the provider that the format is named
// after, or a server that is not known.
type Dialect string

// The dialects. Those of Chat Completions and of Anthropic are variants of these formats. In an AI SDK view each of
// them is the provider behind the library, and so is Google.
const (
	OpenAI    Dialect = "openai"
	Mistral   Dialect = "mistral"
	Groq      Dialect = "groq"
	Cerebras  Dialect = "cerebras"
	DeepSeek  Dialect = "deepseek"
	Qwen      Dialect = "qwen"
	VLLM      Dialect = "vllm"
	Anthropic Dialect = "anthropic"
	Bedrock   Dialect = "bedrock"
	Vertex    Dialect = "vertex"
	Google    Dialect = "google"

	LlamaCpp   Dialect = "llamacpp"
	Moonshot   Dialect = "moonshot"
	Ollama     Dialect = "ollama"
	OpenRouter Dialect = "openrouter"
	ZAI        Dialect = "zai"
)

// Reasoning is what a server of Chat Completions does with the assistant's reasoning that it is sent. One of
// Anthropic's format only has the last two.
type Reasoning uint8

// The ways: OpenAI ignores it, others show it to the model, refuse it, or refuse a message of the assistant without it,
// be it only one with calls.
const (
	IgnoresReasoning Reasoning = iota
	TakesReasoning
	RefusesReasoning
	RequiresReasoning
	RequiresWithCalls
)

// Variant is what differs between the dialects of a format. The zero Variant is the format's own provider.
type Variant struct {
	Dialect      Dialect
	Reasoning    Reasoning
	Thoughts     string   // the member that it reads reasoning in; "" for reasoning_content
	ThoughtLists bool     // it reads reasoning_details
	Members      []string // the members that a message may have; nil for any
	Texts        []string // the roles whose content must be a string, not an array
	NoImages     bool     // nobody may show images and files
	Blocks       []string // the types of blocks that a content may have; nil for any
	NoCustom     bool     // every tool is a function: there are no custom tools
	SystemFirst  bool     // messages of the system come before all others
	OneSystem    bool     // there is at most one of them
	AnswersTools bool     // the assistant speaks between results and the user
	Alternates   bool     // two messages in a row have different roles
	IDLength     int      // ids of calls are this many letters and digits; 0 for ids as the format has them
	LastUser     bool     // the last message is not the assistant's
	ObjectInputs bool     // the arguments of a call are an object

	Unsigned      bool // thinking goes back as it came, without a signature, whoever thought it
	DeclaresTools bool // messages of the system may declare tools
	SignsCalls    bool // the first call of a message has Google's signature, from Gemini 3 on

	CallsAfterUser bool // calls are directly after what the user says, or after results

	Behind // what the provider's package for the AI SDK does
}

// Behind is what the package of a provider for the AI SDK makes of the parts of UIMessages.
type Behind struct {
	Package      string   // the member of providerMetadata that is its own
	SaysThoughts bool     // it sends the assistant's reasoning whoever thought it
	Signs        bool     // it sends reasoning with its signature
	SaysFiles    bool     // it sends the assistant's files that are in the message
	Shows        []string // the types of files that the user may show; nil for any

	// Executes are the tools that the provider runs itself, of which the package sends call and result. ExecutedBy is
	// the member of a part's metadata by which others of these tools are known.
	Executes   map[string]Executed
	ExecutedBy string
	Finished   bool // of these tools, the package sends no result but an output
	Objects    bool // the output of each is an object
}

// Executed is what the call of a tool that a provider runs itself must have, lest its package throws or sends it
// without its result.
type Executed struct {
	Input, Output []string // members that are texts
	List          bool     // the output is an array
}

// The members of a message that strict servers take, besides those that a rule of its own is about.
var (
	fewMembers     = []string{"role", "content", "tool_calls", "tool_call_id", "reasoning_content", "reasoning"}
	groqMembers    = append([]string{"name", "function_call"}, fewMembers...)
	mistralMembers = append([]string{"prefix"}, fewMembers...)
)

// The types of blocks that OpenAI takes, and those that a server without files and sounds does. There a refusal is made
// a text.
var (
	openAIBlocks = []string{"text", "image_url", "input_audio", "file", "refusal"}
	imageBlocks  = []string{"text", "image_url", "refusal"}
)

// strictBlock and strictCall are what a content and tool_calls may have where a server is strict about members: the
// types of groq-sdk (ChatCompletionContentPart, ChatCompletionMessageToolCall) and of mistralai.
var (
	strictBlock = blocks("text", map[string]*Object{
		"text":      object("type text"),
		"image_url": object("type image_url").holds("image_url", object("url detail")),
		"refusal":   anything, // which becomes a text
		"thinking":  anything,
	})
	strictCall = object("id type function custom").holds("function", object("name arguments"))
)

// Strict returns what a block of a content, and a call, may have at a server whose Members are known.
func Strict() (block, call *Object) { return strictBlock, strictCall }

// variants have, for each format, how its dialects differ from it:
//
//   - Arguments that are no object: OpenAI takes any text; templates and other providers read it
//     (vllm-project/vllm#43995, #47761, OpenHands/software-agent-sdk#2887, ollama/ollama openai.go, "invalid tool call
//     arguments")
//   - Mistral: reasoning_content BerriAI/litellm#30835, charmbracelet/crush#1590; name and other members
//     Gage-Technologies/mistral-go#2, vllm-project/vllm#12864; the order of roles, roles and ids
//     mistralai/mistral-common validator.py, avante-corp/avante.nvim#2562
//   - reasoning: vLLM copies it to both names and drops reasoning_content (chat_utils.py); groq-sdk and ollama have it
//     in their types, OpenRouter in its documentation. Moonshot: "thinking is enabled but reasoning_content is missing
//     in assistant tool call message" (mastra-ai/mastra#12592, continuedev/continue#11806)
//   - Groq: reasoning_content janhq/jan#8136; other members ServiceStack/llms#17; strings OpenHands/OpenHands#4643 and
//     CherryHQ/cherry-studio#3307
//   - Cerebras: reasoning_content Kilo-Org/kilocode#10375
//   - DeepSeek: reasoning_content is required in thinking mode: abhigyanpatwari/GitNexus#43 (version 3.2),
//     BerriAI/litellm#28057 and MoonshotAI/kimi-cli#2141 (version 4, in every message of the assistant). The reasoner
//     of version 3.1 and before refused it, and is not served any more. Roles earendil-works/pi#1048; strings
//     BerriAI/litellm#6642, QwenLM/qwen-code#2320
//   - Qwen and vLLM: the templates of Qwen allow one system message, at the beginning, and no developer:
//     vllm-project/vllm#41114, can1357/oh-my-pi#958, ogx-ai/ogx#6069
//   - OpenAI: other blocks than those of ChatCompletionContentPart (openai/openai-node)
//   - Google: signatures https://ai.google.dev/gemini-api/docs/thought-signatures, crmne/ruby_llm#591; LiteLLM puts
//     them into the ids of calls, which it reads again: BerriAI/litellm#16895
//   - Files, sounds and custom tools: the types of groq-sdk and mistralai; only OpenAI has custom tools. Mistral takes
//     files by an id of its own, and sounds in another form.
//   - Bedrock: roles anthropics/anthropic-sdk-typescript#565, langchain-ai/langchain-aws#71. Vertex refused them, too.
//   - Unsigned thinking: "The content[].thinking in the thinking mode must be passed back to the API." (DeepSeek),
//     "thinking is enabled but reasoning_content is missing in assistant tool call message" (Kimi), at their servers of
//     Anthropic's format: NousResearch/hermes-agent#17510, farion1231/cc-switch#3351. A message that came
//     without thinking is refused, too, and one with an empty thought is taken: leookun/cursor-byok#276
//   - MiMo: as Moonshot: VicBilibily/GCMP#171, 54xzh/FLIT#67
//   - AI SDK: @ai-sdk/anthropic and @ai-sdk/google send texts, ids, names of tools and inputs as they are, and throw at
//     a system message in the middle; @ai-sdk/openai sends ids and names as they are: vercel/ai,
//     convert-to-anthropic-messages-prompt.ts, convert-to-google-generative-ai-messages.ts, vercel/ai#5171
var variants = map[session.Format]map[Dialect]func(*Facts){
	session.OpenAIChat: {
		OpenAI:  func(p *Facts) { p.Blocks, p.MaxMessages = openAIBlocks, 2048 },
		Mistral: mistral,
		Groq: func(p *Facts) {
			p.Reasoning, p.Thoughts = TakesReasoning, "reasoning"
			p.Members = groqMembers
			p.ObjectInputs = true
			p.Texts = []string{"system", "developer", "assistant", "tool"}
			p.Blocks, p.NoCustom = imageBlocks, true
			p.Media = mediaOfGroq
		},
		Cerebras: func(p *Facts) {
			p.Reasoning = RefusesReasoning
			p.NoCustom, p.ObjectInputs = true, true
		},
		DeepSeek: func(p *Facts) {
			p.NoCustom, p.ObjectInputs = true, true
			p.Reasoning, p.Roles = RequiresReasoning, fewRoles
			p.Texts, p.NoImages = []string{"system", "user", "assistant", "tool"}, true
		},
		Google: func(p *Facts) {
			p.SignsCalls, p.IDAny = true, true
			p.Media = mediaOfGoogle
			p.ObjectInputs = true
			p.Roles = fewRoles // a function_call has no place for a signature
		},
		Moonshot: func(p *Facts) {
			p.Reasoning, p.Roles = RequiresWithCalls, fewRoles
			p.NoCustom, p.ObjectInputs = true, true
			p.DeclaresTools = true
		},
		Ollama: func(p *Facts) {
			p.Reasoning, p.Thoughts = TakesReasoning, "reasoning"
			p.NoCustom, p.ObjectInputs = true, true
		},
		OpenRouter: func(p *Facts) {
			p.Reasoning, p.Thoughts = TakesReasoning, "reasoning"
			p.ThoughtLists = true
			p.ObjectInputs = true
			p.Media.FileURLs = true
		},
		ZAI: func(p *Facts) {
			p.Reasoning = TakesReasoning
			p.NoCustom, p.ObjectInputs = true, true
		},
		Qwen: templated, LlamaCpp: templated,
		VLLM: func(p *Facts) {
			templated(p)
			p.Thoughts, p.Members = "reasoning", fewMembers
		},
	},
	session.Anthropic: {
		Anthropic: func(*Facts) {},
		Bedrock: func(p *Facts) {
			p.Alternates, p.Tools = true, bedrockNames
			p.Media = mediaOfBedrock.inside()
		},
		Vertex:   func(p *Facts) { p.Alternates, p.Media = true, mediaOfVertex.inside() },
		DeepSeek: func(p *Facts) { p.Unsigned, p.Reasoning = true, RequiresReasoning },
		Moonshot: func(p *Facts) { p.Unsigned, p.Reasoning = true, RequiresWithCalls },
		Qwen:     unsigned, ZAI: unsigned,
	},
	session.AISDK: {
		OpenAI: behind, Groq: behindOther, Cerebras: behindOther, DeepSeek: behindOther, Qwen: behindOther,
		VLLM: behindOther,
		Mistral: func(p *Facts) {
			behindOther(p)
			p.IDLength, p.LastUser = MistralIDLength, true
			p.Media = mediaOfMistral
			p.Behind = Behind{Package: "mistral", SaysThoughts: true, Shows: []string{"image/*", "application/pdf"}}
		},
		Anthropic: behindAnthropic, Vertex: behindAnthropic,
		Bedrock: func(p *Facts) {
			behindAnthropic(p)
			p.Tools, p.Media = bedrockNames, mediaOfBedrock.of(typesOfAnthropic)
		},
		Google: func(p *Facts) {
			behind(p)
			p.IDMax, p.Tools = 64, geminiNames
			p.FirstUser, p.LastUser = true, true
			p.NoEmptyText = true
			p.SystemFirst, p.ObjectInputs = true, true
			p.CallsAfterUser = true
			p.Media = mediaOfGoogle
			p.Behind = Behind{
				Package: "google", SaysThoughts: true, SaysFiles: true,
				ExecutedBy: "serverToolCallId", Finished: true, Objects: true,
				Executes: map[string]Executed{
					"code_execution": {Input: []string{"language", "code"}, Output: []string{"outcome", "output"}},
				},
			}
		},
	},
}

// fewRoles are the roles of servers without developer and function.
var fewRoles = []string{"system", "user", "assistant", "tool"}

func mistral(p *Facts) {
	p.Reasoning, p.Roles = RefusesReasoning, fewRoles
	p.Members = mistralMembers
	p.SystemFirst, p.LastUser = true, true
	p.AnswersTools, p.NoCustom = true, true
	p.ObjectInputs = true
	p.Media = mediaOfMistral
	p.Blocks = append([]string{"thinking"}, imageBlocks...)
	p.IDLength = MistralIDLength
	p.Codes.CallID = "V-M1"
}

// unsigned sets the facts of a server of Anthropic's format whose thinking has no signature that anybody checks.
func unsigned(p *Facts) { p.Unsigned = true }

// templated sets the facts of a server that shows messages to its model by the template that came with it.
func templated(p *Facts) {
	p.Reasoning = TakesReasoning
	p.Roles = fewRoles
	p.SystemFirst, p.OneSystem = true, true
	p.NoCustom, p.ObjectInputs = true, true
}

// behind sets the facts of a provider of Chat Completions that the AI SDK sends a view to.
func behind(p *Facts) {
	p.IDMax, p.Tools = table[session.OpenAIChat].IDMax, chatNames
	p.Media = mediaOfOpenAI
	p.Codes.Empty, p.Codes.First = "V-U3", "V-U4"
	p.Codes.CallID = "V-U5"
	p.Behind = Behind{Package: "openai", ExecutedBy: "itemId"}
}

// behindOther sets those of one that reads the arguments of calls, which the package writes as JSON whatever they are
// (vercel/ai, convert-to-openai-compatible-chat-messages.ts: JSON.stringify(part.input)).
func behindOther(p *Facts) {
	behind(p)
	p.ObjectInputs = true
}

func behindAnthropic(p *Facts) {
	behind(p)
	p.IDMax, p.IDPlain = table[session.Anthropic].IDMax, true
	p.Tools, p.Media = anthropicNames, mediaOfAnthropic.of(typesOfAnthropic)
	p.FirstUser, p.NoEmptyText = true, true
	p.SystemFirst, p.ObjectInputs = true, true
	p.Behind = Behind{
		Package: "anthropic", Signs: true,
		Shows: []string{
			"image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf", "text/plain",
		},
		ExecutedBy: "serverName", Finished: true,
		Executes: map[string]Executed{
			"code_execution": {Output: []string{"type"}}, "web_fetch": {Output: []string{"type"}},
			"advisor": {Output: []string{"type"}}, "web_search": {List: true},
			"tool_search_tool_regex": {List: true}, "tool_search_tool_bm25": {List: true},
		},
	}
}

// made has the facts of each format's dialects.
var made = func() map[session.Format]map[Dialect]*Facts {
	all := map[session.Format]map[Dialect]*Facts{}
	for f, list := range variants {
		all[f] = map[Dialect]*Facts{}
		for d, change := range list {
			facts := *table[f]
			if facts.Media == mediaOfOpenAI && d != OpenAI {
				facts.Media = mediaOfOthers
			}
			change(&facts)
			facts.Dialect = d
			all[f][d] = &facts
		}
	}
	return all
}()

// In returns what a server takes of a format: the facts of the format itself if it has no such dialect.
func In(f session.Format, d Dialect) *Facts {
	if facts, ok := made[f][d]; ok {
		return facts
	}
	return Of(f)
}

// DialectsOf returns the names of a format's dialects in alphabetical order, none for a format without.
func DialectsOf(f session.Format) []Dialect {
	var names []Dialect
	for d := range variants[f] {
		names = append(names, d)
	}
	slices.Sort(names)
	return names
}

// Dialects returns the names of all dialects in alphabetical order.
func Dialects() []Dialect {
	var names []Dialect
	for f := range variants {
		names = append(names, DialectsOf(f)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Join returns the names of dialects, separated by commas.
func Join(list []Dialect) string {
	names := make([]string, len(list))
	for i, d := range list {
		names[i] = string(d)
	}
	return strings.Join(names, ", ")
}

// servers are the names that gateways put before the names of models, for the servers that these models are at.
var servers = map[string]Dialect{
	"openai": OpenAI, "azure": OpenAI, "mistral": Mistral, "mistralai": Mistral, "groq": Groq, "cerebras": Cerebras,
	"deepseek": DeepSeek, "qwen": Qwen, "dashscope": Qwen, "alibaba": Qwen, "vllm": VLLM, "hosted_vllm": VLLM,
	"anthropic": Anthropic, "bedrock": Bedrock, "vertex": Vertex, "vertex_ai": Vertex, "google": Google,
	"gemini": Google, "ollama": Ollama, "ollama_chat": Ollama, "llamacpp": LlamaCpp, "llama.cpp": LlamaCpp,
	"together": ZAI, "together_ai": ZAI, "fireworks": ZAI, "fireworks_ai": ZAI, "deepinfra": ZAI, "minimax": ZAI,
	"xai": ZAI, "x-ai": ZAI, "sglang": LlamaCpp, "lm_studio": LlamaCpp, "moonshot": Moonshot, "moonshotai": Moonshot,
	"zai": ZAI, "z-ai": ZAI, "xiaomi": Moonshot, "xiaomimimo": Moonshot,
}

// gateways are servers that are known by the models behind them where these are: others take what the gateway does.
var gateways = map[string]Dialect{"openrouter": OpenRouter}

// families begin the names of models, for the servers that serve them unless a name says otherwise.
var families = []struct {
	prefix  string
	dialect Dialect
}{
	{"deepseek", DeepSeek}, {"qwen", Qwen}, {"qwq", Qwen}, {"claude", Anthropic}, {"gemini", Google}, {"gpt-", OpenAI},
	{"chatgpt", OpenAI}, {"o1", OpenAI}, {"o3", OpenAI}, {"o4", OpenAI}, {"kimi", Moonshot}, {"moonshot", Moonshot},
	{"glm", ZAI}, {"minimax", ZAI}, {"grok", ZAI}, {"mimo", Moonshot},
}

// DialectOf returns the dialect that a model's name tells, "" for that of the format's own provider or an unknown one.
// The name of a server before a slash, or the marks that Bedrock and Vertex put on the names of Anthropic's models,
// count more than the model's own name. Servers that do not speak the format are skipped.
func DialectOf(f session.Format, model string) Dialect {
	if model == "" || variants[f] == nil {
		return ""
	}
	name := strings.ToLower(model)
	for rest := name; ; {
		server, after, more := strings.Cut(rest, "/")
		if !more {
			break
		}
		if d := servers[server]; speaks(f, d) {
			return atVertex(f, d, after)
		}
		rest = after
	}
	switch {
	case strings.Contains(name, "anthropic.claude") && speaks(f, Bedrock):
		return Bedrock
	case strings.HasPrefix(name, "claude") && strings.Contains(name, "@") && speaks(f, Vertex):
		return Vertex
	case IsMistral(name) && speaks(f, Mistral):
		return Mistral
	}
	base := BaseModel(name)
	for _, family := range families {
		if strings.HasPrefix(base, family.prefix) && speaks(f, family.dialect) {
			return family.dialect
		}
	}
	gateway, _, _ := strings.Cut(name, "/")
	if d := gateways[gateway]; speaks(f, d) {
		return d
	}
	return ""
}

// atVertex returns Google's dialect for one of its own models at Vertex, which serves Anthropic's as well.
func atVertex(f session.Format, d Dialect, model string) Dialect {
	if d == Vertex && models.Of(model).Family == "gemini" && speaks(f, Google) {
		return Google
	}
	return d
}

// speaks reports whether a server takes a format in a dialect that differs from its own provider's.
func speaks(f session.Format, d Dialect) bool {
	_, ok := variants[f][d]
	return ok
}

// unthinking begin the names of models that do not think, at servers that require the reasoning of others.
var unthinking = []string{
	"deepseek-chat", "deepseek-coder", "deepseek-v2", "deepseek-v3", "moonshot-v1", "kimi-k2-0", "kimi-k2-turbo",
}

// MustReason reports whether a server refuses a message of the assistant, with calls or without, that lacks reasoning.
func (p *Facts) MustReason(model string, calls bool) bool {
	if p.Reasoning != RequiresReasoning && !(p.Reasoning == RequiresWithCalls && calls) {
		return false
	}
	base := BaseModel(model)
	return !slices.ContainsFunc(unthinking, func(family string) bool { return strings.HasPrefix(base, family) })
}

// reasoningContent is the member that most servers of Chat Completions read reasoning in.
const reasoningContent = "reasoning_content"

// ThoughtMember returns the member of a message that the server reads reasoning in.
func (p *Facts) ThoughtMember() string { return cmp.Or(p.Thoughts, reasoningContent) }

// ThoughtMembers are the members that servers of Chat Completions have for reasoning as a text, those that are read
// first in front.
var ThoughtMembers = []string{reasoningContent, "reasoning"}

// EndsWithUser reports whether a dialect's last message must not be the assistant's. Of those that want objects as
// inputs, Anthropic's decides by the model.
func (p *Facts) EndsWithUser(model string) bool {
	return p.LastUser || p.ObjectInputs && RefusesPrefill(model)
}
