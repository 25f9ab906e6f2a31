package session

import "time"

// Via is the way by which something is read back.
type Via string

// The ways.
const (
	ViaREST  Via = "rest"
	ViaMCP   Via = "mcp"
	ViaTools Via = "tools" // calls of tools over HTTP
)

// What is said in place of an action of the engine about what is read back.
const (
	InView   = "in_view"  // no checkpoint has taken it out
	Uploaded = "uploaded" // it never was in the view: its message has a capped text of it
)

// Recalled is how often something of a session was read back since it was counted last.
type Recalled struct {
	Session string // its id
	Ref     string // of a result or of messages
	Via     Via
	Reads   int64
	Last    time.Time
}

// Place returns what a ref names: messages, and the part of one or -1 for messages as a whole. It reports false for a
// ref that names nothing.
func (r *Recalled) Place() (messages MessagesRef, part int, ok bool) {
	if messages, ok = ParseMessagesRef(r.Ref); ok {
		return messages, -1, true
	}
	ref, err := ParseResultRef(r.Ref)
	return MessagesRef{First: ref.Seq, Last: ref.Seq}, ref.Part, err == nil
}

// Attributed is what took out of the view what was read back.
type Attributed struct {
	Action string // of the engine, InView or Uploaded
	Rule   string // the field of the policy that decided
	Via    Via
	Reads  int64
}

// Reads is how often a result was read back, and when last.
type Reads struct {
	Ref   string
	Reads int64
	Last  time.Time
}

// ReadBack counts what a run took out of the view and what was read back since.
type ReadBack struct {
	Parts  int64 `json:"parts"`  // that were read back, messages that left together being one
	Reads  int64 `json:"reads"`  // how often, all together
	Tokens int64 `json:"tokens"` // by which the view shrank when these parts left
}

// Recall is how much of what left the views of a tenant by one action and rule was read back.
type Recall struct {
	Tool   string `json:"tool"` // "" for messages
	Action string `json:"action"`
	Rule   string `json:"rule"` // the field of the policy that decided
	Regret
}

// Regret is what left views, and how much of it was read back.
type Regret struct {
	Left     Left     `json:"left"`
	ReadBack ReadBack `json:"read_back"`
	Share    float64  `json:"share"` // of the parts that left
}

// Add adds other figures, and makes the share anew.
func (r *Regret) Add(other Regret) {
	r.Left.Parts += other.Left.Parts
	r.Left.Tokens += other.Left.Tokens
	r.ReadBack.Parts += other.ReadBack.Parts
	r.ReadBack.Reads += other.ReadBack.Reads
	r.ReadBack.Tokens += other.ReadBack.Tokens
	r.Share = float64(r.ReadBack.Parts) / float64(max(r.Left.Parts, 1))
}

// Left counts what left views.
type Left struct {
	Parts  int64 `json:"parts"`
	Tokens int64 `json:"tokens"` // by which the views shrank
}
