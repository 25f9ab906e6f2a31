package main

import (
	"context"
	"crypto/md5"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// Two databases, one with many sessions and one with few, take turns: an append, a view or a page of a list costs what
// it touches, so it must cost the same.
const (
	fewSessions  = 10_000
	filledAtOnce = 250_000
	manyCallers  = 8
	manyGoal     = "<= 1.3" // times beside those of few sessions
	pagesAhead   = 50       // of the list, whose cursors the callers choose from
)

// crowd is a site with a number of sessions, and without a worker, which would have work to do for the sessions that
// were put there. Its PostgreSQL does what it does for any.
type crowd struct {
	*site
	sessions int
	pages    []string // paths of pages of the list
}

// manyCall is what callers repeat, each time for another session.
type manyCall struct {
	name    string
	status  int
	request func(c *client, crowd *crowd, session int) []byte // of an active session's number
}

func manyCalls() []manyCall {
	body := appendBody(appendCase{messages: 1}.bodies())
	return []manyCall{
		{"append", http.StatusCreated, func(c *client, crowd *crowd, session int) []byte {
			return c.request("POST", sessionPath(idOf(session))+"/messages", body)
		}},
		{"view", http.StatusOK, func(c *client, crowd *crowd, session int) []byte {
			return c.request("GET", sessionPath(idOf(session))+"/context", nil)
		}},
		{"list of 20", http.StatusOK, func(c *client, crowd *crowd, _ int) []byte {
			return c.request("GET", crowd.pages[rand.IntN(len(crowd.pages))], nil)
		}},
		{"list by metadata", http.StatusOK, func(c *client, crowd *crowd, session int) []byte {
			user := fmt.Sprintf(`{"user":"%d"}`, session/10)
			return c.request("GET", "/v1/sessions?metadata="+url.QueryEscape(user), nil)
		}},
	}
}

// measureMany measures the site with many sessions beside the one with few, and the lists of operators of the first.
func measureMany(ctx context.Context, b *bench) error {
	if b.sessions < fewSessions {
		return fmt.Errorf("-sessions: %d is less than the %d of the smaller database", b.sessions, fewSessions)
	}
	many, err := b.openCrowd(ctx, "many", b.sessions)
	if err != nil {
		return err
	}
	if err := b.addRowBytes(ctx, many); err != nil {
		return err
	}
	few, err := b.openCrowd(ctx, "few", fewSessions)
	if err != nil {
		return err
	}
	for _, call := range manyCalls() {
		name := fmt.Sprintf("%s, %d sessions beside %d", call.name, b.sessions, fewSessions)
		if !b.match.MatchString(name) {
			continue
		}
		b.progress("%s", name)
		ours, theirs := newLatencies(many, call), newLatencies(few, call)
		if err := b.compareCrowds(ctx, name, ours, theirs); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return b.measureAllSessions(ctx, many)
}

// compareCrowds adds rows for what a call takes and for the processor time that PostgreSQL has for it, by turns.
func (b *bench) compareCrowds(ctx context.Context, name string, many, few *latencies) error {
	ours, theirs := many.crowd.clocks(), few.crowd.clocks()
	_, err := alternate(ctx, b.rounds, b.round, timed(many.sample, ours), timed(few.sample, theirs))
	if err != nil {
		return err
	}
	// The first turn warms.
	b.add(
		row{Name: name + ", p50", Unit: "ms", Goal: manyGoal}.pairs(many.p50[1:], few.p50[1:]),
		row{Name: name + ", p99", Unit: "ms", Goal: manyGoal}.pairs(many.p99[1:], few.p99[1:]),
	)
	for i, clock := range ours {
		if old := theirs[i]; len(clock.rates) == b.rounds+1 && len(old.rates) == b.rounds+1 {
			b.add(row{Name: name + ": " + clock.of, Unit: "ms", Goal: manyGoal}.
				pairs(milliseconds(clock.rates[1:]), milliseconds(old.rates[1:])))
		}
	}
	for _, side := range []*latencies{many, few} {
		if err := side.countPages(ctx); err != nil {
			return err
		}
	}
	b.add(
		row{Name: name + ": pages that PostgreSQL looks at", Unit: "pages", Value: many.pages(), Goal: manyGoal}.
			beside(few.pages()),
		row{Name: name + ": pages of these that are not in its memory", Unit: "pages", Value: many.missed()}.
			beside(few.missed()),
	)
	b.addPageRows(name, many, few)
	return nil
}

// awaitStatistics waits until the ledger is written, some five seconds after a call, and PostgreSQL's processes have
// reported what they did, ten seconds after the last of it.
func awaitStatistics(ctx context.Context) error {
	select {
	case <-time.After(25 * time.Second):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// milliseconds returns the times of one call at some rates a second.
func milliseconds(rates []float64) []float64 {
	times := make([]float64, len(rates))
	for i, rate := range rates {
		times[i] = 1000 / rate
	}
	return times
}

// latencies are how long calls took, by round in ms.
type latencies struct {
	crowd    *crowd
	call     manyCall
	p50, p99 []float64

	hit, read float64 // pages that were and were not in PostgreSQL's memory
	byName    pagesByName
}

func newLatencies(c *crowd, call manyCall) *latencies {
	return &latencies{crowd: c, call: call, byName: pagesByName{}}
}

// countPages counts the pages that PostgreSQL looks at when each active session is called for once, and so written to
// the ledger once: how fast the machine is makes no difference. All were called for before, as in a database in use.
func (l *latencies) countPages(ctx context.Context) error {
	for _, sign := range []float64{-1, 1} {
		if err := l.callForAll(ctx); err != nil {
			return err
		}
		if err := awaitStatistics(ctx); err != nil {
			return err
		}
		if err := l.addPages(ctx, sign); err != nil {
			return err
		}
	}
	return nil
}

// callForAll calls for each active session once, or as often for a page of a list.
func (l *latencies) callForAll(ctx context.Context) error {
	var next atomic.Int64
	group, _ := errgroup.WithContext(ctx)
	for range manyCallers {
		group.Go(func() error {
			c := l.crowd.newClient()
			for n := int(next.Add(1)) - 1; n < fewSessions; n = int(next.Add(1)) - 1 {
				if err := c.call(l.call.request(c, l.crowd, l.crowd.active(n)), l.call.status); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// addPages adds the pages that all calls of the database looked at, by a sign.
func (l *latencies) addPages(ctx context.Context, sign float64) error {
	var hit, read float64
	err := l.crowd.admin.QueryRow(ctx, `
		SELECT blks_hit, blks_read
		  FROM pg_stat_database
		 WHERE datname = current_database()`).Scan(&hit, &read)
	l.hit += sign * hit
	l.read += sign * read
	if err != nil {
		return err
	}
	return l.byName.addPages(ctx, l.crowd, sign)
}

func (l *latencies) pages() float64 { return (l.hit + l.read) / fewSessions }

func (l *latencies) missed() float64 { return l.read / fewSessions }

// sample calls from all callers for d, and returns the rate.
func (l *latencies) sample(ctx context.Context, d time.Duration) (float64, error) {
	var mu sync.Mutex
	var all []float64
	rate, err := load(ctx, d, manyCallers, func(int) func() error {
		c := l.crowd.newClient()
		return func() error {
			request := l.call.request(c, l.crowd, l.crowd.active(rand.IntN(fewSessions)))
			start := time.Now()
			err := c.call(request, l.call.status)
			took := float64(time.Since(start)) / float64(time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, took)
			return err
		}
	})
	if err == nil && len(all) > 0 {
		l.p50 = append(l.p50, median(all))
		l.p99 = append(l.p99, percentile(all, 0.99))
	}
	return rate, err
}

// openCrowd starts a site and fills its tenant.
func (b *bench) openCrowd(ctx context.Context, name string, sessions int) (*crowd, error) {
	s, err := b.openSite(ctx, name, ".")
	if err != nil {
		return nil, err
	}
	last := len(s.servers) - 1
	if err := s.servers[last].close(); err != nil { // the worker
		return nil, err
	}
	s.servers = s.servers[:last]
	c := &crowd{site: s, sessions: sessions}
	b.progress("fill %d sessions", sessions)
	if err := c.fill(ctx, b); err != nil {
		return nil, fmt.Errorf("fill: %w", err)
	}
	return c, c.readPages()
}

//go:embed many.sql
var manySQL string

// fill makes the sessions, set by set, without the checks of foreign keys.
func (c *crowd) fill(ctx context.Context, b *bench) error {
	if _, err := c.admin.Exec(ctx, `
		SET session_replication_role = replica;
		SET synchronous_commit = off`); err != nil {
		return err
	}
	start := time.Now()
	for from := 0; from < c.sessions; from += filledAtOnce {
		to := min(from+filledAtOnce, c.sessions) - 1
		sql := strings.NewReplacer("$tenant", c.tenant.String(), "$from", fmt.Sprint(from), "$to", fmt.Sprint(to),
			"$all", fmt.Sprint(c.sessions)).Replace(manySQL)
		if _, err := c.admin.Exec(ctx, sql); err != nil {
			return err
		}
		b.progress("  %d sessions after %s", to+1, time.Since(start).Round(time.Second))
	}
	for _, sql := range []string{
		`RESET session_replication_role`, `RESET synchronous_commit`, `VACUUM ANALYZE`, `CHECKPOINT`,
	} {
		if _, err := c.admin.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// active returns the number of one of the active sessions. There are as many in both databases, spread over all: the
// ledger writes a row for each session that was used in some seconds, and the same number must be used.
func (c *crowd) active(n int) int {
	return n * (c.sessions / fewSessions)
}

// idOf returns a session's id, as many.sql makes it.
func idOf(session int) string {
	return fmt.Sprintf("%x", md5.Sum(fmt.Append(nil, session)))
}

// readPages reads the list from its beginning, so that pages behind cursors can be asked for.
func (c *crowd) readPages() error {
	reader := c.newClient()
	path := "/v1/sessions?limit=20"
	for range pagesAhead {
		c.pages = append(c.pages, path)
		var page struct {
			Data   []struct{ ID string }
			Cursor string `json:"next_cursor"`
		}
		if err := reader.get(path, &page); err != nil {
			return err
		}
		if len(page.Data) != 20 || page.Cursor == "" {
			return errors.New("the list has fewer pages than sessions")
		}
		path = "/v1/sessions?limit=20&cursor=" + url.QueryEscape(page.Cursor)
	}
	return nil
}
