// Package provider has one table of what the provider of each format accepts. The validator, the repairs and
// the fast validator of internal/wire and the SQL of internal/postgres read it, so that no fact is written down
// twice. Start at Of. A fact that only one rule needs, and that no repair depends on, stays with that rule
// (internal/wire/rules.go).
package provider

import (
	"slices"
	"unicode/utf8"

	"github.com/varve-dev/varve/internal/session"
)

// Facts are what the provider of one format accepts. Lengths are in characters.
type Facts struct {
	Roles          []string // roles that a message may have, in the order in which the provider lists them
	ImpliedRole    string   // the role that Inspect gives to a result that has none itself; "" for none
	SeparateSystem bool     // the request has the system prompt in a separate member, and no system messages
	FirstUser      bool     // the first message must be the user's
	NoEmptyText    bool     // an empty text is refused everywhere
	IDMax          int      // the longest id of a call
	IDPlain        bool     // ids consist of letters, digits, _ and -
	IDUnique       bool     // an id occurs once in a view
	IDAny          bool     // ids that came in this format are taken whatever they are
	Items          bool     // consecutive messages of the assistant are items of one answer
	OwnResults     bool     // a message of the assistant has the results of its own calls
	ResultObjects  bool     // a result must be an object
	FlagsErrors    bool     // a result has a flag that says that its tool failed
	MaxMessages    int      // how many messages a list has at most, besides a separate system prompt; 0 for any number
	MaxCalls       int      // how many calls a message has at most; 0 for any number
	CacheMarks     int      // how many blocks may have cache_control; 0 for a format without
	Codes          Codes
	Variant        // what a dialect has of its own

	Media    Media // images and files
	Tools    Names // of tools
	Speakers Names // of speakers, in the format that has them
}

// Codes are the rules (of package wire) that a repair names in this format.
type Codes struct {
	Unanswered string // a call has no result
	Orphan     string // a result answers no call
	Mixed      string // results are after other content of their message; "" where that is allowed
	Empty      string // a message or a text is empty
	Content    string // the provider does not take a part
	CallID     string // an id is too long, made of other characters, or used twice
	Members    string // the provider knows no such member, or no such type of block
	ToolName   string // it does not take the name of a tool
	First      string // the first message is not the user's; "" where that is allowed
	Count      string // there are too many messages, or calls in one
}

// table has a row for each format. Chat Completions pairs by position and Gemini needs no ids: there, ids may repeat.
// That ids of Anthropic have at most 64 characters is documented by Amazon Bedrock, which serves the same API.
var table = map[session.Format]*Facts{
	session.OpenAIChat: {
		Roles: []string{"system", "developer", "user", "assistant", "tool", "function"},
		IDMax: 40, MaxCalls: 128,
		Media: mediaOfOpenAI, Tools: chatNames, Speakers: speakerNames,
		Codes: Codes{Unanswered: "V-C1", Orphan: "V-C2", Empty: "V-C3", Content: "V-C3", CallID: "V-C4",
			Members: "V-C6", ToolName: "V-C7", Count: "V-C10"},
	},
	session.OpenAIResponses: {
		Roles:       []string{"system", "developer", "user", "assistant"},
		ImpliedRole: "tool",
		IDMax:       64,
		IDUnique:    true,
		Media:       mediaOfOpenAI,
		Tools:       responsesNames,
		Items:       true,
		Codes: Codes{Unanswered: "V-R2", Orphan: "V-R1", Empty: "V-R7", Content: "V-R7", CallID: "V-R4",
			Members: "V-R5", ToolName: "V-R6"},
	},
	session.Anthropic: {
		Roles:          []string{"user", "assistant"},
		SeparateSystem: true,
		FirstUser:      true,
		NoEmptyText:    true,
		IDMax:          64,
		IDPlain:        true,
		IDUnique:       true,
		Media:          mediaOfAnthropic,
		Tools:          anthropicNames,
		FlagsErrors:    true,
		MaxMessages:    100_000,
		CacheMarks:     4,
		Codes: Codes{
			Unanswered: "V-A1", Orphan: "V-A2", Mixed: "V-A3", Empty: "V-A5", Content: "V-A5", CallID: "V-A4",
			Members: "V-A13", ToolName: "V-A14", First: "V-A10", Count: "V-A10",
		},
	},
	session.Gemini: {
		Roles:          []string{"user", "model"},
		SeparateSystem: true,
		FirstUser:      true,
		NoEmptyText:    true,
		IDMax:          64,
		IDAny:          true,
		Media:          mediaOfGoogle.named(),
		Tools:          geminiNames,
		ResultObjects:  true,
		Codes: Codes{
			Unanswered: "V-G2", Orphan: "V-G2", Mixed: "V-G2", Empty: "V-G4", Content: "V-G4", CallID: "V-R4",
			Members: "V-G5", ToolName: "V-G6", First: "V-G4",
		},
	},
	session.AISDK: {
		Roles:       []string{"system", "user", "assistant"},
		IDMax:       256,
		IDUnique:    true,
		OwnResults:  true,
		FlagsErrors: true,
		Media:       Media{Names: true},
		Codes: Codes{Unanswered: "V-U1", Orphan: "V-U1", Empty: "V-U9", Content: "V-U9", CallID: "V-R4",
			Members: "V-U2", ToolName: "V-U11"},
	},
}

var none Facts

// Of returns the facts of a format. Those of an unknown format are the zero Facts.
func Of(f session.Format) *Facts {
	if facts, ok := table[f]; ok {
		return facts
	}
	return &none
}

// ShortestList returns the smallest MaxMessages of a format's servers, 0 if none has any.
func ShortestList(f session.Format) int {
	shortest := Of(f).MaxMessages
	for _, facts := range made[f] {
		if n := facts.MaxMessages; n > 0 && (shortest == 0 || n < shortest) {
			shortest = n
		}
	}
	return shortest
}

// SeparatesSystem reports whether the provider of a format takes the system prompt separately from the messages.
func SeparatesSystem(f session.Format) bool { return Of(f).SeparateSystem }

// SeparatingSystem returns the numbers, as the database has them, of the formats for which SeparatesSystem is true.
func SeparatingSystem() (numbers []int16) {
	for _, f := range session.Formats() {
		if SeparatesSystem(f) {
			numbers = append(numbers, f.Number())
		}
	}
	return numbers
}

// NeedsMore reports whether the provider refuses a list of nothing but system messages.
func (p *Facts) NeedsMore() bool { return p.SeparateSystem || p.FirstUser || p.LastUser }

// KnowsRole reports whether a message may have the role.
func (p *Facts) KnowsRole(role string) bool { return slices.Contains(p.Roles, role) }

// FitsID reports whether the provider takes an id, as far as its characters go.
func (p *Facts) FitsID(id string) bool {
	fits := len(id) <= p.IDMax || utf8.RuneCountInString(id) <= p.IDMax
	return id != "" && fits && (!p.IDPlain || PlainID(id))
}

// PlainID reports whether an id consists of letters, digits, _ and -, and is not empty.
func PlainID(id string) bool {
	for i := range len(id) {
		if !plainByte(id[i]) {
			return false
		}
	}
	return id != ""
}

func plainByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}
