package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// wakeLevel is the level that an append crossed, or the one that it has to cross to take the slow path.
type wakeLevel int16

const (
	wakeTrigger wakeLevel = 1
	wakeHard    wakeLevel = 2
	wakeNever   wakeLevel = 3
)

// causes names a run by the level that caused it.
var causes = map[wakeLevel]string{wakeTrigger: "threshold", wakeHard: "hard"}

// lockedSession is a session's row while this transaction holds its lock.
type lockedSession struct {
	session.Key
	format                     int16
	lastSeq                    int64
	tailBytes                  int64
	contextTokens, totalTokens int64
	overhead, window           int64
	calibration                float64
	floor                      int64
	wake                       wakeLevel
	checkpoint                 int
	policy                     uuid.UUID
	trigger, hard              float64
	calibrate                  bool
	cacheTTL                   time.Duration
	capsOver                   *int32    // bytes; nil caps nothing at insertion
	coldAt                     time.Time // when the provider's cache of its prefix will be cold
}

// regrowth is the share of its window by which a session has to grow from its floor before it is due again.
const regrowth = 0.05

// level reports whether the session is due with this many tokens in its view, and at which level. It is dueLevel in Go.
func (l lockedSession) level(context int64) (wakeLevel, bool) {
	tokens, window := float64(context+l.overhead), l.estimatedWindow()
	grown := float64(l.floor) + regrowth*window
	switch {
	case l.wake == wakeNever:
		return 0, false
	case tokens >= max(l.hard*window, grown):
		return wakeHard, true
	case l.wake == wakeTrigger && tokens >= max(l.trigger*window, grown):
		return wakeTrigger, true
	}
	return 0, false
}

// estimatedWindow is the window in estimated tokens: smaller if callers report that they are more than was estimated.
func (l lockedSession) estimatedWindow() float64 {
	if !l.calibrate {
		return float64(l.window)
	}
	return float64(l.window) / l.calibration
}

const lockSQL = `
	SELECT key, format, last_seq, tail_bytes, context_tokens, total_tokens, overhead_tokens, window_tokens, calibration, floor_tokens,
	       wake, checkpoint_n, policy_id, coalesce(last_append_at, now())
	  FROM sessions
	 WHERE tenant_id = $1 AND `

// lockSession takes the lock that orders everything that happens to a session; ErrNotFound if there is none. It is not
// FOR UPDATE, for which the foreign keys of a result that is being persisted would have to wait, and appends with them.
func lockSession(ctx context.Context, tx pgx.Tx, at session.Address) (lockedSession, error) {
	return readLocked(ctx, tx, at.Tenant, tx.QueryRow(ctx, lockSQL+`id = $2 FOR NO KEY UPDATE`, [16]byte(at.Tenant), at.ID))
}

func lockSessionKey(ctx context.Context, tx pgx.Tx, key session.Key) (lockedSession, error) {
	return readLocked(ctx, tx, key.Tenant, tx.QueryRow(ctx, lockSQL+`key = $2 FOR NO KEY UPDATE`, [16]byte(key.Tenant), [16]byte(key.Key)))
}

// readLocked reads the session's policy only when it has the lock: a statement that joined it would look for the policy
// that it saw before it waited, and find none if that was replaced meanwhile.
func readLocked(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, row pgx.Row) (lockedSession, error) {
	l := lockedSession{Key: session.Key{Tenant: tenant}}
	err := row.Scan((*[16]byte)(&l.Key.Key), &l.format, &l.lastSeq, &l.tailBytes, &l.contextTokens, &l.totalTokens, &l.overhead, &l.window,
		&l.calibration, &l.floor, &l.wake, &l.checkpoint, (*[16]byte)(&l.policy), &l.coldAt)
	if err != nil {
		return l, notFound(err)
	}
	err = tx.QueryRow(ctx, `
		SELECT trigger_ratio, hard_ratio, cache_ttl, calibrate, caps_over
		  FROM policies
		 WHERE tenant_id = $1 AND id = $2`, [16]byte(tenant), [16]byte(l.policy)).Scan(&l.trigger, &l.hard, &l.cacheTTL, &l.calibrate, &l.capsOver)
	l.coldAt = l.coldAt.Add(l.cacheTTL)
	return l, err
}
