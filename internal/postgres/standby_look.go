package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/varve-dev/varve/internal/session"
)

// Why a standby is not asked.
var (
	errNotLooked   = errors.New("it has not been looked at yet")
	errPromoted    = errors.New("it is no standby: it was promoted, or never was one")
	errBehind      = errors.New("it is too far behind the primary")
	errDown        = errors.New("it does not answer")
	errDamagedCopy = errors.New("what it has of a checkpoint is damaged")
	errForeign     = errors.New("it is no standby of this primary, or of another database of it")
)

// whys are the labels of the reasons why the primary answered a read, the first that is true.
var whys = []struct {
	err   error
	label string
}{
	{errPromoted, "promoted"}, {errBehind, "behind"}, {errForeign, "foreign"}, {errNotLooked, "starting"},
	{errDown, "down"}, {errDamagedCopy, "damaged"}, {session.ErrNotFound, "not_found"}, {ErrStandbyStale, "stale"},
}

// why returns the label of an error of the standby.
func why(err error) string {
	for _, w := range whys {
		if errors.Is(err, w.err) {
			return w.label
		}
	}
	return "failed"
}

const (
	lookEvery   = 500 * time.Millisecond
	lookTimeout = 2 * time.Second
)

func (s *Standby) keepLooking(ctx context.Context) {
	defer close(s.done)
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			s.becomes(errDown, 0)
			return
		case <-ticker.C:
			s.look(ctx)
		}
	}
}

// look finds out whether the standby can be asked. A primary that does not answer leaves it as it is: what is shown may
// be old, and is all there is.
func (s *Standby) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	primary, primaryErr := s.written.since(ctx, time.Now())
	found, err := s.ask(ctx)
	if err != nil {
		if ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded) {
			s.becomes(err, 0)
		}
		return
	}
	if found.replayed >= s.never.Load() {
		s.never.Store(0)
	}
	if primaryErr == nil {
		err = s.compare(primary, found)
	}
	s.becomes(err, found.timeline)
}

// shown is what a standby answers when it is looked at.
type shown struct {
	standby  bool
	replayed int64 // the position up to which it shows the primary's writes
	timeline int32
	identity identity
}

// ask asks the standby on a connection of its own: a pool that is full says nothing about the server.
func (s *Standby) ask(ctx context.Context) (found shown, err error) {
	conn, err := connect(ctx, s.pool)
	if err != nil {
		return found, fmt.Errorf("%w: %w", errDown, pooled(err))
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := checkStatements(ctx, conn); err != nil {
		return found, fmt.Errorf("%w: %w", errDown, err)
	}
	// The timeline is that of the last restart point or later, and so never newer than what is followed.
	err = conn.QueryRow(ctx, `
		SELECT pg_is_in_recovery(), `+replayedSQL+`,
		       greatest((SELECT timeline_id FROM pg_control_checkpoint()),
		                (SELECT min_recovery_end_timeline FROM pg_control_recovery())),
		       `+identitySQL).
		Scan(&found.standby, &found.replayed, &found.timeline, &found.identity.cluster, &found.identity.database)
	switch {
	case err != nil:
		return found, fmt.Errorf("%w: %w", errDown, err)
	case !found.standby:
		return found, errPromoted
	}
	return found, nil
}

// replayedSQL is the position up to which a standby shows what was written, as a number.
const replayedSQL = `coalesce(pg_last_wal_replay_lsn() - '0/0', 0)::bigint`

// compare returns why a standby is not to be asked, by what the primary says.
func (s *Standby) compare(primary position, found shown) error {
	if primary.identity != found.identity {
		return errForeign
	}
	if found.timeline < primary.timeline {
		return fmt.Errorf("%w: it follows timeline %d, and the primary is on %d", errBehind, found.timeline,
			primary.timeline)
	}
	lag := s.lag(primary, found.replayed)
	standbyLag.Set(lag.Seconds())
	if lag > s.MaxLag+lookEvery {
		return fmt.Errorf("%w: by %s", errBehind, lag.Round(time.Second))
	}
	return nil
}

// maxNotPassed bounds how many positions are kept that the standby has not passed. There are more only if it is too far
// behind anyway.
const maxNotPassed = 1024

// lag returns how old what the standby shows is at most. A position of an older timeline says nothing any more.
func (s *Standby) lag(primary position, replayed int64) time.Duration {
	if s.current.IsZero() {
		s.current = primary.at
	}
	if len(s.notPassed) < maxNotPassed {
		s.notPassed = append(s.notPassed, primary)
	}
	for len(s.notPassed) > 0 {
		oldest := s.notPassed[0]
		if oldest.timeline == primary.timeline && oldest.lsn > replayed {
			break
		}
		s.current = oldest.at
		s.notPassed = s.notPassed[1:]
	}
	if len(s.notPassed) == 0 {
		return 0
	}
	return time.Since(s.current)
}
