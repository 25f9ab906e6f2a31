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
	{"ai-sdk", "gemini", "directly after the user", "not mended yet: calls of two messages of the assistant in a row"},
	{"openai-chat", "groq", "tool_calls/type", "not mended yet: custom tools at Groq"},
	{"", "", "empty list|contents are required|Messages array must not", "not mended yet: lists that become empty"},
	{"", "", "is empty|no output|no result|answers no call", "not mended yet: pairs and empty lists"},
	{"openai-chat", "schema (mistral|groq)", "^content/", "not mended yet: files that Mistral and Groq do not take"},
	{
		"ai-sdk", "endpoint (gemini|mistral)", "calls|the call's id",
		"not mended yet: calls that another provider executes, without results",
	},
	{"anthropic", "", "input that is not", "not mended yet: inputs in Anthropic's own format"},
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
