package peers

import "regexp"

// exception is what these rules refuse and a view may have.
type exception struct {
	format, by, what string // patterns
	reason           string
}

// known are the exceptions, each with its reason.
var known = []exception{
	{
		"openai-chat", "langchain", "Unable to coerce message",
		"LangChain knows no messages of role function; OpenAI takes them",
	},
	{
		"openai-chat", "langchain", "JSON",
		"LangChain refuses arguments that are no JSON; OpenAI takes back what its models wrote",
	},
	{
		"gemini", "google/genai", "other messages",
		"Google's package for JavaScript drops members in snake case, which its API takes",
	},
	{
		"ai-sdk", "openai-responses", "has no (id|content|text)",
		"@ai-sdk/openai sends reasoning without an id if its part has none",
	},
	{
		"ai-sdk", "", "AI_(NoSuchProviderReference|Download|UnsupportedFunctionality.*media type)",
		"the package has no words for this file",
	},

	{"", "", "name", "not mended yet: names of tools and speakers"},
	{
		"", "", "unknown member|no known type|has no function|function_call|not object|does not match",
		"not mended yet: members",
	},
	{"openai-responses", "", "content is null", "not mended yet: null in items"},
	{
		"openai-responses", "", "does not begin with|twice|the call_id|content has|has no content",
		"not mended yet: ids and parts of items",
	},
	{"ai-sdk", "", "at least one part", "not mended yet: UIMessages without parts, where the provider is not known"},
	{"ai-sdk", "openai-responses", "has no request_id", "not mended yet: approvals"},
	{"ai-sdk", "gemini", "directly after the user", "not mended yet: calls of two messages of the assistant in a row"},
	{
		"ai-sdk", "", `messages must not be empty|content is \[\], not string`,
		"not mended yet: messages that the packages send nothing of",
	},
	{"ai-sdk", "gemini", "no parts", "not mended yet: messages that the package sends nothing of"},
	{"openai-chat", "groq", "tool_calls/type", "not mended yet: custom tools at Groq"},
	{
		"openai-chat", "repairs", "role assistant",
		"not mended yet: a message that is joined with one that was repaired is not told",
	},
	{"", "", "empty list|contents are required|Messages array must not", "not mended yet: lists that become empty"},
	{"", "", "is empty|no output|no result|answers no call", "not mended yet: pairs and empty lists"},
	{"ai-sdk", "validateUIMessages|^ai$", "^parts", "not mended yet: parts that validateUIMessages refuses"},
	{"openai-chat", "schema (mistral|groq)", "^content/", "not mended yet: files that Mistral and Groq do not take"},
	{"", "repairs", "a message of role", "not mended yet: repairs that name another message"},
	{"ai-sdk", "anthropic", "thinking without signature", "not mended yet: an empty signature in an AI SDK part"},
	{"ai-sdk", "anthropic", "do not alternate", "not mended yet: a message that @ai-sdk/anthropic sends nothing of"},
	{
		"ai-sdk", "endpoint (gemini|mistral)", "calls|the call's id",
		"not mended yet: calls that another provider executes, without results",
	},
	{"anthropic", "", "input that is not", "not mended yet: inputs in Anthropic's own format"},
	{
		"ai-sdk", "^ai$", "File data URLs|content type in assistant message|Only images and PDF|provider references",
		"not mended yet: files and results that a package of the AI SDK throws at",
	},
	{"openai-chat", "mistral", "has no file_id", "not mended yet: files that Mistral does not take"},
	{"openai-responses", "", "arguments is null", "not mended yet: arguments that are null"},
	{"gemini", "google/genai", "partialArgs", "not mended yet: arguments in pieces"},
	{"openai-responses", "repairs", "_call$", "not mended yet: the repairs of a call name the first item of its run"},
}

// Files that show a format have placeholders, and words of their own, where real ones have one of a few words, bytes in
// base64, or an address.
const (
	placeholder   = `\[trimmed for fixture\]|scrubbed`
	isPlaceholder = `is "[^"]*", not one of|InvalidCharacterError|Invalid URL`
)

// excepted returns the reason why something in a view may be as it is, "" if it may not.
func excepted(format string, found Violation, view string) string {
	if matches(isPlaceholder, found.What) && matches(placeholder, view) {
		return "a placeholder of a file that shows a format"
	}
	for _, e := range known {
		if matches(e.format, format) && matches(e.by, found.By) && matches(e.what, path(found.At)+" "+found.What) {
			return e.reason
		}
	}
	return ""
}

func matches(pattern, text string) bool {
	return pattern == "" || regexp.MustCompile(pattern).MatchString(text)
}
