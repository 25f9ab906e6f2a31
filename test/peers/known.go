package peers

import "regexp"

// exception is what these rules refuse and a view may have.
type exception struct {
	format, by, what, model string // patterns
	reason                  string
}

// known are the exceptions, each with its reason.
var known = []exception{
	{
		"openai-chat", "langchain", "Unable to coerce message", "",
		"LangChain knows no messages of role function; OpenAI takes them",
	},
	{
		"openai-chat", "langchain", "JSON", "",
		"LangChain refuses arguments that are no JSON; OpenAI takes back what its models wrote",
	},
	{
		"gemini", "google/genai", "other messages", "",
		"Google's package for JavaScript drops members in snake case, which its API takes",
	},
	{
		"ai-sdk", "openai-responses", "has no (id|content|text)", "",
		"@ai-sdk/openai sends reasoning without an id if its part has none",
	},
	{
		"ai-sdk", "", "AI_(NoSuchProviderReference|Download|UnsupportedFunctionality.*media type)", "",
		"the package has no words for this file",
	},

	{
		"openai-chat", "schema (openai-chat|groq)", "^name is an unknown member", "",
		"OpenAI's and Groq's own examples send the name of a tool with its result; their types lack it",
	},
	{
		"openai-responses", "schema openai-responses", "^(id|status) is an unknown member", "",
		"the API takes back the items that it has returned, with ids and states that the types of requests lack",
	},
	{
		"ai-sdk", "@ai-sdk/openai openai-chat", "no result of", "",
		"what OpenAI's own tools did goes back to Responses, the package's default: its chat() has no words for it",
	},
	{
		"anthropic", "schema anthropic", "has no signature", "deepseek|kimi|MiniMax|qwen|glm|mimo",
		"these models' servers return thinking without a signature, and take it back; Anthropic's types want one",
	},
}

// Files that show a format have placeholders, and words of their own, where real ones have one of a few words, bytes in
// base64, or an address.
const (
	placeholder   = `\[trimmed for fixture\]|scrubbed`
	isPlaceholder = `is "[^"]*", not one of|InvalidCharacterError|Invalid URL`
)

// declaration is a message of Chat Completions that declares tools and says nothing.
const declaration = `"role":"system",("content":(null|""),)?"tools":\[`

// excepted returns the reason why something in a view may be as it is, "" if it may not.
func excepted(format string, found Violation, view string) string {
	if matches(isPlaceholder, found.What) && matches(placeholder, view) {
		return "a placeholder of a file that shows a format"
	}
	if matches("no content|is null|^tools is an unknown", found.What) && matches(declaration, view) {
		return "Kimi takes tools that a message of the system declares, and no content there"
	}
	for _, e := range known {
		is := matches(e.format, format) && matches(e.by, found.By) && matches(e.model, found.Model)
		if is && matches(e.what, path(found.At)+" "+found.What) {
			return e.reason
		}
	}
	return ""
}

func matches(pattern, text string) bool {
	return pattern == "" || regexp.MustCompile(pattern).MatchString(text)
}
