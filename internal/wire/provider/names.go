package provider

import (
	"strings"

	"github.com/varve-dev/varve/internal/session"
)

// Names are the names that a provider takes: of tools, in calls as in definitions of tools, or of speakers.
type Names struct {
	Max     int    // how many characters a name has at most; 0 for any name that is not empty
	More    string // characters that a name may have besides letters, digits, _ and -
	Letters bool   // a name begins with a letter or _
}

// Take reports whether the provider takes a name.
func (t *Names) Take(name string) bool {
	switch {
	case t.Max == 0 || name == "":
		return name != ""
	case len(name) > t.Max || t.Letters && !begins(name):
		return false
	}
	for i := range len(name) {
		if !plainByte(name[i]) && strings.IndexByte(t.More, name[i]) < 0 {
			return false
		}
	}
	return true
}

// begins reports whether a name that is not empty begins with a letter or _.
func begins(name string) bool {
	c := name[0]
	return plainByte(c) && c != '-' && (c < '0' || c > '9')
}

// EverywhereMax is how many characters a name may have that every provider takes.
const EverywhereMax = 64

// everywhere are the names that every provider takes.
var everywhere = Names{Max: EverywhereMax, Letters: true}

// TakenEverywhere reports whether every provider takes the name of a tool.
func TakenEverywhere(name string) bool { return everywhere.Take(name) }

// The names that the providers of the formats take. Where the definition of a tool has a closer limit than the call of
// one has, it is that of the definition: both have the same name.
//
//   - OpenAI Chat: mcp-use/mcp-use#90 and openai/codex#1289 quote the pattern and the length. Other servers repeat
//     both: Mistral Kochava-Studios/witsy#164, Qwen QwenLM/Qwen3-VL#2069, the rest cline/cline#11885
//   - OpenAI Responses: openai/openai-openapi, FunctionToolParam; openai/codex#46188
//   - Anthropic: anthropics/claude-code#96152 and #4378. Bedrock: anthropics/claude-code#5132, openai/codex#46188
//   - Gemini: kaitranntt/ccs#25 quotes it all, google-gemini/gemini-cli#9535 the colon, dust-tt/dust#28212 the letter
var (
	chatNames      = Names{Max: 64}
	responsesNames = Names{Max: 128}
	anthropicNames = Names{Max: 128}
	bedrockNames   = Names{Max: 64}
	geminiNames    = Names{Max: 64, More: ".:", Letters: true}
)

// speakerNames are what servers of Chat Completions take as the name of a speaker. OpenAI itself takes more today
// (ag2ai/ag2#451), but the pattern of tools is in the answers of others: microsoft/autogen#4157,
// microsoft/semantic-kernel#9340, agentscope-ai/agentscope-java#2347.
var speakerNames = Names{Max: 64}

// ToolNameLimits returns how many characters the name of a tool may have for each dialect of a format, and for "",
// where there is a limit.
func ToolNameLimits(f session.Format) map[string]int {
	limits := map[string]int{}
	for _, d := range append(DialectsOf(f), "") {
		if limit := In(f, d).Tools.Max; limit > 0 {
			limits[string(d)] = limit
		}
	}
	return limits
}
