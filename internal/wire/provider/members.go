package provider

import (
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/session"
)

// Object says what an object in a message may be: which members it may have, and what may be inside them. Its provider
// refuses anything else, or does not read it.
type Object struct {
	Members []Member           // the most frequent ones first
	Answers []string           // members that an answer has and a request does not take
	Open    bool               // any member is taken
	Whole   bool               // the readers count all of it, as it is written
	By      string             // the member that tells the kind of the object: "type", "role"; "" for one of one kind
	Kinds   map[string]*Object // by the value of that member
	Prefix  map[string]*Object // kinds whose values only begin like that
	Other   *Object            // kind of an object without that member; nil if there is none
	Note    string             // what begins a text in the place of an object of no kind, or of no known member
	NoteEnd string             // what ends that text
}

// Member is a member that an object may have.
type Member struct {
	Name    string
	In      *Object // what the object that it holds may be, or those in its array; nil for anything
	NotNull bool    // null is refused: the member is left out instead
	NotVoid bool    // so is anything but an array with elements
	System  bool    // only messages of the system may have it
	Named   bool    // an object is refused that has neither a name nor arguments
	Null    bool    // anything but null is refused
	Free    bool    // its bytes weigh nothing: it is counted by what it shows, or no model sees it
}

// Member returns the member of a name, nil if the object may not have it.
func (o *Object) Member(name []byte) *Member {
	for i := range o.Members {
		if m := &o.Members[i]; string(name) == m.Name {
			return m
		}
	}
	return nil
}

// IsAnswered reports whether leaving a member out takes nothing from what the provider answered: only answers have it,
// or it is one that may be there, and is null or empty.
func (o *Object) IsAnswered(name string) bool {
	m := o.Member([]byte(name))
	return m != nil && !m.Null || slices.Contains(o.Answers, name)
}

// Kind returns what an object of a kind may be, nil if there are no such objects.
func (o *Object) Kind(name []byte) *Object {
	if kind, ok := o.Kinds[string(name)]; ok {
		return kind
	}
	for prefix, kind := range o.Prefix {
		if strings.HasPrefix(string(name), prefix) {
			return kind
		}
	}
	return nil
}

// Message returns what a message of a format may be, nil if nothing is known of it.
func Message(f session.Format) *Object { return messages[f] }

var messages = map[session.Format]*Object{
	session.OpenAIChat:      chatMessage,
	session.OpenAIResponses: responsesItem,
	session.Anthropic:       anthropicMessage,
	session.Gemini:          geminiContent,
	session.AISDK:           uiMessage,
}

// object returns an Object with members of these names, separated by spaces. A ? behind a name means NotNull, a !
// both NotNull and NotVoid, a - Null, a + Named.
func object(names string) *Object {
	o := &Object{}
	for name := range strings.FieldsSeq(names) {
		bare := strings.TrimRight(name, "?!-+")
		end := name[len(bare):]
		o.Members = append(o.Members, Member{
			Name: bare, NotNull: end == "?" || end == "!", NotVoid: end == "!", Null: end == "-", Named: end == "+",
		})
	}
	return o
}

// holds sets what is inside the member of a name, which the object has, and returns the object.
func (o *Object) holds(name string, in *Object) *Object {
	o.Member([]byte(name)).In = in
	return o
}

// answers sets the members that only an answer has, separated by spaces, and returns the object.
func (o *Object) answers(names string) *Object {
	o.Answers = strings.Fields(names)
	return o
}

// system sets System of the member of a name, and returns the object.
func (o *Object) system(name string) *Object {
	o.Member([]byte(name)).System = true
	return o
}

// free sets Free of the members of these names, separated by spaces, and returns the object.
func (o *Object) free(names string) *Object {
	for name := range strings.FieldsSeq(names) {
		o.Member([]byte(name)).Free = true
	}
	return o
}

// whole sets Whole, and returns the object.
func (o *Object) whole() *Object {
	o.Whole = true
	return o
}

// orText makes a text take the place of an object that has none of the members.
func (o *Object) orText(note string) *Object {
	o.Note, o.NoteEnd = note, "}"
	return o
}

// blocks returns an object that is of one of several types. In the place of one of another type is a text.
func blocks(textType string, kinds map[string]*Object) *Object {
	return &Object{By: "type", Kinds: kinds, Note: `{"type":"` + textType + `","text":`, NoteEnd: "}"}
}

var anything = &Object{Open: true}
