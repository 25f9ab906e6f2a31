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

	{"ai-sdk", "", "at least one part", "not mended yet: UIMessages without parts, where the provider is not known"},
	{"ai-sdk", "openai-responses", "has no request_id", "not mended yet: approvals"},
	{
		"ai-sdk", "", `messages must not be empty|content is \[\], not string`,
		"not mended yet: messages that the packages send nothing of",
	},
	{"ai-sdk", "gemini", "no parts", "not mended yet: messages that the package sends nothing of"},
	{"ai-sdk", "gemini", "directly after the user", "not mended yet: calls of two messages of the assistant in a row"},
	{
		"ai-sdk", "", "content is empty|empty list of items",
		"not mended yet: messages that the packages send nothing of",
	},
	{
		"ai-sdk", "endpoint (openai-chat|gemini|mistral)", "no result|calls|the call's id",
		"not mended yet: calls that another provider executes, without results",
	},
	{
		"openai-chat", "repairs", "role assistant",
		"not mended yet: a message that is joined with one that was repaired is not told",
	},
	{"ai-sdk", "validateUIMessages|^ai$", "^parts", "not mended yet: parts that validateUIMessages refuses"},
	{"", "repairs", "a message of role", "not mended yet: repairs that name another message"},
	{"ai-sdk", "anthropic", "thinking without signature", "not mended yet: an empty signature in an AI SDK part"},
	{"ai-sdk", "anthropic", "do not alternate", "not mended yet: a message that @ai-sdk/anthropic sends nothing of"},
	{
		"ai-sdk", "anthropic|^ai$", "type of the image|media_type is|Unsupported content type|Only images and PDF",
		"not mended yet: files of UIMessages that a package or its provider does not show",
	},
	{"openai-responses", "repairs", "_call$", "not mended yet: the repairs of a call name the first item of its run"},
}

// excepted returns the reason why something may be as it is, "" if it may not.
func excepted(format string, found Violation) string {
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
