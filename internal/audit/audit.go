// Package audit says who did what: the rows of the audit trail, whom they name, and how they are chained. It is pure.
//
// Start at Entry, whose Sum is the hash that the database gives a row (function audit_hash in migrations), and at
// Chain, which takes the rows of a trail one after the other and reports what is not as it was written. A caller is
// passed to the store in the context: see With.
package audit

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// Operator is the tenant of the chain that has which tenants operators make, and what they do to their own keys.
var Operator = uuid.Nil

// Action is what was done.
type Action string

// The actions.
const (
	TenantCreate    Action = "tenant.create"
	TenantChange    Action = "tenant.change"
	TenantDelete    Action = "tenant.delete"
	LimitsChange    Action = "limits.change"
	KeyCreate       Action = "key.create"
	KeyRotate       Action = "key.rotate"
	KeyRevoke       Action = "key.revoke"
	PolicyChange    Action = "policy.change"
	SearchChange    Action = "search.change"
	RetentionBound  Action = "retention.bound"
	RetentionChange Action = "retention.change"

	SessionCreate    Action = "session.create"
	SessionChange    Action = "session.change"
	SessionErase     Action = "session.erase"
	SessionExpire    Action = "session.expire"
	SessionFork      Action = "session.fork"
	SessionArchive   Action = "session.archive"
	SessionUnarchive Action = "session.unarchive"
	SessionRepair    Action = "session.repair"
	MessageRemove    Action = "message.remove"
	MessagesReplace  Action = "messages.replace"
	Compact          Action = "compact"
	FailureRetry     Action = "failure.retry"
	Restore          Action = "checkpoint.restore"
	SummariesRebuild Action = "summaries.rebuild"
	PinSet           Action = "pin.set"
	PinDelete        Action = "pin.delete"
	TokenCreate      Action = "token.create"
	TokenRevoke      Action = "token.revoke"

	RecompactionStart    Action = "recompaction.start"
	RecompactionPause    Action = "recompaction.pause"
	RecompactionResume   Action = "recompaction.resume"
	RecompactionCancel   Action = "recompaction.cancel"
	RecompactionRollback Action = "recompaction.rollback"
	ReplayStart          Action = "replay.start"
	ReplayCancel         Action = "replay.cancel"
	ImportStart          Action = "import.start"
	ImportResume         Action = "import.resume"
	Export               Action = "export"
	Prune                Action = "audit.prune"

	ErasureStart  Action = "erasure.start"
	ErasureFinish Action = "erasure.finish"
	HoldPlace     Action = "hold.place"
	HoldLift      Action = "hold.lift"

	WebhookCreate Action = "webhook.create"
	WebhookChange Action = "webhook.change"
	WebhookRotate Action = "webhook.rotate"
	WebhookEnable Action = "webhook.enable"
	WebhookDelete Action = "webhook.delete"

	JobRetry  Action = "job.retry"
	JobCancel Action = "job.cancel"
)

// Actions returns all actions, of which a trail has rows.
func Actions() []Action {
	return []Action{
		TenantCreate, TenantChange, TenantDelete, LimitsChange,
		KeyCreate, KeyRotate, KeyRevoke, PolicyChange, SearchChange, RetentionBound, RetentionChange, SessionCreate,
		SessionChange, SessionErase, SessionExpire, SessionFork, SessionArchive, SessionUnarchive, SessionRepair,
		MessageRemove, MessagesReplace, Compact, FailureRetry, Restore, SummariesRebuild, PinSet, PinDelete,
		TokenCreate, TokenRevoke, RecompactionStart, RecompactionPause, RecompactionResume, RecompactionCancel,
		RecompactionRollback, ReplayStart, ReplayCancel, ImportStart, ImportResume, Export, Prune, ErasureStart,
		ErasureFinish, HoldPlace, HoldLift, WebhookCreate, WebhookChange, WebhookRotate, WebhookEnable,
		WebhookDelete, JobRetry, JobCancel,
	}
}

// Object is the kind of what something was done to.
type Object string

// The kinds of objects.
const (
	Tenant       Object = "tenant"
	Key          Object = "key"
	Session      Object = "session"
	Recompaction Object = "recompaction"
	Replay       Object = "replay"
	Import       Object = "import"
	Erasure      Object = "erasure"
	Webhook      Object = "webhook"
	Job          Object = "job"
)

// Hash is the hash of a row.
type Hash [sha256.Size]byte

// MarshalText writes a hash in hexadecimal digits.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads a hash as MarshalText writes it.
func (h *Hash) UnmarshalText(text []byte) error {
	b, err := hex.DecodeString(string(text))
	if err != nil || len(b) != len(h) {
		return fmt.Errorf("%.80q is no hash: it must have %d hexadecimal digits", text, 2*len(h))
	}
	copy(h[:], b)
	return nil
}

func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Entry is a row of an audit trail.
type Entry struct {
	TenantID uuid.UUID `json:"tenant"` // whose chain it is; zeros for the operators'
	N        int64     `json:"n"`      // its place in the chain: 1, 2, 3, …
	At       time.Time `json:"at"`
	Login    string    `json:"login"` // the login with which the database was written
	// who: a key of the tenant, a session token, a key of an operator, the command line of an operator, or a
	// process of Varve itself
	Actor Kind `json:"actor"`
	// the id of the key (of the tenant or of the operator), or of the session token
	ActorID  *uuid.UUID `json:"actor_id"`
	Request  *string    `json:"request_id"`
	Address  *string    `json:"address"` // where it came from
	Action   Action     `json:"action"`
	Object   Object     `json:"object"` // what it was done to
	ObjectID *string    `json:"object_id"`
	// more about it; never contents
	Detail json.RawMessage `json:"detail" schema:"type: [object, 'null']"`
	// of a policy, limits, or the name and suspension of a tenant
	Before json.RawMessage `json:"before" schema:"type: [object, 'null']"`
	// of a policy, limits, or the name and suspension of a tenant
	After json.RawMessage `json:"after" schema:"type: [object, 'null']"`
	// SHA-256 of what `object_id`, `detail`, `before` and `after` were when the row was written
	Content Hash `json:"content"`
	// the hash of the row before it, also if that was removed; 64 zeros in row 1
	Previous Hash `json:"previous"`
	Hash     Hash `json:"hash"` // SHA-256 in hexadecimal

	// the row that erased the session: what this row said of it is gone, and `object_id` is the key that Varve had
	// for it; `content` is still the hash of what it said
	BlankedBy *int64 `json:"blanked_by,omitempty"`
}

// ContentSum returns the hash of what a row says that an erasure may blank: SHA-256 of these columns as text, each
// behind its length in 4 bytes, -1 for one that is absent.
func (e *Entry) ContentSum() Hash {
	b := appendText(nil, e.ObjectID)
	for _, document := range []json.RawMessage{e.Detail, e.Before, e.After} {
		if document == nil {
			b = appendText(b, nil)
		} else {
			b = appendText(b, new(string(document)))
		}
	}
	return sha256.Sum256(b)
}

// Sum returns the hash that the row must have: SHA-256 of the hash before it, the hash of its content, and of every
// other column as in ContentSum.
func (e *Entry) Sum() Hash {
	b := append(e.Previous[:len(e.Previous):len(e.Previous)], e.Content[:]...)
	var actor *string
	if e.ActorID != nil {
		actor = new(e.ActorID.String())
	}
	for _, text := range []*string{
		new(e.TenantID.String()), new(strconv.FormatInt(e.N, 10)), new(strconv.FormatInt(e.At.UnixMicro(), 10)),
		&e.Login, new(string(e.Actor)), actor, e.Request, e.Address, new(string(e.Action)), new(string(e.Object)),
	} {
		b = appendText(b, text)
	}
	return sha256.Sum256(b)
}

func appendText(b []byte, text *string) []byte {
	if text == nil {
		return append(b, 0xff, 0xff, 0xff, 0xff)
	}
	return append(binary.BigEndian.AppendUint32(b, uint32(len(*text))), *text...)
}
