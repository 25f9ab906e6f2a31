package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
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
	compactionRounds  = 6                      // of next compactions
)

// fedSession is a session that a recorded conversation is fed into.
type fedSession struct {
	*replay.Session
	id    string
	fed   int     // messages that are in its log
	bytes float64 // of those that were appended since its last compaction
}

// measureCompactions measures compactions from the log, then the next ones.
func measureCompactions(ctx context.Context, b *bench) error {
	recorded, _, err := folder.Read(ctx, os.Getenv("VARVE_DATA"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var whole, stepwise []*fedSession
	for i, r := range recorded {
		if r.Reaches(storageWindow) {
			whole = append(whole, &fedSession{Session: r, id: fmt.Sprintf("whole-%d", i)})
			stepwise = append(stepwise, &fedSession{Session: r, id: fmt.Sprintf("stepwise-%d", i)})
		}
	}
	if len(whole) == 0 {
		b.note("compaction: not measured, because there are no recorded conversations that are long enough")
		return nil
	}
	s, err := b.openSite(ctx, "compaction", ".")
	if err != nil {
		return err
	}
	var first, next compactionCost
	for _, f := range whole {
		if err := s.feed(f, 1<<60); err != nil {
			return err
		}
	}
	if err := s.compactAll(ctx, whole, &first); err != nil {
		return err
	}
	for round := 0; round <= compactionRounds && ctx.Err() == nil; round++ {
		var due []*fedSession
		for _, f := range stepwise {
			if err := s.feed(f, compactionTrigger); err != nil {
				return err
			}
			if f.fed < len(f.Messages) {
				due = append(due, f)
			}
		}
		if round == 0 {
			err = s.compactAll(ctx, due, &compactionCost{}) // from the log, of what is just over the trigger
		} else {
			err = s.compactAll(ctx, due, &next)
		}
		if err != nil {
			return err
		}
	}
	first.add(b, "compaction from the log, window of 32,000 tokens", []string{"<= 25", "<= 25", "<= 400", ">= 15"})
	next.add(b, "the next compaction, window of 32,000 tokens", []string{"<= 12", "<= 15", "", ""})
	return ctx.Err()
}

// feed makes a session, which is compacted on request only, and appends the next messages until its context has this
// many tokens.
func (s *site) feed(f *fedSession, tokens int64) error {
	c := s.newClient()
	if f.fed == 0 {
		body := fmt.Appendf(nil, `{"window_tokens": %d, "policy": {"auto": false}}`, storageWindow)
		if err := c.send("PUT", sessionPath(f.id), body, http.StatusCreated); err != nil {
			return err
		}
	}
	var state sessionState
	if err := c.get(sessionPath(f.id), &state); err != nil {
		return err
	}
	from := f.fed
	for at := int64(state.ContextTokens); f.fed < len(f.Messages) && at < tokens; f.fed++ {
		at += int64(f.Messages[f.fed].Tokens)
	}
	for ; from < f.fed; from = min(from+batchMessages, f.fed) {
		var list [][]byte
		for i := from; i < min(from+batchMessages, f.fed); i++ {
			list = append(list, f.Messages[i].Body)
			f.bytes += float64(len(f.Messages[i].Body))
		}
		body := fmt.Appendf(nil, `{"format":%q,"messages":[%s]}`, f.Format, joined(list))
		if err := c.send("POST", sessionPath(f.id)+"/messages", body, http.StatusCreated); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return nil
}

// compactionCost is what compactions have cost together.
type compactionCost struct {
	sessions, bytes, seconds float64
	worker, postgres, wal    float64 // seconds of processor time, and bytes
}

// compactAll compacts sessions, waits until their messages are packed, and adds what that cost.
func (s *site) compactAll(ctx context.Context, list []*fedSession, cost *compactionCost) error {
	if err := s.calm(ctx); err != nil {
		return err
	}
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

// calm waits until nothing of what follows appends and compactions writes any more.
func (s *site) calm(ctx context.Context) error {
	for last := -1.0; ; {
		if err := s.rest(ctx); err != nil {
			return err
		}
		wal, _, err := s.written(ctx)
		if err != nil || wal-last < 16<<10 {
			return err
		}
		last = wal
		select {
		case <-time.After(3 * time.Second):
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

// add adds the rows of a compaction; goals are those of the worker, of PostgreSQL and of the WAL.
func (c *compactionCost) add(b *bench, name string, goals []string) {
	if c.sessions == 0 {
		return
	}
	b.add(
		row{Name: name + ": worker's processor time", Unit: "ms", Value: 1000 * c.worker / c.sessions, Goal: goals[0]},
		row{Name: name + ": PostgreSQL's processor time", Unit: "ms", Value: 1000 * c.postgres / c.sessions,
			Goal: goals[1]},
		row{Name: name + ": WAL", Unit: "KB", Value: c.wal / 1000 / c.sessions, Goal: goals[2]},
		row{Name: name + ": worker and PostgreSQL on one machine", Unit: "MB/s", Value: c.bytes / 1e6 / c.seconds,
			Goal: goals[3]},
	)
}
