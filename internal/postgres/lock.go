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
	gapSeq        int64 // of the last removal
	tailBytes     int64
	contextTokens int64
	totalTokens   int64
	overhead      int64
	rule          due.Session
	calibrate     bool
	checkpoint    int
	policy        uuid.UUID
	version       session.PolicyVersion
	capsOver      *int32    // bytes; nil caps nothing at ingestion
	now           time.Time // of the database, when this transaction began
	lastAppend    time.Time // not after now, which it is if there was none
}

// due reports whether the session is due with this many tokens in its view, and which threshold they reach.
func (l *lockedSession) due(context int64) (due.Threshold, bool) {
	return l.rule.Due(context + l.overhead)
}

// conditions returns what a compaction of the session is planned under.
func (l *lockedSession) conditions() Conditions {
	return Conditions{Policy: l.version, Window: int(l.rule.Window), Overhead: int(l.overhead)}
}

// overTrigger reports whether the session is over its trigger, whatever is armed.
func (l *lockedSession) overTrigger() (due.Threshold, bool) {
	reached, isDue := l.reached()
	return reached, isDue && reached != due.Idle
}

// reached returns the threshold that the session has reached, whether or not a compaction was requested for it already.
func (l *lockedSession) reached() (due.Threshold, bool) {
	rule := l.rule
	rule.Armed, rule.IdleAsked = due.Trigger, false
	return rule.Due(l.contextTokens + l.overhead)
}

// waitsUntil returns when a session that has reached a threshold is compacted if it is not used meanwhile; the zero
// time is now.
func (l *lockedSession) waitsUntil(reached due.Threshold) time.Time {
	wait := l.rule.Wait(reached)
	if wait == 0 {
		return time.Time{}
	}
	return l.lastAppend.Add(time.Duration(wait) * time.Second)
}

// mayWait reports whether a job of the session may be waiting until nobody has used it for a while.
func (l *lockedSession) mayWait() bool { return l.rule.ColdAfter > 0 || l.rule.IdleFrom > 0 }

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
	SELECT key, last_seq, tail_bytes, tail_bytes + checkpoint_size,
	       context_tokens, total_tokens, overhead_tokens, window_tokens, calibration,
	       unseen_tokens, gap_seq, floor_tokens, floor_hides, floor_seq, floor_version, floor_engine,
	       armed_threshold, idle_asked, checkpoint_n, policy_id, now(), least(coalesce(last_append_at, now()), now())
	  FROM sessions s
	 WHERE s.tenant_id = $1 AND `

// lockSession takes the lock that orders everything that happens to a session; ErrNotFound if there is no such
// session. It is not FOR UPDATE: the foreign keys of a result that is being persisted would wait for that, and appends
// with them.
func lockSession(ctx context.Context, tx pgx.Tx, at session.Address) (lockedSession, error) {
	return readLocked(ctx, tx, at.Tenant, `s.id = $2`, at.ID)
}

func lockSessionKey(ctx context.Context, tx pgx.Tx, key session.Key) (lockedSession, error) {
	return readLocked(ctx, tx, key.Tenant, `s.key = $2`, key.Key)
}

// familySQL locks the session $2, its forks, and those for which it holds bodies, in the order in which appends lock
// them. Who erases or freezes a session writes to all of them: were their rows not locked first, whoever holds the row
// of a fork could wait for its bodies, and this transaction, which has these, for that row.
const familySQL = `
	SELECT
	  FROM sessions s
	 WHERE s.tenant_id = $1
	   AND s.key IN (
	       SELECT $2::uuid
	        UNION
	       SELECT f.key
	         FROM sessions o
	         JOIN sessions f ON f.tenant_id = $1 AND f.forked_from = o.id
	        WHERE o.tenant_id = $1 AND o.key = $2
	        UNION
	       SELECT session_key
	         FROM result_bodies
	        WHERE tenant_id = $1 AND held_in = $2)
	 ORDER BY s.id COLLATE "C"
	   FOR NO KEY UPDATE OF s`

// LockFamily locks a session together with those that share what it has; ErrNotFound.
func LockFamily(ctx context.Context, tx pgx.Tx, key session.Key) (Locked, error) {
	if err := Exec(ctx, tx, familySQL, key.Tenant, key.Key); err != nil {
		return Locked{}, err
	}
	return LockKey(ctx, tx, key)
}

// underLock runs do in a transaction that holds a session's lock; ErrNotFound.
func (s *Store) underLock(ctx context.Context, key session.Key, do func(tx pgx.Tx, row lockedSession) error) error {
	return s.InTenant(ctx, key.Tenant, func(tx pgx.Tx) error {
		row, err := lockSessionKey(ctx, tx, key)
		if err != nil {
			return err
		}
		return do(tx, row)
	})
}

// readLocked locks the session that a condition about $2 names, and reads its policy by a statement of its own, which
// is sent along. One that joined the two would look for the policy that it saw before it waited, and find none if that
// was replaced meanwhile.
func readLocked(
	ctx context.Context, tx pgx.Tx, tenant uuid.UUID, condition string, value any,
) (l lockedSession, err error) {
	l.Tenant = tenant
	var measured measure
	floor := &l.rule.Floor
	locked := &pgx.Batch{}
	locked.Queue(lockSQL+condition+` FOR NO KEY UPDATE`, tenant, value).QueryRow(func(row pgx.Row) error {
		return row.Scan(&l.Key.Key, &l.lastSeq, &l.tailBytes, &l.rule.Bytes, &l.contextTokens, &l.totalTokens,
			&l.overhead, &l.rule.Window, &measured.calibration, &measured.unseen, &l.gapSeq,
			&floor.Tokens, &floor.Hides, &floor.Seq, &floor.Version, &floor.Engine,
			&l.rule.Armed, &l.rule.IdleAsked, &l.checkpoint, &l.policy, &l.now,
			&l.lastAppend)
	})
	var outdated bool
	locked.Queue(ruleSQL+condition, tenant, value).QueryRow(l.readRule(&outdated))
	if err := tx.SendBatch(ctx, locked).Close(); err != nil {
		return l, NotFound(err)
	}
	if outdated {
		if err = mergeAgain(ctx, tx, tenant, l.policy); err == nil {
			err = l.readRule(&outdated)(tx.QueryRow(ctx, ruleSQL+condition, tenant, value))
		}
	}
	l.measuredBy(measured)
	l.rule.Engine = session.EngineVersion
	l.rule.Seq, l.rule.Version = l.lastSeq, l.version.Tenant
	return l, err
}

// ruleSQL reads what the policy of a session has to do with when it is due.
var ruleSQL = `
	SELECT ` + outdatedSQL + `, p.tenant_version, p.session_version, p.calibrate, p.caps_over, ` + due.PolicyColumns + `
	  FROM sessions s
	  JOIN policies p ON p.tenant_id = $1 AND p.id = s.policy_id
	 WHERE s.tenant_id = $1 AND `

// readRule returns what reads the row of ruleSQL. outdated is whether the policy is.
func (l *lockedSession) readRule(outdated *bool) func(row pgx.Row) error {
	return func(row pgx.Row) error {
		columns := []any{outdated, &l.version.Tenant, &l.version.Session, &l.calibrate, &l.capsOver}
		return row.Scan(append(columns, l.rule.Columns()...)...)
	}
}
