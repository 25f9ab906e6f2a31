package wire

import "github.com/varve-dev/varve/internal/session"

// Stored is a message of a view, in the format that it was appended in.
type Stored struct {
	Format session.Format
	Body   []byte
	Seq    int64
}

// Pending says what a view does about calls of its last unit that have no result yet.
type Pending string

// The three ways: the calls stay as they are, get a result that says so, or stay out of the view.
const (
	KeepPending       Pending = "keep"
	SynthesizePending Pending = "synthesize"
	DropPending       Pending = "drop"
)

// Options say for whom a view is rendered and checked.
type Options struct {
	Model   string   // the model that the view will be sent to; "" for not known
	Tools   []string // names of the tools that the request defines; nil for not known
	Pending Pending  // "" is KeepPending
	Author  string   // the model that wrote what is in the view; "" for not known
}

// Repair is something that a view says otherwise than the log, because its provider would refuse it.
type Repair struct {
	Rule   string `json:"rule"` // the rule that would be broken: V-A1
	Kind   string `json:"kind"` // what was done: result_synthesized
	Seq    int64  `json:"seq"`  // of the message that it is about, 0 for none
	Detail string `json:"detail"`
}

// UserMessage is a message of the user that says a text, which is a string literal.
func UserMessage(f session.Format, literal []byte) []byte {
	said := Message{Role: User, Blocks: []Block{{Kind: Text, Text: literal}}, Edited: true}
	return Encode(f, []Message{said})[0]
}

// Rendition is a view in one format.
type Rendition struct {
	Bodies  [][]byte // messages of the target
	System  int      // how many of them are the pinned head
	Repairs []Repair
}
