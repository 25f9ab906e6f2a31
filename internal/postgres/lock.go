package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/due"
	"github.com/varve-dev/varve/internal/session"
)

// lockedSession is a session's row while this transaction holds its lock.
type lockedSession struct {
	session.Key
	lastSeq       int64
	tailBytes     int64
	contextTokens int64
	totalTokens   int64
	overhead      int64
	rule          due.Session
	calibrate     bool
	checkpoint    int
	policy        uuid.UUID
	cacheTTL      time.Duration
	capsOver      *int32    // bytes; nil caps nothing at ingestion
	coldAt        time.Time // when the provider's cache of its prefix will be cold
}

// due reports whether the session is due with this many tokens in its view, and which threshold they reach.
func (l *lockedSession) due(context int64) (due.Threshold, bool) {
	rule := l.rule
	rule.IdleAsked = true // a session is not compacted below its trigger yet
	return rule.Due(context + l.overhead)
}

// overTrigger reports whether the session is over its trigger, whatever is armed.
func (l *lockedSession) overTrigger() (due.Threshold, bool) {
	rule := l.rule
	rule.Armed, rule.IdleAsked = due.Trigger, true
	return rule.Due(l.contextTokens + l.overhead)
}

// measure is what a session has learned about how its provider counts.
type measure struct {
	calibration float64
	unseen      int64
}

// measuredBy sets what the session has learned, which counts only if its policy calibrates.
func (l *lockedSession) measuredBy(m measure) {
	if !l.calibrate {
		m = measure{calibration: 1}
	}
	l.rule.Calibration, l.rule.Unseen = m.calibration, m.unseen
}

const lockSQL = `
	SELECT key, last_seq, tail_bytes, context_tokens, total_tokens, overhead_tokens, window_tokens, calibration,
	       unseen_tokens, floor_tokens, armed_threshold, checkpoint_n, policy_id, coalesce(last_append_at, now())
	  FROM sessions
	 WHERE tenant_id = $1 AND `

// lockSession takes the lock that orders everything that happens to a session; ErrNotFound if there is no such
// session. It is not FOR UPDATE: the foreign keys of a result that is being persisted would wait for that, and appends
// with them.
func lockSession(ctx context.Context, tx pgx.Tx, at session.Address) (lockedSession, error) {
	row := tx.QueryRow(ctx, lockSQL+`id = $2 FOR NO KEY UPDATE`, at.Tenant, at.ID)
	return readLocked(ctx, tx, at.Tenant, row)
}

func lockSessionKey(ctx context.Context, tx pgx.Tx, key session.Key) (lockedSession, error) {
	row := tx.QueryRow(ctx, lockSQL+`key = $2 FOR NO KEY UPDATE`, key.Tenant, key.Key)
	return readLocked(ctx, tx, key.Tenant, row)
}

// underLock runs do in a transaction that holds a session's lock; ErrNotFound.
func (s *Store) underLock(ctx context.Context, key session.Key, do func(tx pgx.Tx, row lockedSession) error) error {
	return s.inTenant(ctx, key.Tenant, func(tx pgx.Tx) error {
		row, err := lockSessionKey(ctx, tx, key)
		if err != nil {
			return err
		}
		return do(tx, row)
	})
}

// readLocked reads the session's policy only when it holds the lock. A statement that joined the two would look for
// the policy that it saw before it waited, and find none if that was replaced meanwhile.
func readLocked(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, row pgx.Row) (lockedSession, error) {
	l := lockedSession{Key: session.Key{Tenant: tenant}}
	var measured measure
	err := row.Scan(&l.Key.Key, &l.lastSeq, &l.tailBytes, &l.contextTokens, &l.totalTokens,
		&l.overhead, &l.rule.Window, &measured.calibration, &measured.unseen, &l.rule.Floor, &l.rule.Armed,
		&l.checkpoint, &l.policy, &l.coldAt)
	if err != nil {
		return l, notFound(err)
	}
	err = tx.QueryRow(ctx, `
		SELECT p.cache_ttl, p.calibrate, p.caps_over, `+due.PolicyColumns+`
		  FROM policies p
		 WHERE p.tenant_id = $1 AND p.id = $2`, tenant, l.policy).
		Scan(append([]any{&l.cacheTTL, &l.calibrate, &l.capsOver}, l.rule.Columns()...)...)
	l.measuredBy(measured)
	l.coldAt = l.coldAt.Add(l.cacheTTL)
	return l, err
}
