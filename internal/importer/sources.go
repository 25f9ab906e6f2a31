package importer

import "github.com/varve-dev/varve/internal/session"

// Source is a kind of file that can be imported.
type Source string

// Auto asks Read to find out the kind from the content.
const Auto Source = ""

// source is how a kind of file is recognised and read. Each stands in the file that reads it.
type source struct {
	name  Source
	title string // what a person calls such files
	// detect recognises a file by its only value, or by one of its lines.
	detect func(s sample) bool
	// likely recognises a line that others might also write: it counts if no source is sure of any line. It may be nil.
	likely func(s sample) bool
	// read appends the file's conversations, the first of them named id, and reports everything else. It returns an
	// error if data is not of this kind.
	read func(f *File, id string, data []byte) error
}

// sample is what a source is recognised by: the value of a file that is one, or a value on a line.
type sample struct {
	line     bool           // whether the file has other lines
	object   object         // the value, nil if it is no object
	messages [][]byte       // the value itself if it is an array, else its member "messages"; nil if there is none
	first    object         // the first of messages, nil if there is none or it is no object
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
	sweAgent,
	openHands,
	cline,
	inspectLog,
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
	openAIResponses,
	gemini,
	aiSDK,
	anthropic,
	openAIChat,
}

// Sources lists every kind of file that can be imported.
func Sources() []Source {
	names := make([]Source, len(sources))
	for i, s := range sources {
		names[i] = s.name
	}
	return names
}

// find returns the source of that name, nil for none.
func find(name Source) *source {
	for i := range sources {
		if sources[i].name == name {
			return &sources[i]
		}
	}
	return nil
}
