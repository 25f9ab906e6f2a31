package protocol

import (
	"encoding/json"
	"time"

	"github.com/varve-dev/varve/internal/compact/manifest"

	"github.com/varve-dev/varve/internal/session"
)

// Session is a session and its size.
type Session struct {
	ID             string                `json:"id"`
	Format         *session.Format       `json:"format"` // null until the first append or PUT names one
	Model          string                `json:"model"`
	WindowTokens   int                   `json:"window_tokens"`
	WindowSource   session.WindowSource  `json:"window_source"`
	OverheadTokens int                   `json:"overhead_tokens"`
	Metadata       json.RawMessage       `json:"metadata"`
	Policy         json.RawMessage       `json:"policy,omitempty"` // lists omit it: it would be most of the answer
	PolicyVersion  session.PolicyVersion `json:"policy_version"`
	LastSeq        int64                 `json:"last_seq"`
	ContextTokens  int64                 `json:"context_tokens"`
	TotalTokens    int64                 `json:"total_tokens"`

	Calibration      float64        `json:"calibration"`
	UnseenTokens     int64          `json:"unseen_tokens"`
	CalibratedTokens int64          `json:"calibrated_tokens"` // context and overhead as the provider would count them
	LastUsage        *session.Usage `json:"last_usage"`

	ForkedFrom *session.ForkedFrom `json:"forked_from,omitempty"` // absent for what is no fork

	Retention *session.Retention `json:"retention,omitempty"`  // absent if it is the tenant's; lists omit it
	ExpiresAt *time.Time         `json:"expires_at,omitempty"` // absent for never; lists omit it

	Checkpoint   int              `json:"checkpoint"`
	Failing      *session.Failing `json:"failing,omitempty"` // why it is not compacted; lists omit it
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

// View is what to send to the model. The server writes it by hand, because messages keep their bytes.
type View struct {
	Session    string            `json:"session"`
	Format     session.Format    `json:"format"` // "" (null) without any message
	Checkpoint int               `json:"checkpoint"`
	Through    int64             `json:"through_seq"`
	LastSeq    int64             `json:"last_seq"`
	Tokens     int64             `json:"tokens"`
	Window     int64             `json:"window_tokens"` // of the session, by the provider's count
	OverWindow bool              `json:"over_window"`   // tokens and overhead do not fit into the window
	Omitted    *Omitted          `json:"omitted,omitempty"`
	Cut        []Cut             `json:"cut,omitempty"`
	Degraded   bool              `json:"degraded,omitempty"`
	Repairs    json.RawMessage   `json:"repairs,omitempty"`
	ToolNames  map[string]string `json:"tool_names,omitempty"` // in the view by those in the log, where they differ
	System     json.RawMessage   `json:"system,omitempty"`     // of formats whose system prompt is not a message
	Messages   []json.RawMessage `json:"messages"`
}

// ToolNames are the names that tools have in views of a format.
type ToolNames struct {
	Format    session.Format    `json:"format"`
	ToolNames map[string]string `json:"tool_names"` // those that differ from the tools' own
}

// Omitted counts what a bounded view leaves out.
type Omitted struct {
	Units    int      `json:"units,omitempty"` // 0: not known, as only the end of a long log was read
	Messages int      `json:"messages"`
	Tokens   int64    `json:"tokens"`
	Refs     []string `json:"refs"` // of these messages
}

// Cut is a part of a message of which a view that fits the window has only the beginning and the end.
type Cut struct {
	Seq          int64  `json:"seq"`  // for messages of a checkpoint that are not known one by one: the first of them
	Kind         string `json:"kind"` // result, call or text
	Ref          string `json:"ref"`  // of the whole part, or else of its message
	TokensBefore int    `json:"tokens_before"`
	TokensAfter  int    `json:"tokens_after"`
}

// MessagePage is a page of a session's log. The server writes it by hand, because messages keep their bytes.
type MessagePage struct {
	Data    []Message `json:"data"`
	HasMore bool      `json:"has_more"`
	NextSeq *int64    `json:"next_seq"`
}

// Message is a message of a log.
type Message struct {
	Seq       int64          `json:"seq"`
	Role      string         `json:"role"`
	Format    session.Format `json:"format"`
	Tokens    int            `json:"tokens"`
	ClientID  *string        `json:"client_id"`
	CreatedAt time.Time      `json:"created_at"`
	RemovedAt *time.Time     `json:"removed_at,omitempty"` // of a message that was taken back

	// SupersededBy is, of a superseded message, the seq of the one that has its client id now, or else that of the
	// removal.
	SupersededBy *int64 `json:"superseded_by,omitempty"`

	Message json.RawMessage `json:"message"`
}

// Result describes a persisted tool result without its content.
type Result struct {
	Ref       string    `json:"ref"`
	Seq       int64     `json:"seq"`
	Part      int       `json:"part"`
	Tool      string    `json:"tool"`
	CallID    string    `json:"call_id"`
	Category  string    `json:"category"`
	MediaType string    `json:"media_type"`
	Bytes     int64     `json:"bytes"`
	Lines     int64     `json:"lines"`
	Tokens    int64     `json:"tokens"`
	SHA256    string    `json:"sha256"` // of its bytes, in hexadecimal
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
	SHA256 string `json:"sha256"` // of the whole result
	JSONValue
}

// CheckpointDetail is a checkpoint with its loss manifest.
type CheckpointDetail struct {
	session.CheckpointRecord
	Policy    json.RawMessage `json:"policy"`
	Units     int             `json:"units"`
	OpenCalls int             `json:"open_calls"`
	Manifest  Manifest        `json:"manifest"`
}

// Manifest is a loss manifest. Its tokens are those of the messages that the checkpoint covers. TokensSaved is before
// less after, the sum of the stages and the sum of the entries.
type Manifest struct {
	Of           string              `json:"of"` // own or all
	TokensBefore int64               `json:"tokens_before"`
	TokensAfter  int64               `json:"tokens_after"`
	TokensSaved  int64               `json:"tokens_saved"`
	Stages       []manifest.StageSum `json:"stages"`
	Entries      []ManifestEntry     `json:"entries"`
}

// ManifestEntry is an entry of a manifest and the request that reads what it removed.
type ManifestEntry struct {
	manifest.Entry
	ReadBack string `json:"read_back"`
}

// CheckpointDiff lists what differs between the views of two checkpoints. The tokens of To are those of From, plus
// TokensCovered, plus TokensChanged.
type CheckpointDiff struct {
	From          CheckpointSide    `json:"from"`
	To            CheckpointSide    `json:"to"`
	TokensCovered int64             `json:"tokens_covered"` // of messages that only one of them covers
	TokensChanged int64             `json:"tokens_changed"`
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
	Ref      string  `json:"ref"`
	NextRef  *string `json:"next_ref"` // of the messages after these that one answer has no room for
	Messages int     `json:"messages"`
	Tokens   int64   `json:"tokens"`
	Lines    int64   `json:"lines"`  // of the text
	Bytes    int64   `json:"bytes"`  // of the messages as they were appended
	SHA256   string  `json:"sha256"` // of these bytes, in hexadecimal
	LinePage
}
