package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/varve-dev/varve/internal/replay"
	"github.com/varve-dev/varve/internal/replay/folder"
)

// Compactions of the recorded conversations that are longer than a window: of whole logs, and of views that have grown
// over their trigger again. What they cost is all that the worker and PostgreSQL do, packs included.

const (
	compactionTrigger = storageWindow * 8 / 10 // tokens
	compactionGrowth  = storageWindow / 10
	compactionRounds  = 6
)

// fedSession is a session that a recorded conversation is fed into.
type fedSession struct {
	*replay.Session
	id    string
	fed   int     // messages that are in its log
	bytes float64 // of those that were appended since its last compaction
}

// measureCompactions measures compactions from the log, then the next ones, on a database that nothing else uses. With
// -against both checkouts take turns.
func measureCompactions(ctx context.Context, b *bench) error {
	recorded, _, err := folder.Read(ctx, os.Getenv("VARVE_DATA"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	recorded = slices.DeleteFunc(recorded, func(r *replay.Session) bool { return !r.Reaches(storageWindow) })
	if len(recorded) == 0 {
		b.note("compaction: not measured, because there are no recorded conversations that are long enough")
		return nil
	}
	if err := b.startCluster(ctx); err != nil {
		return err
	}
	var sides []*compactionSide
	for i, checkout := range []string{".", b.against} {
		if checkout == "" {
			break
		}
		s, err := b.openSite(ctx, fmt.Sprint("compaction", i), checkout)
		if err != nil {
			return err
		}
		sides = append(sides, &compactionSide{site: s})
	}
	b.progress("compaction of %d conversations, %d times each", len(recorded), compactionRounds)
	for round := range compactionRounds {
		if err := compactInTurns(ctx, round, sides, recorded); err != nil {
			return err
		}
	}
	b.addCompactions(sides)
	for _, s := range sides {
		b.sites = slices.DeleteFunc(b.sites, func(open *site) bool { return open == s.site })
		err = errors.Join(err, s.close(ctx))
	}
	return err
}

// compactionSide is a checkout whose compactions are measured.
type compactionSide struct {
	*site
	whole, grown []*fedSession
	costs        compactionCosts
}

// compactInTurns measures one round of all sides.
func compactInTurns(ctx context.Context, round int, sides []*compactionSide, recorded []*replay.Session) error {
	for _, s := range sides {
		if err := s.feedRound(round, recorded); err != nil {
			return err
		}
	}
	for _, s := range sides {
		if err := s.calm(ctx); err != nil {
			return err
		}
	}
	return eachSide(round, len(sides), func(side int) error { return sides[side].compactRound(ctx, round) })
}

// feedRound makes the sessions whose log is compacted, and lets those grow that were compacted before.
func (s *compactionSide) feedRound(round int, recorded []*replay.Session) (err error) {
	if round == 0 {
		s.grown = fedSessions("stepwise", recorded)
	}
	s.whole = fedSessions(fmt.Sprint("whole-", round), recorded)
	if _, err := s.feed(s.whole, math.MaxInt32); err != nil {
		return err
	}
	s.grown, err = s.feed(s.grown, compactionTrigger)
	return err
}

// compactRound adds what compactions cost. Those of the first round are all from the log.
func (s *compactionSide) compactRound(ctx context.Context, round int) error {
	for kind, list := range [][]*fedSession{s.whole, s.grown} {
		var cost compactionCost
		if err := s.compactAll(ctx, list, &cost); err != nil {
			return err
		}
		if cost.sessions > 0 && (round > 0 || kind == 0) {
			s.costs.add(kind, &cost)
		}
	}
	return ctx.Err()
}

func fedSessions(name string, recorded []*replay.Session) (list []*fedSession) {
	for i, r := range recorded {
		list = append(list, &fedSession{Session: r, id: fmt.Sprintf("%s-%d", name, i)})
	}
	return list
}

// feed appends to sessions until the context of each has this many tokens and has grown, and returns those that have
// not come to their end.
func (s *site) feed(list []*fedSession, tokens int64) (left []*fedSession, err error) {
	c := s.newClient()
	for _, f := range list {
		if err := c.feed(f, tokens); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		if f.fed < len(f.Messages) {
			left = append(left, f)
		}
	}
	return left, nil
}

// feed makes a session, which is compacted on request only, and appends the next messages.
func (c *client) feed(f *fedSession, tokens int64) error {
	growth := int64(compactionGrowth)
	if f.fed == 0 {
		body := fmt.Appendf(nil, `{"window_tokens": %d, "policy": {"auto": false}}`, storageWindow)
		if err := c.send("PUT", sessionPath(f.id), body, http.StatusCreated); err != nil {
			return err
		}
	}
	for {
		var state sessionState
		if err := c.get(sessionPath(f.id), &state); err != nil {
			return err
		}
		at := int64(state.ContextTokens)
		tokens = max(tokens, at+growth)
		growth = 0 // of what the first look has seen
		if at >= tokens || f.fed == len(f.Messages) {
			return nil
		}
		if err := c.send("POST", sessionPath(f.id)+"/messages", f.next(tokens-at), http.StatusCreated); err != nil {
			return err
		}
	}
}

// next returns the body of an append of the next messages, of about as many tokens, unless results among them are cut.
func (f *fedSession) next(tokens int64) []byte {
	var list [][]byte
	for ; f.fed < len(f.Messages) && tokens > 0 && len(list) < batchMessages; f.fed++ {
		m := &f.Messages[f.fed]
		list = append(list, m.Body)
		f.bytes += float64(len(m.Body))
		tokens -= int64(m.Tokens)
	}
	return fmt.Appendf(nil, `{"format":%q,"messages":[%s]}`, f.Format, joined(list))
}

// compactionCost is what compactions have cost together.
type compactionCost struct {
	sessions, bytes, seconds float64
	worker, postgres, wal    float64 // seconds of processor time, and bytes
}

// compactAll compacts sessions, waits until their messages are packed, and adds what that cost.
func (s *site) compactAll(ctx context.Context, list []*fedSession, cost *compactionCost) error {
	if err := s.addCost(ctx, cost, -1); err != nil {
		return err
	}
	c := s.newClient()
	for _, f := range list {
		if err := c.send("POST", sessionPath(f.id)+"/compact", []byte(`{}`), http.StatusAccepted); err != nil {
			return err
		}
		cost.sessions++
		cost.bytes += f.bytes
		f.bytes = 0
	}
	if err := s.rest(ctx); err != nil {
		return err
	}
	return s.addCost(ctx, cost, 1)
}

// calm waits until nothing is left to do of what follows appends: the search index is built when a session rests.
func (s *site) calm(ctx context.Context) error {
	for tick := time.NewTicker(time.Second); ; {
		var busy bool
		err := s.admin.QueryRow(ctx, `
			SELECT EXISTS (SELECT FROM river_job WHERE finalized_at IS NULL AND state IN ('available', 'running'))
			       OR EXISTS (SELECT FROM search_sessions WHERE due_since IS NOT NULL)`).Scan(&busy)
		if err != nil || !busy {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// addCost adds the clocks as they stand, times sign.
func (s *site) addCost(ctx context.Context, c *compactionCost, sign float64) error {
	wal, _, err := s.written(ctx)
	if err != nil {
		return err
	}
	postmaster := parentOf(int(s.admin.PgConn().PID()))
	c.wal += sign * wal
	c.worker += sign * processSeconds(s.servers[len(s.servers)-1].cmd.Process.Pid, ownTime)
	c.postgres += sign * (childrenSeconds(postmaster) + processSeconds(postmaster, endedTime))
	c.seconds += sign * float64(time.Now().UnixMicro()) / 1e6
	return nil
}

// The places of a process's times in what the operating system says of it, behind the program's name: its own, and
// those of its children that have ended, each in the programs' code and in the system's.
const (
	ownTime   = 11
	endedTime = 13
)

// processSeconds returns the processor time at one of these places, 0 if it is not known.
func processSeconds(pid, at int) (seconds float64) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	for _, field := range strings.Fields(rest)[at : at+2] {
		ticks, _ := strconv.ParseFloat(field, 64)
		seconds += ticks * processorTick
	}
	return seconds
}

// compactionCosts are what compactions from the log have cost, and the next ones, by figure and round.
type compactionCosts [2][4][]float64

var compactionFigures = [4]struct {
	name, unit string
	goals      [2]string
}{
	{"worker's processor time", "ms", [2]string{"<= 25", "<= 12"}},
	{"PostgreSQL's processor time", "ms", [2]string{"<= 25", "<= 15"}},
	{"WAL", "KB", [2]string{"<= 400", ""}},
	{"messages compacted and packed", "MB/s", [2]string{">= 15", ""}},
}

func (f *compactionCosts) add(kind int, c *compactionCost) {
	for i, v := range []float64{
		1000 * c.worker / c.sessions, 1000 * c.postgres / c.sessions, c.wal / c.sessions / 1000,
		c.bytes / c.seconds / 1e6,
	} {
		f[kind][i] = append(f[kind][i], v)
	}
}

// addCompactions adds the rows of one checkout, or of this one beside another.
func (b *bench) addCompactions(sides []*compactionSide) {
	for kind, name := range []string{"compaction from the log", "the next compaction"} {
		for i, figure := range compactionFigures {
			ours := sides[0].costs[kind][i]
			if len(ours) == 0 {
				continue
			}
			r := row{Unit: figure.unit, Goal: figure.goals[kind]}
			r.Name = name + ", window of 32,000 tokens: " + figure.name
			if r.Value = median(ours); len(sides) > 1 {
				r = r.pairs(ours, sides[1].costs[kind][i])
			}
			b.add(r)
		}
	}
}
