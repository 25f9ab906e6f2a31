package wire

import (
	"github.com/varve-dev/varve/internal/session"
)

// Message is the content of one message, independent of its format. A message that contains what belongs to several
// roles (an AI SDK message has calls and their results) is several Messages of one Origin.
//
// Every text is a JSON string literal as it was written, quotes and escapes included, and goes into another format
// unchanged: a NUL survives, and nothing is decoded to be encoded again.
type Message struct {
	Format session.Format // of Raw and Extra; "" for a message that a repair made
	Raw    []byte         // the whole message as it is stored; nil for one that a repair made
	Origin int            // which message of the list it is from, counted from 0
	Of     int            // how many Messages that message became; this is the first of them if Part is 0
	Part   int
	Role   Role
	Name   []byte // the string literal of the speaker's name; nil for none
	Blocks []Block
	Extra  []byte // the members of the message that this model has no words for, `"key":value` joined by commas
	Edited bool   // a repair has changed it: Raw is out of date
	cites  bool   // it may name sources, or a sound: see cite
	twin   bool   // Chat Completions: its function_call, which repeats a call, has a name that the provider refuses
	flags  Flags  // of the whole message
}

// extras returns n.Extra as an object.
func (n *Message) extras() []byte { return wrap(nil, "{", n.Extra, "}") }

// Role is the speaker of a Message.
type Role uint8

// The roles. A Tool message has nothing but results; one of a User may have results before its other content.
const (
	User Role = iota
	Assistant
	Tool
	System // system or developer
	Other  // a role that its format does not know; Name is what it is called
)

// Block is a part of a Message. Which members count depends on its Kind:
//
//	Text       Text
//	Reasoning  Text (nil if only the provider can read it), Signature
//	Call       CallID, Name, Value (the arguments), Custom, Signature (Gemini's signature of the call)
//	Result     CallID, Name (nil where unknown), Content, IsError
//	Image, File  Media
//	Opaque     Raw alone
type Block struct {
	Kind      Kind
	Format    session.Format // of Raw
	Raw       []byte         // as it was written; nil for a content string, and for a block that was made here
	Text      []byte         // a string literal
	Signature []byte         // the provider's proof or encryption of it, any JSON value
	CallID    string
	Name      []byte // a string literal
	Value     []byte // arguments, any JSON value: an object wherever they are one, also if it was inside a string
	Custom    bool   // the call is of a tool that takes free text: Value is a string literal
	Content   []Block
	IsError   bool
	Media     Media
	Refusal   bool   // the Text is a refusal
	Thought   bool   // unused outside of Gemini: the text is a thought
	Edited    bool   // a repair has changed it: Raw is out of date
	executed  bool   // Opaque: AI SDK: the part of a call, with its result, that was made of a ModelMessage
	waits     string // Call: why it has no result, if that is known
	loose     bool   // Call: its provider does not take its arguments as they are in Raw
	pair      int    // the number of the call that this is, or is the result of; 0 before arrange gave it one
	number    int    // of the part in the message that it was read from, counted from 1; 0 for a block that was made
	origin    int    // Translate: which message of the run that is, counted from 0
}

// Media is an image or a file. Members that are not known are nil; all are string literals.
type Media struct {
	Type   []byte // its media type: "image/png"
	Data   []byte // the bytes in base64, without any prefix
	URL    []byte // where it is, if it is not in the message
	ID     []byte // its id at the provider
	Name   []byte // a file's name
	Text   []byte // the text of a document that is one
	Detail []byte // OpenAI's detail
}

func (n *Message) has(kind Kind) bool { return n.count(kind) > 0 }

func (n *Message) count(kind Kind) (found int) {
	for i := range n.Blocks {
		if n.Blocks[i].Kind == kind {
			found++
		}
	}
	return found
}

// toolName returns the name of the tool of a call or a result, "" if it is not known.
func (b *Block) toolName() string { return string(unquotedName(b.Name)) }

// setResultRole makes a message of the user that holds nothing but results one of the tool.
func (n *Message) setResultRole() {
	if n.Role == User && len(n.Blocks) > 0 && n.count(Result) == len(n.Blocks) {
		n.Role = Tool
	}
}

// each calls f for all blocks of a kind.
func each(list []Message, kind Kind, f func(*Message, *Block)) {
	for i := range list {
		for j := range list[i].Blocks {
			if p := &list[i].Blocks[j]; p.Kind == kind {
				f(&list[i], p)
			}
		}
	}
}

// blank reports whether a text has nothing but white space.
func blank(literal []byte) bool {
	if literal[1] > ' ' && literal[1] != '"' && literal[1] != '\\' {
		return false // spares decoding what nearly every text is
	}
	for _, c := range string(unquoted(literal)) {
		if c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return false
		}
	}
	return true
}

// makeText makes a block of the message a text.
func (n *Message) makeText(p *Block, literal []byte) {
	*p = Block{Kind: Text, Text: literal, Edited: true}
	n.Edited = true
}

// functionPrefix begins the ids that are made of a function's name.
const functionPrefix = "function:"

func pinnedHead(list []Message) int {
	n := 0
	for n < len(list) && list[n].Role == System {
		n++
	}
	return n
}
