package importer

import "github.com/varve-dev/varve/internal/session"

// Source is a kind of file that can be imported.
type Source string

// Auto asks Read to find out the kind from the content.
const Auto Source = ""

// The kinds of files, by the programs that write them. The first five are the formats themselves.
const (
	OpenAIChat      = Source(session.OpenAIChat)
	Anthropic       = Source(session.Anthropic)
	OpenAIResponses = Source(session.OpenAIResponses)
	Gemini          = Source(session.Gemini)
	AISDK           = Source(session.AISDK)

	AgentFramework Source = "agent-framework"
	ADK            Source = "adk"
	AISDKStream    Source = "ai-sdk-stream"
	AIStudio       Source = "ai-studio"
	Antigravity    Source = "antigravity"
	ATIF           Source = "atif"
	Bedrock        Source = "bedrock"
	ChatGPT        Source = "chatgpt"
	ClaudeCode     Source = "claude-code"
	ClaudeAI       Source = "claude-ai"
	Cline          Source = "cline"
	Codex          Source = "codex"
	Continue       Source = "continue"
	Copilot        Source = "copilot"
	CopilotChat    Source = "copilot-chat"
	Cursor         Source = "cursor"
	Droid          Source = "droid"
	GeminiCLI      Source = "gemini-cli"
	Grok           Source = "grok"
	Hermes         Source = "hermes"
	InspectLog     Source = "inspect"
	Kimi           Source = "kimi"
	LangChain      Source = "langchain"
	Langfuse       Source = "langfuse"
	LangSmith      Source = "langsmith"
	LibreChat      Source = "librechat"
	OpenCode       Source = "opencode"
	OpenHands      Source = "openhands"
	OpenWebUI      Source = "open-webui"
	OTLP           Source = "otlp"
	Pi             Source = "pi"
	PydanticAI     Source = "pydantic-ai"
	Qwen           Source = "qwen"
	RequestLog     Source = "request-log"
	ShareGPT       Source = "sharegpt"
	SWEAgent       Source = "swe-agent"
	Tau2           Source = "tau2"
	TauBench       Source = "tau-bench"
)

// source describes a kind of file: how it is recognised, where it has its records and what they become.
type source struct {
	name  Source
	title string // what a person calls such files
	// detect recognises a file by its only value, or by one of its lines.
	detect func(s sample) bool
	// likely recognises a line that others might also write: it counts if no source is sure of any line. It may be nil.
	likely func(s sample) bool

	into   Source // the format of the conversations
	runs   layout
	record record
	open   func(d *draft) record // in place of record: returns what reads the records of a draft

	tree *tree // how records follow each other, nil if they do in the order of the file

	infix       string // stands between the file's id and an agent's name in the id of the agent's conversation
	firstIsMain bool   // whether the main conversation is the one that begins first, not the one without an agent

	// read reads a file that has its records in another way: it appends the conversations, the first of them named id,
	// and reports everything else. It returns an error if data is not of this kind. It may be nil.
	read func(f *File, id string, data []byte) error
}

// sample is what a source is recognised by: the value of a file that is one, or a value on a line.
type sample struct {
	line     bool           // whether the file has other lines
	object   object         // the value, nil if it is no object
	members  object         // of the value, or of an array its first element as "0"
	messages [][]byte       // the value itself if it is an array, else its member "messages", or nil
	format   session.Format // that the value's messages seem to be of, "" for none
}

// sources is every kind of file. One that is sure by a name or a member of its own stands before one that looks at what
// messages have: the first that recognises a value decides.
var sources = []source{
	claudeCode,
	codex,
	pi,
	geminiCLI,
	tauBench,
	tau2,
	agentFramework,
	pydanticAI,
	claudeAI,
	openWebUI,
	libreChat,
	otlp,
	opencode,
	copilotChat,
	continueDev,
	sweAgent,
	openHands,
	cline,
	inspectLog,
	chatGPT,
	aiStudio,
	atif,
	adk,
	langfuse,
	langSmith,
	bedrock,
	shareGPT,
	langChain,
	aiSDKStream,
	kimi,
	copilot,
	droid,
	qwen,
	antigravity,
	cursor,
	grok,
	hermes,
	requestLog,
	document(OpenAIResponses, "OpenAI Responses items"),
	document(Gemini, "Gemini contents"),
	document(AISDK, "AI SDK messages"),
	document(Anthropic, "Anthropic messages"),
	document(OpenAIChat, "OpenAI Chat messages"),
}

// Sources lists every kind of file that can be imported.
func Sources() []Source {
	names := make([]Source, len(sources))
	for i, s := range sources {
		names[i] = s.name
	}
	return names
}

// firstSource returns the first source that matches, the empty one, whose name is Auto, if none does.
func firstSource(matches func(s source) bool) source {
	for _, s := range sources {
		if matches(s) {
			return s
		}
	}
	return source{}
}
