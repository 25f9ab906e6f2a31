// Package wire knows providers' message formats: what is in a message, how to write it in another format, and which
// lists of messages a provider takes. It is pure, and owns no bytes: a message that nothing is done to keeps those it
// came with.
//
// There are two ways in. Inspect finds the facts of a message, which are its parts as byte ranges and their tokens,
// without decoding anything; the store, the counters and the engine use it. Render writes a whole view in a format so
// that its provider takes it; readers use it. Both use the one reader that each format has (<format>_read.go). Render
// reads messages into the intermediate representation (message.go), pairs calls and results (arrange.go), repairs
// (repair*.go, <format>_repair.go) and writes (<format>_write.go). Translate does so without repairs. Validate checks a
// list against every rule there is (rules.go, <format>_rules.go). FastValidator reports without any JSON whether a
// stored view needs none of that. What each provider takes is one table (internal/wire/provider).
//
// To add a format: session.Format and its number; a row in provider.table; <format>_read.go, with a case in
// scanner.read; <format>_write.go, with an entry in encoders; <format>_rules.go, with rules in rules.go, fixtures and
// a table in docs/formats.md; <format>_repair.go for what only its provider refuses, called in repair_message.go and
// Render; and what the FastValidator must know of it (shape.go, FastValidator.mayContinue).
package wire

import (
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// Kind is the kind of a part.
type Kind uint8

// The kinds of parts.
const (
	Opaque Kind = iota // a block type that Varve does not know: kept, never touched
	Text
	Image
	File
	Call
	Result
	Reasoning
)

var kindNames = [...]string{"opaque", "text", "image", "file", "call", "result", "reasoning"}

// String returns the kind's name in answers.
func (k Kind) String() string { return kindNames[k] }

// Span is a half-open byte range of a message's body. The zero Span means "not there".
type Span = rawjson.Span

// Part is a block of a message. Its spans index the message's body. The Raw spans of a message's parts never overlap,
// but follow the logical order of the parts (see Inspect), not always that of the bytes.
type Part struct {
	Kind    Kind
	Index   int    // position among the message's parts, counted from 0; a ref names a result by it
	Raw     Span   // the whole part: the content block, the tool_calls element, or the content string itself
	Value   Span   // the JSON value that carries the weight: a text, a content, arguments; zero if absent
	CallID  string // Call and Result
	Name    string // Call: the tool. Result: the tool, where the format repeats it; else ""
	Tokens  int    // estimated tokens of what the model sees of this part
	IsError bool   // Result: the tool failed
	Fixed   bool   // Call: its provider knows the form of Value, and takes nothing else there
}

// Flags are facts of a message that a read must know without decoding it. Stored in messages.flags.
type Flags int32

// The flags.
const (
	FlagEmpty         Flags = 1 << iota // no parts, or only empty texts: nothing that is content to the provider
	FlagEmptyText                       // holds an empty text block
	FlagImage                           // holds an image or file
	FlagReasoning                       // holds reasoning
	FlagDuplicateKeys                   // an object in it repeats a key
	FlagPinned                          // role system or developer
	FlagEmptyArray                      // its content, or that of a result, is an array without elements
	FlagResultNotText                   // holds a result that is neither a string nor an array of text blocks
	flagAssessed1                       // with flagAssessed2: see FlagAssessed
	FlagMayNeedRepair                   // it may need a repair in its own format, whatever is around it
	FlagUnsigned                        // Gemini: the first of its calls has no signature
	FlagMixed                           // holds results and something else
	FlagCustom                          // Responses: a call of a custom tool, or its output
)

// FlagAssessed is two bits. Both are set if all flags are known of the message, and FlagMayNeedRepair for all rules
// that there are. One alone was set by programs that had fewer rules: of such a message the flags before
// FlagMayNeedRepair are known. There is no third combination: a rule that FlagMayNeedRepair is about, and was not about
// in a release, needs more bits.
const (
	flagAssessed2 Flags = -1 << 31
	FlagAssessed        = flagAssessed1 | flagAssessed2
)

// isAssessed reports whether all flags are known.
func (f Flags) isAssessed() bool { return f&FlagAssessed == FlagAssessed }

// Agree reports whether the stored flags of a message are those that Inspect found, as far as they were known when it
// was stored.
func (f Flags) Agree(found Flags) bool {
	if f.isAssessed() {
		return f == found
	}
	const always = FlagResultNotText<<1 - 1
	return f&always == found&always
}

// Above the other flags, Flags have two numbers that a FastValidator compares: the form of a Responses call or output
// that is neither a function's nor a custom tool's, and for Gemini a sum of the ids and names of calls or of responses.
// They are 0 for messages from before there were any.
const (
	formShift, formBits = 13, 3
	nameShift, nameBits = 16, 15
)

// FlagCommon says of a message of Chat Completions, of Anthropic or of the AI SDK that every server takes it, as far as
// the message alone decides, besides its reasoning. In these formats, a sum of names is not needed.
const FlagCommon Flags = 1 << nameShift

// FlagState is the last form: that of a message, of any format, which loads tools or has a provider's own compaction.
const FlagState Flags = (1<<formBits - 1) << formShift

// form returns all of the flags that a call and its output have alike.
func (f Flags) form() Flags {
	if f&FlagState == FlagState {
		return f & FlagCustom
	}
	return f & (FlagCustom | FlagState)
}

// names returns the sum of names, 0 for none.
func (f Flags) names() Flags { return f >> nameShift & (1<<nameBits - 1) }

// Facts are what Inspect finds in one message.
type Facts struct {
	Role       string // as sent: system, developer, user, assistant, tool, …
	Parts      []Part
	Tokens     int  // estimated tokens: the parts' and the message's own
	StartsUnit bool // false if it does nothing but answer calls
	Flags      Flags
}

// PinnedHead counts the messages of role system or developer that a conversation begins with.
func PinnedHead(messages []Facts) int {
	for i, m := range messages {
		if m.Flags&FlagPinned == 0 {
			return i
		}
	}
	return len(messages)
}

// Stored is a message of a view, in the format that it was appended in.
type Stored struct {
	Format session.Format
	Body   []byte
	Seq    int64
	Flags  Flags // that the message was stored with; 0 if they are not known
}

// isSound reports whether nothing in the message, whatever is around it, needs a repair in its own format.
func (m *Stored) isSound() bool { return m.Flags.isAssessed() && m.Flags&FlagMayNeedRepair == 0 }

// mayHaveState reports whether the message may load tools, or have a provider's own compaction.
func (m *Stored) mayHaveState() bool { return !m.Flags.isAssessed() || m.Flags&FlagState == FlagState }

// Pending is what a view does about calls of its last unit that have no result yet.
type Pending string

// The three ways: the calls stay as they are, get a result that says that it is missing, or are left out of the view.
const (
	KeepPending       Pending = "keep"
	SynthesizePending Pending = "synthesize"
	DropPending       Pending = "drop"
)

// Options describe the request that a view is rendered or checked for.
type Options struct {
	Model   string           // the model that the view will be sent to; "" for not known
	Dialect provider.Dialect // of the server that it will be sent to; "" for what the model's name tells
	Tools   []string         // names of the tools that the request defines; nil for not known
	Pending Pending          // "" is KeepPending
	Author  string           // the model that wrote what is in the view; "" for not known
	Unbound []Seqs           // messages before which something has changed since they were written
	Removed []int64          // messages directly behind one that was removed
}

// Seqs are the seqs after one and through another.
type Seqs struct{ After, Through int64 }

// server returns what the server that a view is for takes of a format.
func (o *Options) server(f session.Format) *provider.Facts {
	return provider.For(f, o.Dialect, o.Model)
}

// Takes reports whether the server takes a request whose messages have this number of bytes.
func (o *Options) Takes(f session.Format, bytes int64) bool {
	const always = 16 << 20
	if bytes <= always {
		return true
	}
	limit := o.server(f).Media.MaxBytes()
	return limit == 0 || bytes <= int64(limit)
}

// Repair is a difference between a view and the log, made because the provider would refuse what is in the log.
type Repair struct {
	Rule   string `json:"rule"` // the rule that would be broken: V-A1
	Kind   string `json:"kind"` // what was done: result_synthesized
	Seq    int64  `json:"seq"`  // of the repaired message, 0 if it is not one message
	Detail string `json:"detail"`
}
