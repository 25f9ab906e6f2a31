package search

import (
	"strings"
	"time"

	"github.com/varve-dev/varve/internal/protocol"
)

// rules are a tenant's: a language of PostgreSQL, and withResults if results are found.
type rules string

const withResults = " results"

func (r rules) language() string { return strings.TrimSuffix(string(r), withResults) }
func (r rules) results() bool    { return strings.HasSuffix(string(r), withResults) }

// has reports whether texts of a kind are found: what was said, and the calls; the others with the results.
func (r rules) has(kind string) bool {
	return r.results() || kind == "text" || kind == "reasoning" || kind == "call"
}

// Settings are what a tenant can choose.
type Settings struct {
	Language string `json:"language"` // whose rules turn texts into words; simple has none
	Results  bool   `json:"results"`  // are found, too
}

func (s Settings) rules() rules {
	if s.Results {
		return rules(s.Language + withResults)
	}
	return rules(s.Language)
}

// State is how far a tenant's messages are found.
type State struct {
	Settings
	Behind  int64     `json:"sessions_behind"`  // sessions that are not found whole yet, up to maxBehind
	Cold    int64     `json:"sessions_cold"`    // of which nothing is indexed while they are cold, up to maxBehind
	InPart  int64     `json:"messages_in_part"` // and uploaded results, of which only the beginning is indexed
	Through time.Time `json:"indexed_through"`  // what was appended before it is found
}

// maxBehind is as far as the sessions are counted that are not indexed yet.
const maxBehind = 10_000

// Answer is what a search over all messages of a tenant has found.
type Answer struct {
	protocol.List[Hit]
	Covers Coverage `json:"covers"`
}

// Coverage says what a search could find.
type Coverage struct {
	State
	Ranked    int  `json:"ranked"`     // blocks with the words
	RankedAll bool `json:"ranked_all"` // there are no more
}

// Hit is a passage that was found. Reading Ref shows it.
type Hit struct {
	Session   string    `json:"session"`
	Seq       int64     `json:"seq"` // 0 of an uploaded result
	Ref       string    `json:"ref"`
	Role      string    `json:"role,omitempty"`
	Kind      string    `json:"kind,omitempty"` // text, reasoning, call or result
	Tool      string    `json:"tool,omitempty"`
	Snippet   string    `json:"snippet"`
	Rank      float32   `json:"rank"`
	CreatedAt time.Time `json:"created_at"` // of the message, or when the result was whole
	ReadBack  string    `json:"read_back"`  // the path that reads the ref

	at place
}
