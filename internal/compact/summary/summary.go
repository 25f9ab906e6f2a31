// Package summary is what can be said about a summary without a model: which messages may be summarised, how a model is
// asked, what its answer says and whether it can be used, and how an answer is carried along by the next one. It is pure.
//
// Start at Request, what there is to summarise, and at Extract, the writer that needs no model. boundary.go says how far
// a summary may reach. What a model is asked is in prompt.go and transcript.go; what becomes of its answer in check.go,
// with parse.go, flags.go and merge.go. Extract's own files: extract.go (what is taken up of messages), calls.go,
// outcome.go and todo.go (of calls and their results), sentences.go and lexicon.go (which sentences tell), adopt.go (of
// the summary before), and notes.go (how it all is fitted into its bounds).
package summary

// Request is what a writer is asked to summarise, and how.
type Request struct {
	First, Last      int64     // seqs of the messages that the summary stands for, those of Previous included
	Messages         []Message // the messages that are not in Previous, oldest first
	Previous         string    // the summary that stands before them, "" for none
	Retained         string    // the facts that it retained, unless they are in Previous
	Style            Style
	Prompt           string // what to write; "" is the style's own
	Directives       []string
	Retain           bool   // ask for facts to carry along, word for word
	RetainPrompt     string // which; "" is the style's own
	RetainDirectives []string
	MaxTokens        int // of the answer, 0 for no bound
}

// Message is one message of the view, decoded.
type Message struct {
	Seq     int64
	Role    string // as sent
	Parts   []Part
	Summary bool // it is an earlier summary of ours
}

// PartKind says what a part is.
type PartKind uint8

// The kinds of parts.
const (
	Other PartKind = iota
	Text
	Call
	Result
	Reasoning
)

// Part is a piece of a message as it stands in the view: a trimmed result is its marker.
type Part struct {
	Kind   PartKind
	Tool   string // Call and Result
	CallID string // Call and Result
	Text   string // a call's arguments are JSON
	Ref    string // Result: what brings the whole back, "" if nothing does
	Failed bool   // Result: the tool said that it failed
}

// Answer is what a writer wrote: all that the next request has to know as its Previous and Retained.
type Answer struct {
	Retain  string // facts to carry along, word for word
	Summary string
	Flags   []string // what looks odd in it, see Flags
}

// Style names a way of asking.
type Style string

// The styles: our own, and those of the systems that Varve unites, to the letter.
const (
	Sections Style = ""        // tagged sections, over a transcript that is marked as untrusted
	Codelia  Style = "codelia" // one instruction after the messages themselves
	Falai    Style = "falai"   // the instruction and the conversation in one
	Cortex   Style = "cortex"  // the conversation by turns, behind a system prompt
)
