package compact

import (
	"fmt"
	"slices"

	"github.com/varve-dev/varve/internal/session"
)

// ActionKind names what is done to a part, or to whole messages. The values are a ladder: from one checkpoint to the
// next a part only moves down.
type ActionKind uint8

// The ladder, from the whole part to the shortest replacement.
const (
	Keep          ActionKind = iota
	CollapseSpace            // its white space collapsed
	Cap                      // head and tail of an oversized result
	Bookend                  // head and tail, the shorter the older
	Stub                     // a newer result for the same resource has taken its place
	Stale                    // only in manifests of 0.1.0: its file was written later
	Placeholder              // a line with the tool's name and the result's beginning
	Blank                    // a line
	Omit                     // a call without its large arguments
	Summarise                // messages that a summary replaces
	Drop                     // messages that a notice replaces
)

// actionNames are the names in stored manifests and in the API.
var actionNames = [...]string{
	"keep", "squeeze", "cap", "bookend", "stub", "stale", "placeholder", "clear", "omit", "summarise", "drop",
}

// isLine reports whether the action replaces a result by a line.
func (d ActionKind) isLine() bool { return Stub <= d && d <= Blank }

func (d ActionKind) String() string {
	if int(d) < len(actionNames) {
		return actionNames[d]
	}
	return fmt.Sprintf("ActionKind(%d)", uint8(d))
}

// MarshalText writes the action's name.
func (d ActionKind) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads an action's name.
func (d *ActionKind) UnmarshalText(text []byte) error {
	i := slices.Index(actionNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("compact: no action is named %q", text)
	}
	*d = ActionKind(i)
	return nil
}

// Action is an entry of the loss manifest: what was done to one part, or to a range of messages, and what it saved.
type Action struct {
	Seq int64 `json:"seq" schema:"minimum: 1"`
	// the last message of a range
	LastSeq int64 `json:"last_seq" schema:"minimum: 1"`
	Part    int   `json:"part" schema:"minimum: -1"` // -1 for messages as a whole
	// of the last message of a range only the first steps left, the others stay
	Partial      bool       `json:"partial,omitempty"`
	Kind         ActionKind `json:"do" schema:"Do"`
	Stage        string     `json:"stage"`
	Rule         string     `json:"rule"`   // the field of the policy that decided
	Reason       string     `json:"reason"` // in words
	Tool         string     `json:"tool,omitempty"`
	Category     string     `json:"category,omitempty"` // what the tool does, e.g. file_read
	Decision     Decision   `json:"decision,omitempty"` // of all parts: with `actions=all`
	TokensBefore int        `json:"tokens_before"`
	TokensAfter  int        `json:"tokens_after"`
	BytesBefore  int        `json:"bytes_before"` // of a part its text, of a range its messages
	BytesAfter   int        `json:"bytes_after"`
	// of the complete result; if absent, the message is in the log under its seq
	Ref string `json:"ref,omitempty"`
	// of a result that is the capped text of an upload, or a window that was read back: the ref of the original,
	// with its lines (`r17.1-9f3a lines 200-399`)
	Source string `json:"source,omitempty"`
	// of a superseded result: tool:primary[:secondary], secrets masked
	Resource    string `json:"resource,omitempty"`
	SHA256      string `json:"sha256,omitempty"`       // of the original of a part that is replaced
	SHA256After string `json:"sha256_after,omitempty"` // of the text in the view; with `actions=all`
}

// Result is a part that leaves the view, a tool's result or a call's arguments: it must be persisted before the
// rendition is committed.
type Result struct {
	Ref       session.ResultRef
	Seq       int64
	Part      int
	Tool      string
	CallID    string
	Category  string
	MediaType string
	Stored    []byte // its decoded text, or its JSON if it has none; nil if Foreign
	SHA256    [32]byte
	Lines     int
	Tokens    int
	Source    string // the result that it is a text or a window of, "" for none: its bytes need no second place
	Foreign   bool   // its bytes are those of a message of another format, and only the log has them
}

// StageReport says what a stage did in one run.
type StageReport struct {
	Stage       string `json:"stage"`
	Entered     bool   `json:"entered"` // false: it is switched off, or the view was within its limit before it
	Actions     int    `json:"actions"`
	TokensSaved int64  `json:"tokens_saved"`
	Error       string `json:"error,omitempty"` // why it failed; the run continued without it
	Due         string `json:"due,omitempty"`   // of which messages a summary by a model is due
}
