package protocol

import (
	"encoding/json"
	"time"

	"github.com/varve-dev/varve/internal/compact/manifest"

	"github.com/varve-dev/varve/internal/session"
)

// Session is a session and its size.
type Session struct {
	ID             string               `json:"id"`
	Format         *session.Format      `json:"format"` // null until the first append or PUT names one
	Model          string               `json:"model"`  // empty if it is not set
	WindowTokens   int                  `json:"window_tokens" schema:"Tokens"`
	WindowSource   session.WindowSource `json:"window_source"` // the origin of the window
	OverheadTokens int                  `json:"overhead_tokens" schema:"Tokens"`
	Metadata       json.RawMessage      `json:"metadata" schema:"Metadata"`
	// with `include=policy`; it would be most of the answer
	Policy        json.RawMessage       `json:"policy,omitempty" schema:"Policy"`
	PolicyVersion session.PolicyVersion `json:"policy_version"`
	LastSeq       int64                 `json:"last_seq"`
	ContextTokens int64                 `json:"context_tokens" schema:"Tokens"` // of the view, estimated
	TotalTokens   int64                 `json:"total_tokens" schema:"Tokens"`   // of the log, estimated

	// the number of exactly counted tokens for each estimated token
	Calibration float64 `json:"calibration"`
	// what the last reported usage counted beyond the estimate: tools, a system prompt; negative if it counted
	// less
	UnseenTokens int64 `json:"unseen_tokens"`
	// view and overhead, times `calibration`, plus `unseen_tokens`; compared with the triggers
	CalibratedTokens int64          `json:"calibrated_tokens" schema:"Tokens"`
	LastUsage        *session.Usage `json:"last_usage"` // null if none was reported yet

	// what the session is a fork of; absent for what is no fork
	ForkedFrom *session.ForkedFrom `json:"forked_from,omitempty"`

	// when the session expires in place of the tenant's retention; absent if it has none of its own; lists omit it
	Retention *session.Retention `json:"retention,omitempty" schema:"RetentionState"`
	// when the session expires if nothing is appended; absent for never; lists omit it. A legal hold keeps it
	// nevertheless
	ExpiresAt *time.Time `json:"expires_at,omitempty"`

	// what the settings leave open, such as the window of a model that is not known; lists omit it
	Warnings []session.Warning `json:"warnings,omitempty" schema:"minItems: 1"`

	Checkpoint int `json:"checkpoint"` // the number of the newest checkpoint, 0 without one
	// why the session is not compacted, absent if nothing failed since its last compaction; lists omit it
	Failing      *session.Failing `json:"failing,omitempty"`
	CreatedAt    time.Time        `json:"created_at"`
	LastAppendAt *time.Time       `json:"last_append_at"`
}

// ForkRequest is the body of a fork.
type ForkRequest struct {
	ID  string `json:"id,omitempty"`
	Seq int64  `json:"seq,omitempty"` // the last that both sessions have; 0 for all
}

// SessionSettings are what an import sets on the sessions that it creates. Members that are absent have their defaults.
type SessionSettings struct {
	Model        string          `json:"model,omitempty"`
	WindowTokens int             `json:"window_tokens,omitempty"`
	Policy       json.RawMessage `json:"policy,omitempty"` // merged into the tenant's default
}

// Appended is the answer to an append.
type Appended struct {
	session.Appended
	// with `return=context`: the view with these messages, as a read of the context answers it
	Context *View `json:"context,omitempty"`
	// why there is no `context`; the append stands
	Problem *Problem `json:"problem,omitempty"`
}

// View is what to send to the model. The server writes it by hand, because messages keep their bytes.
type View struct {
	Session    string         `json:"session"`
	Format     session.Format `json:"format" schema:"FormatOrNone"` // null until the session has one
	Checkpoint int            `json:"checkpoint"`                   // 0 if nothing was compacted yet
	Through    int64          `json:"through_seq"`                  // the last message that the checkpoint covers
	LastSeq    int64          `json:"last_seq"`
	Tokens     int64          `json:"tokens" schema:"Tokens"`
	// the session's window, by the provider's count
	Window int64 `json:"window_tokens" schema:"minimum: 1"`
	// whether `tokens` and the overhead do not fit into the window
	OverWindow bool     `json:"over_window"`
	Omitted    *Omitted `json:"omitted,omitempty"` // what `max_tokens` or `fit` omits, if anything
	// what `fit` leaves the beginning and the end of, if anything
	Cut []Cut `json:"cut,omitempty" schema:"minItems: 1"`
	// the last valid view, because the newest is broken; absent otherwise
	Degraded bool `json:"degraded,omitempty" schema:"const: true"`
	// how the view differs from the log, if it was repaired
	Repairs json.RawMessage `json:"repairs,omitempty" schema:"[]Repair"`
	// the names of tools in the view by those in the log, where they differ; the request must define the tools
	// under these names
	ToolNames map[string]string `json:"tool_names,omitempty" schema:"ToolNameMap"`
	// the system prompt, in formats that separate it from the messages
	System   json.RawMessage   `json:"system,omitempty"`
	Messages []json.RawMessage `json:"messages" schema:"[]ProviderMessage"`
}

// ViewUnits is a page of the units of a stored view, as it is before it is repaired for a provider. The server writes
// it by hand, because messages keep their bytes.
type ViewUnits struct {
	Checkpoint int   `json:"checkpoint"` // 0 if nothing was compacted yet
	Through    int64 `json:"through_seq"`
	LastSeq    int64 `json:"last_seq"`
	Tokens     int64 `json:"tokens" schema:"Tokens"` // of the view
	// the newest checkpoint is damaged: this is the last good view
	Degraded bool       `json:"degraded"`
	Data     []ViewUnit `json:"data"`
	HasMore  bool       `json:"has_more"`
	NextSeq  *int64     `json:"next_seq"` // the `from_seq` of the next page; null at the end
	// what a read of the whole view repairs; absent for nothing, or if it was not asked for
	Repairs json.RawMessage `json:"repairs,omitempty" schema:"[]Repair"`
}

// ViewUnit is a unit of a view: messages that no compaction separates.
type ViewUnit struct {
	// of the messages of the log that it stands for
	First    int64         `json:"first_seq" schema:"minimum: 0"`
	Last     int64         `json:"last_seq" schema:"minimum: 0"`
	Tokens   int64         `json:"tokens" schema:"Tokens"`
	Pinned   bool          `json:"pinned"` // a system message, a summary or a notice: no bounded view leaves it out
	Messages []ViewMessage `json:"messages"`
}

// ViewMessage is a message of a view.
type ViewMessage struct {
	Seq     *int64          `json:"seq"` // of the message of the log; null if it does not stand for one alone
	Format  session.Format  `json:"format"`
	Message json.RawMessage `json:"message" schema:"ProviderMessage"`
}

// Timeline is how the log of a session has grown.
type Timeline struct {
	Data []session.Growth `json:"data"` // oldest first
}

// ToolNames are the names that tools have in views of a format.
type ToolNames struct {
	Format session.Format `json:"format"`
	// those that differ from the tools' own
	ToolNames map[string]string `json:"tool_names" schema:"ToolNameMap"`
}

// Omitted counts what a bounded view leaves out.
type Omitted struct {
	// 0: not known, as only the end of a long log was read
	Units    int      `json:"units,omitempty" schema:"minimum: 1"`
	Messages int      `json:"messages" schema:"minimum: 1"`
	Tokens   int64    `json:"tokens" schema:"Tokens"`
	Refs     []string `json:"refs" schema:"minItems: 1"` // of these messages
}

// Cut is a part of a message of which a view that fits the window has only the beginning and the end.
type Cut struct {
	// of the message; for messages of a checkpoint that are not known one by one, of the first
	Seq int64 `json:"seq" schema:"minimum: 1"`
	// what was cut: a result, the arguments of a call, or a text
	Kind         string `json:"kind" schema:"enum: [result, call, text]"`
	Ref          string `json:"ref"` // brings back the whole: the part, or else its message
	TokensBefore int    `json:"tokens_before"`
	TokensAfter  int    `json:"tokens_after"`
}

// MessagePage is a page of a session's log. The server writes it by hand, because messages keep their bytes.
type MessagePage struct {
	Data    []Message `json:"data"`
	HasMore bool      `json:"has_more"`
	NextSeq *int64    `json:"next_seq"` // the `from_seq` of the next page; null at the end
}

// Message is a message of a log.
type Message struct {
	Seq       int64          `json:"seq" schema:"minimum: 1"`
	Role      string         `json:"role"`
	Format    session.Format `json:"format"`
	Tokens    int            `json:"tokens" schema:"Tokens"`
	ClientID  *string        `json:"client_id"`
	CreatedAt time.Time      `json:"created_at"`
	// when it was removed from the views; absent if it was not
	RemovedAt *time.Time `json:"removed_at,omitempty"`

	// of a superseded message: the seq of the one that has its client id now, or else that of the removal
	SupersededBy *int64 `json:"superseded_by,omitempty" schema:"minimum: 1"`

	Message json.RawMessage `json:"message" schema:"ProviderMessage"`
}

// Result describes a persisted tool result without its content.
type Result struct {
	Ref       string    `json:"ref" schema:"Ref"`
	Seq       int64     `json:"seq"`  // 0 of an uploaded result, which is part of no message
	Part      int       `json:"part"` // of an uploaded result its number
	Tool      string    `json:"tool"`
	CallID    string    `json:"call_id"`
	Category  string    `json:"category"` // the category of its tool in the policy
	MediaType string    `json:"media_type"`
	Bytes     int64     `json:"bytes"`
	Lines     int64     `json:"lines"`
	Tokens    int64     `json:"tokens"`
	SHA256    string    `json:"sha256" schema:"SHA256"` // of its bytes, in hexadecimal
	CreatedAt time.Time `json:"created_at"`
}

// ResultPage is some lines of a result, numbered.
type ResultPage struct {
	Result
	LinePage
}

// ResultValue is a value in a result that is JSON.
type ResultValue struct {
	Ref    string `json:"ref"`
	SHA256 string `json:"sha256"` // of the whole result, in hexadecimal
	JSONValue
}

// CheckpointDetail is a checkpoint with its loss manifest.
type CheckpointDetail struct {
	session.CheckpointRecord
	Policy    json.RawMessage `json:"policy" schema:"Policy"` // the policy when it was made
	Units     int             `json:"units"`
	OpenCalls int             `json:"open_calls"` // calls without an answer
	// what was removed, and how to read it; `tokens_saved` is the sum over `stages` and over `entries`
	Manifest Manifest `json:"manifest"`
}

// Manifest is a loss manifest. Its tokens are those of the messages that the checkpoint covers. TokensSaved is before
// less after, the sum of the stages and the sum of the entries.
type Manifest struct {
	Of           string              `json:"of" schema:"enum: [own, all]"` // own or all
	TokensBefore int64               `json:"tokens_before"`
	TokensAfter  int64               `json:"tokens_after"`
	TokensSaved  int64               `json:"tokens_saved"`
	Stages       []manifest.StageSum `json:"stages"`
	Entries      []ManifestEntry     `json:"entries"`
}

// ManifestEntry is an entry of a manifest and the request that reads what it removed.
type ManifestEntry struct {
	manifest.Entry
	ReadBack string `json:"read_back"` // the request that reads it
}

// CheckpointDiff lists what differs between the views of two checkpoints. The tokens of To are those of From, plus
// TokensCovered, plus TokensChanged.
type CheckpointDiff struct {
	From CheckpointSide `json:"from"`
	To   CheckpointSide `json:"to"`
	// of the messages that only the second covers; below 0 if it covers fewer
	TokensCovered int64             `json:"tokens_covered"`
	TokensChanged int64             `json:"tokens_changed"` // of the changes
	Changes       []manifest.Change `json:"changes"`
}

// CheckpointSide is one of two checkpoints that are compared.
type CheckpointSide struct {
	N       int   `json:"n"`
	Through int64 `json:"through_seq"`
	Tokens  int64 `json:"tokens"`
}

// MessagesPage is some lines of the text of messages, numbered.
type MessagesPage struct {
	Ref string `json:"ref"` // of the messages in this answer
	// of the messages that one answer has no room for; null if there are none
	NextRef  *string `json:"next_ref"`
	Messages int     `json:"messages" schema:"minimum: 1"`
	Tokens   int64   `json:"tokens"`
	Lines    int64   `json:"lines"`  // of the text
	Bytes    int64   `json:"bytes"`  // of the messages as they were appended
	SHA256   string  `json:"sha256"` // of these bytes, in hexadecimal
	LinePage
}
