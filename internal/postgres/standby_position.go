package postgres

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// identity tells databases apart. A standby has that of its primary.
type identity struct {
	cluster  int64
	database string
}

const identitySQL = `(SELECT system_identifier FROM pg_control_system()), current_database()`

// position is how far the primary had written at a moment: whatever was committed before it lies at or before lsn.
type position struct {
	at       time.Time
	lsn      int64
	timeline int32
	identity identity
}

// positionSQL finds it. A commit is on disk when it is acknowledged, unless somebody has turned that off.
const positionSQL = `
	SELECT (lsn - '0/0')::bigint, ('x' || left(pg_walfile_name(lsn), 8))::bit(32)::integer, ` + identitySQL + `
	  FROM (SELECT CASE current_setting('synchronous_commit') WHEN 'off' THEN pg_current_wal_insert_lsn()
	                    ELSE pg_current_wal_flush_lsn() END AS lsn) p`

// primaryPosition asks the primary how far it has written, for any number of readers at once.
type primaryPosition struct {
	pool *pgxpool.Pool

	mu     sync.Mutex
	recent []position // oldest first
	asking *question  // that is under way

	// Of the question under way, or the last one.
	asked time.Time
	conn  *pgx.Conn // nil before the first and after one that failed
}

// question is one that several readers wait for. Its moment and its error are there when it is done.
type question struct {
	done chan struct{}
	at   time.Time
	err  error
}

const (
	positionTimeout = time.Second
	positionPause   = time.Millisecond // between questions, so that many readers cost the primary little
)

// recentPositions and recentPause are how many positions are kept, and how far they are apart: a read must not wait for
// what was written long after that which it must show.
const (
	recentPositions = 64
	recentPause     = 100 * time.Millisecond
)

// find returns the first position of a moment that is not before t.
func (p *primaryPosition) find(t time.Time) (position, bool) {
	at, _ := slices.BinarySearchFunc(p.recent, t, func(known position, t time.Time) int { return known.at.Compare(t) })
	if at == len(p.recent) {
		return position{}, false
	}
	return p.recent[at], true
}

// keep keeps a position, in the place of the newest if that was asked for a moment ago.
func (p *primaryPosition) keep(found position) {
	if end := len(p.recent) - 1; end >= 0 && p.recent[end].timeline != found.timeline {
		p.recent = p.recent[:0] // the primary is another one now
	}
	end := len(p.recent) - 1
	switch {
	case end > 0 && found.at.Sub(p.recent[end-1].at) < recentPause:
		p.recent[end] = found
	case len(p.recent) == recentPositions:
		copy(p.recent, p.recent[1:])
		p.recent[end] = found
	default:
		p.recent = append(p.recent, found)
	}
}

// since returns a position of a moment that is not before t, asking the primary if there is none yet.
func (p *primaryPosition) since(ctx context.Context, t time.Time) (position, error) {
	for {
		p.mu.Lock()
		if known, ok := p.find(t); ok {
			p.mu.Unlock()
			return known, nil
		}
		q := p.asking
		if q == nil {
			q = &question{done: make(chan struct{})}
			p.asking = q
			go p.ask(q)
		}
		p.mu.Unlock()
		select {
		case <-q.done:
		case <-ctx.Done():
			return position{}, ctx.Err()
		}
		if q.err != nil && !q.at.Before(t) {
			return position{}, q.err
		}
	}
}

// ask asks the primary, and ends the question.
func (p *primaryPosition) ask(q *question) {
	time.Sleep(time.Until(p.asked.Add(positionPause)))
	q.at = time.Now()
	p.asked = q.at
	ctx, cancel := context.WithTimeout(context.Background(), positionTimeout)
	defer cancel()
	found, err := p.read(ctx)
	found.at, q.err = q.at, err
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.keep(found)
	}
	p.asking = nil
	close(q.done)
}

// read asks on a connection of its own, which it keeps for the next question: a full pool must not hold up the reads
// that relieve it.
func (p *primaryPosition) read(ctx context.Context) (found position, err error) {
	if p.conn == nil {
		conn, err := connect(ctx, p.pool)
		if err != nil {
			return found, err
		}
		p.conn = conn
	}
	err = p.conn.QueryRow(ctx, positionSQL).
		Scan(&found.lsn, &found.timeline, &found.identity.cluster, &found.identity.database)
	if err != nil {
		p.close(ctx)
	}
	return found, err
}

// close ends the connection. No question may be under way.
func (p *primaryPosition) close(ctx context.Context) {
	if p.conn != nil {
		_ = p.conn.Close(context.WithoutCancel(ctx)) // the next question has a new one
	}
	p.conn = nil
}

// await waits until no question is under way.
func (p *primaryPosition) await() {
	p.mu.Lock()
	q := p.asking
	p.mu.Unlock()
	if q != nil {
		<-q.done
	}
}
