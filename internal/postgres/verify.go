package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/session"
)

// Audit reads all that is stored of one session as it was at one moment, for a check of it against itself. It is valid
// inside Store.Audit only.
type Audit struct {
	session.Key
	AuditedSession
	store *Store
	tx    pgx.Tx
}

// AuditedSession is a session's row: its counters as they are stored.
type AuditedSession struct {
	ID             string
	Format         session.Format
	Separate       int64 // the last seq of the separate system prompt, 0 for none
	LastSeq        int64
	Pinned         int64
	GapSeq         int64
	TailBytes      int64
	ContextTokens  int64
	TotalTokens    int64
	Checkpoint     int
	Through        int64
	CheckpointSize int
}

// AuditedMessage is a row of the log.
type AuditedMessage struct {
	Seq        int64
	Role       string
	Format     session.Format
	Tokens     int64
	Calls      []string
	Answers    []string
	StartsUnit bool
	Flags      int32
	Body       []byte
	Digest     []byte // SHA-256 of Body; nil for a message from before there were digests
	ViewBody   []byte // nil if views show the message itself
	ViewTokens int64  // tokens of what views show
	Removed    bool
	RemovedSeq int64 // the seq that its removal took, 0 for none
	Superseded bool
	Shape      string
	Packed     bool  // its bytes are in a pack, as are its calls, answers and shape
	Size       int64 // of Body, also of one that is in a pack
	Damage     error `db:"-"` // why its bytes cannot be read
}

func (m *AuditedMessage) place() place {
	return place{seq: m.Seq, body: &m.Body, shape: &m.Shape, view: &m.ViewBody}
}

// AuditedCheckpoint is a row of a checkpoint. One whose body is not Kept has statistics only.
type AuditedCheckpoint struct {
	N              int
	Base           int
	RestoredFrom   int
	Through        int64
	Tokens         int64
	Kept           bool
	Body           []byte // zframe blocks
	Size           int    // of Body, decompressed
	State          []byte // zstd
	Units          json.RawMessage
	Manifest       json.RawMessage
	OpenCalls      []string
	ValidatorState []byte
	EngineVersion  int
	Messages       int64 // of the log that it covers
	Translated     bool  // some of them have another format than the session
	Sealed         bool  // it has digests
	Whole          bool  // what is served of it has its digest, if it has one
	StateWhole     bool  // so has its state
}

var (
	auditSessionSQL    = statement("verify_session", "{pinned}", PinnedElsewhere)
	auditMessagesSQL   = statement("verify_messages", "{size}", messageBytes)
	auditCheckpointSQL = statement("verify_checkpoint", "{pinned}", PinnedElsewhere, "{whole}", wholeSQL(`c`))
)

// What Audit.Messages reads at once.
const (
	auditedMessages = 500
	auditedBytes    = 8 << 20
)

// Audit calls look with all that is stored of a session, in one transaction that reads the same moment; ErrNotFound.
// It may be idle for as long as a page takes to be checked, for it locks nothing.
func (s *Store) Audit(ctx context.Context, key session.Key, look func(*Audit) error) error {
	return s.inSnapshot(ctx, key.Tenant, func(tx pgx.Tx) error {
		if err := Exec(ctx, tx, `SET LOCAL idle_in_transaction_session_timeout = '5min'`); err != nil {
			return err
		}
		found, err := RowIn(ctx, tx, pgx.RowToStructByName[AuditedSession], auditSessionSQL, key.Tenant, key.Key)
		if err != nil {
			return err
		}
		return look(&Audit{Key: key, AuditedSession: found, store: s, tx: tx})
	})
}

// HasShape reports whether the message is not from before there were shapes.
func (m *AuditedMessage) HasShape() bool { return m.Shape != fmt.Sprint(m.Format.Number()) }

// ShapeFits reports whether the message's shape has what the other columns have.
func (m *AuditedMessage) ShapeFits() bool { return strings.HasPrefix(m.Shape, m.shape()) }

// shape returns what the other columns make of the message's shape.
func (m *AuditedMessage) shape() string {
	const group = "\x1d"
	return strings.Join([]string{
		fmt.Sprint(m.Format.Number()), fmt.Sprint(m.Flags), m.Role, strings.Join(m.Calls, group),
		strings.Join(m.Answers, group), "",
	}, "\x1f")
}

// Messages returns the messages behind a seq, as many as fit into a few megabytes; none at the end of the log. Those in
// packs come without their bytes: see Store.AuditPack.
func (a *Audit) Messages(ctx context.Context, after int64) ([]AuditedMessage, error) {
	return RowsIn(ctx, a.tx, pgx.RowToStructByName[AuditedMessage], auditMessagesSQL,
		a.Tenant, a.Key.Key, after, auditedMessages, auditedBytes, 0)
}

// WholeMessages returns what Messages returns, those in packs with their holes filled, which may ask a store outside
// the database: no other reader does that in a transaction, but this one holds no lock.
func (a *Audit) WholeMessages(ctx context.Context, after int64) ([]AuditedMessage, error) {
	log, err := readLog(ctx, a.tx, a.Key, (*AuditedMessage).place, pgx.RowToStructByName[AuditedMessage],
		auditMessagesSQL, a.Tenant, a.Key.Key, after, auditedMessages, auditedBytes, 0)
	for i := range log.messages {
		m := &log.messages[i]
		if m.Body != nil {
			continue
		}
		if m.Damage = log.completeOne(ctx, a.store, m); m.Damage != nil {
			if !errors.Is(m.Damage, session.ErrDamaged) {
				return nil, m.Damage
			}
			continue
		}
		sum := sha256.Sum256(m.Body) // it was compared when the holes were filled
		m.Digest = sum[:]
		m.Calls, m.Answers = idsOfShape(m.Shape)
	}
	return log.messages, err
}

// Checkpoints returns the numbers of the session's checkpoints.
func (a *Audit) Checkpoints(ctx context.Context) ([]int, error) {
	return RowsIn(ctx, a.tx, pgx.RowTo[int], `
		SELECT n
		  FROM checkpoints
		 WHERE tenant_id = $1 AND session_key = $2
		 ORDER BY n`, a.Tenant, a.Key.Key)
}

// ReadCheckpoint returns a checkpoint; ErrNotFound.
func (a *Audit) ReadCheckpoint(ctx context.Context, n int) (AuditedCheckpoint, error) {
	return RowIn(ctx, a.tx, pgx.RowToStructByName[AuditedCheckpoint], auditCheckpointSQL, a.Tenant, a.Key.Key, n)
}

// Results returns the persisted results behind a place, without their bodies.
func (a *Audit) Results(ctx context.Context, after persist.Place, limit int) ([]persist.Result, error) {
	return persist.List(ctx, a.tx, a.Key, persist.Filter{}, after, limit)
}

// Bodies returns the rows of the bodies of results behind an id.
func (a *Audit) Bodies(ctx context.Context, after uuid.UUID, limit int) ([]persist.AuditedBody, error) {
	return persist.AuditBodies(ctx, a.tx, a.Key, after, limit)
}

// AuditKeys returns the sessions of a tenant, archived ones included, whose keys are behind one, in the order of their
// keys.
func (s *Store) AuditKeys(ctx context.Context, tenant, after uuid.UUID, limit int) ([]uuid.UUID, error) {
	return QueryRows(ctx, s.Seeing(AllSessions), tenant, pgx.RowTo[uuid.UUID], `
		SELECT key
		  FROM sessions
		 WHERE tenant_id = $1 AND key > $2
		 ORDER BY key
		 LIMIT $3`, tenant, after, limit)
}

// KeyOf returns the key of a session, which may be archived; ErrNotFound.
func (s *Store) KeyOf(ctx context.Context, at session.Address) (uuid.UUID, error) {
	return InTx(ctx, s.Seeing(AllSessions), at.Tenant, func(tx pgx.Tx) (uuid.UUID, error) {
		return sessionKey(ctx, tx, at)
	})
}

// CountSessions counts a tenant's sessions, archived ones included.
func (s *Store) CountSessions(ctx context.Context, tenant uuid.UUID) (int64, error) {
	return QueryRow(ctx, s.Seeing(AllSessions), tenant, pgx.RowTo[int64], `
		SELECT count(*)
		  FROM sessions
		 WHERE tenant_id = $1`, tenant)
}
