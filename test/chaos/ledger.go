package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// outcome is what is known of an append.
type outcome int

const (
	unknown outcome = iota // no answer came: it may have happened
	acked                  // it happened
	refused                // it did not happen
)

// attempt is one append, which may have been sent several times.
type attempt struct {
	id       string
	writer   int
	messages []json.RawMessage
	outcome  outcome
	first    int64 // the seq of its first message, if it is acked
	began    int64 // how many appends of its writer came before
}

// conversation is a session, and all that was asked of it and answered about it.
type conversation struct {
	id, format, key string // the key of its tenant

	mu       sync.Mutex
	attempts []*attempt
	bySeq    map[int64]json.RawMessage // of what is acked
	lastAck  int64
	seen     shown               // the newest view that was read to its end
	tags     map[string][32]byte // the sum of what was served under an ETag
	refs     map[string]bool     // that were in any view

	extras // of a user's session
}

// shown is what a view says of its age.
type shown struct{ checkpoint, lastSeq int64 }

func (c *conversation) add(a *attempt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attempts = append(c.attempts, a)
}

// settle records the outcome of an append.
func (c *conversation) settle(a *attempt, o outcome, first int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a.outcome, a.first = o, first
	if o != acked {
		return
	}
	for i, m := range a.messages {
		c.bySeq[first+int64(i)] = m
	}
	c.lastAck = max(c.lastAck, first+int64(len(a.messages))-1)
}

// known returns what must be in every view that is read from now on.
func (c *conversation) known() (lastAck int64, seen shown) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lastAck, c.seen
}

// findings are what a run counted, and what was wrong.
type findings struct {
	mu        sync.Mutex
	anomalies []string
	kinds     map[string]int

	appends, unknowns, replays, requests, views, unchanged, refs, failures atomic.Int64

	faults   int
	messages int64
	table    []recovery
	steps    map[string]int // of users
	events   int            // of their sessions, all delivered

	something context.Context // ends with the first anomaly
	one       context.CancelFunc

	lastAck time.Time
	gap     time.Duration // the longest time between two acknowledged appends since the last reset
}

func newFindings() *findings {
	f := &findings{kinds: map[string]int{}, steps: map[string]int{}}
	f.something, f.one = context.WithCancel(context.Background())
	return f
}

// acked records that an append was acknowledged now.
func (f *findings) acked() {
	f.appends.Add(1)
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if !f.lastAck.IsZero() {
		f.gap = max(f.gap, now.Sub(f.lastAck))
	}
	f.lastAck = now
}

// stepped counts a step of a user.
func (f *findings) stepped(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.steps[name]++
}

// resetGap begins to measure the longest gap anew, and returns what it was.
func (f *findings) resetGap() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	gap := f.gap
	f.gap = 0
	return gap
}

// kept bounds how many anomalies of a kind are kept with their text.
const kept = 20

// add records something that must not be.
func (f *findings) add(kind, format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.one()
	f.kinds[kind]++
	if f.kinds[kind] <= kept {
		f.anomalies = append(f.anomalies, kind+": "+fmt.Sprintf(format, args...))
	}
}

func (f *findings) print(out io.Writer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.table) > 0 {
		fmt.Fprintf(out, "\n%-48s %8s %8s %8s %10s\n", "fault (seconds)", "lasted", "gap", "append", "compaction")
		for _, r := range f.table {
			fmt.Fprintf(out, "%-48s %8.1f %8.1f %8.1f %10.1f\n", r.name, r.lasted.Seconds(), r.gap.Seconds(),
				r.appended.Seconds(), r.compacted.Seconds())
		}
	}
	fmt.Fprintf(out, "\n%d faults; %d requests, %d appends acknowledged, %d answers lost, %d replayed, %d 5xx\n"+
		"%d messages, %d views checked (%d not modified), %d refs read back\n", f.faults, f.requests.Load(),
		f.appends.Load(), f.unknowns.Load(), f.replays.Load(), f.failures.Load(), f.messages, f.views.Load(),
		f.unchanged.Load(), f.refs.Load())
	if f.events > 0 {
		fmt.Fprintf(out, "%d events of users' sessions, all delivered\n", f.events)
	}
	for _, s := range steps {
		if n := f.steps[s.name]; n > 0 {
			fmt.Fprintf(out, "%6d times: %s\n", n, s.name)
		}
	}
	if len(f.anomalies) == 0 {
		fmt.Fprintln(out, "0 lost, 0 doubled, 0 reordered, 0 invalid")
		return
	}
	for _, text := range f.anomalies {
		fmt.Fprintln(out, text)
	}
	kinds := make([]string, 0, len(f.kinds))
	for kind, n := range f.kinds {
		kinds = append(kinds, fmt.Sprintf("%s %d", kind, n))
	}
	slices.Sort(kinds)
	fmt.Fprintln(out, "ANOMALIES:", kinds)
}
