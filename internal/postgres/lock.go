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
	contextTokens, totalTokens int64
	overhead, window           int64
	floor                      int64
	wake                       wakeLevel
	checkpoint                 int
	policy                     uuid.UUID
	trigger, hard              float64
	cacheTTL                   time.Duration
	coldAt                     time.Time // when the provider's cache of its prefix will be cold
}

// level reports whether the session is due with this many tokens in its view, and at which level. It is dueLevel in Go.
func (l lockedSession) level(context int64) (wakeLevel, bool) {
	tokens, window := float64(context+l.overhead), float64(l.window)
	grown := float64(l.floor) + 0.05*window
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

const lockSQL = `
	SELECT s.key, s.format, s.last_seq, s.context_tokens, s.total_tokens, s.overhead_tokens, s.window_tokens, s.floor_tokens,
	       s.wake, s.checkpoint_n, s.policy_id, p.trigger_ratio, p.hard_ratio, p.cache_ttl,
	       coalesce(s.last_append_at, now()) + p.cache_ttl
	  FROM sessions s
	  JOIN policies p ON p.tenant_id = s.tenant_id AND p.id = s.policy_id
	 WHERE s.tenant_id = $1 AND `

// lockSession takes the lock that orders everything that happens to a session; ErrNotFound if there is none.
func lockSession(ctx context.Context, tx pgx.Tx, at session.Address) (lockedSession, error) {
	return scanLocked(tx.QueryRow(ctx, lockSQL+`s.id = $2 FOR UPDATE OF s`, [16]byte(at.Tenant), at.ID), at.Tenant)
}

func lockSessionKey(ctx context.Context, tx pgx.Tx, key session.Key) (lockedSession, error) {
	return scanLocked(tx.QueryRow(ctx, lockSQL+`s.key = $2 FOR UPDATE OF s`, [16]byte(key.Tenant), [16]byte(key.Key)), key.Tenant)
}

func scanLocked(row pgx.Row, tenant uuid.UUID) (lockedSession, error) {
	l := lockedSession{Key: session.Key{Tenant: tenant}}
	err := row.Scan((*[16]byte)(&l.Key.Key), &l.format, &l.lastSeq, &l.contextTokens, &l.totalTokens, &l.overhead, &l.window, &l.floor,
		&l.wake, &l.checkpoint, (*[16]byte)(&l.policy), &l.trigger, &l.hard, &l.cacheTTL, &l.coldAt)
	return l, notFound(err)
}
