// Package summary has the part of summaries that needs no model: which messages may be summarised, the prompt for a
// model, reading and checking its answer, merging answers, and a writer without a model. It is pure.
//
// Start at Request, the messages to summarise, and at Extract, the writer without a model. boundary.go decides how far
// a summary reaches. The request to a model is in prompt.go and transcript.go, its answer in answer.go and flags.go.
// Said tells the words of the user from what a harness wrote, by harness.txt (said.go, elements.go).
// Extract is in extract.go, with calls.go, outcome.go and todo.go for calls and results, sentences.go and lexicon.go
// for the choice of sentences, adopt.go for earlier summaries, and notes.go for the limits.
package summary

// Request is what a writer must summarise, and how.
type Request struct {
	First, Last      int64     // seqs of the messages that the summary replaces, those of Previous included
	Messages         []Message // the messages that are not in Previous, oldest first
	Previous         string    // the summary before them, "" for none: the answer replaces it
	Earlier          []string  // the summaries of ranges before that stay in the view, oldest first: not to be repeated
	Retained         string    // the facts that it retained, unless they are in Previous
	Merge            bool      // Previous and Messages are summaries, oldest first, of which one is to be made
	Style            Style
	Prompt           string // what to write; "" for the text of the style
	Directives       []string
	Retain           bool   // ask for facts to retain, word for word
	RetainPrompt     string // which facts; "" for the text of the style
	RetainDirectives []string
	MaxTokens        int  // of the answer, 0 for no limit
	MayGrow          bool // the answer may be longer than what it replaces

	// Lead and Tail are the messages before and after those, which stay in the view. Only style Codelia sends them.
	Lead, Tail []Message

	// Chunk of Chunks is which part of the conversation the messages are, counted from 1; both are 0 for all of it.
	Chunk, Chunks int

	// WordsKept says that the user's words and the names of what was read and written stand elsewhere in the view, so
	// that Extract does not repeat them.
	WordsKept bool
}

// Message is a decoded message of the view.
type Message struct {
	Seq     int64
	Role    string // as sent
	Parts   []Part
	Summary bool // it is an earlier summary
}

// PartKind is the kind of a part.
type PartKind uint8

// The kinds of parts.
const (
	Other PartKind = iota
	Text
	Call
	Result
	Reasoning
)

// Part is a part of a message in the view, where a trimmed result is its marker.
type Part struct {
	Kind   PartKind
	Tool   string // Call and Result
	CallID string // Call and Result
	Text   string // a call's arguments are JSON
	Ref    string // Result: retrieves the whole result, "" if nothing does
	Failed bool   // Result: the tool reported a failure
	Media  string // Other: what it is, such as image, with its media type if that is known
	Bytes  int    // Other: its size, 0 if it is not known
}

// Answer is what a writer wrote: the next request has it as Previous and Retained. If the summary of each range stays
// in the view, Extract's Retain is what lasts of its range, and its Summary is about the present: the next request has
// the former in Earlier and the latter as Previous, because the next answer replaces it.
type Answer struct {
	Retain  string // facts to retain, word for word
	Summary string
	Flags   []string // suspicious features, see Flags
	Writer  string   // the operator's name of the model that wrote it, "" for Extract
	Claims  Claims   // what the check of a model's answer found
}

// Claims are the figures of the check of what an answer states, see Accept.
type Claims struct {
	Stated      int `json:"stated"`      // numbers, paths, ids, links and pieces of code
	Unsupported int `json:"unsupported"` // those that are not in what the answer covers
	Cut         int `json:"cut"`         // sentences that were left out because of them
}

// Style is a way to ask for a summary.
type Style string

// The styles: Varve's own, and those of the systems that it emulates, to the letter.
const (
	Sections Style = ""        // tagged sections and a transcript that is marked as untrusted
	Codelia  Style = "codelia" // one instruction after the messages themselves
	Falai    Style = "falai"   // the instruction and the conversation in one
	Cortex   Style = "cortex"  // the conversation by turns, after a system prompt
)
