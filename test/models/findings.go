package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/varve-dev/varve/internal/llm/fake"
)

// What happens while a slow model works.
type kind int

const (
	appended kind = iota
	viewed
	compacted
	kinds
)

// event is something that happened to a tenant that does not wait for the slow model.
type event struct {
	at   time.Time
	kind kind
}

// growth is a view that was larger than that of an earlier checkpoint of the same messages.
type growth struct {
	of            *conversation
	lastSeq       int64
	before, after weight
}

// ledger is what a tenant has spent, as the database and the provider say.
type ledger struct {
	tenant   string
	calls    int64
	allowed  int64 // that it may make
	answered int64 // with status 200
	tokens   int64
	counted  int64 // tokens by the provider
	cost     float64
}

// findings are what a run counted, and what was wrong.
type findings struct {
	mu        sync.Mutex
	anomalies []string
	events    []event
	growths   []growth
	kills     []time.Time
	asked     int           // previews that asked models
	longest   time.Duration // that a transaction was idle
	after     string        // its last statement

	// Those below are set in the end.
	messages, inputs, paid, twice int // twice: calls for what was paid already
	opened, closed, slowCalls     int
	met                           map[fake.Fault]int
	summaries                     map[string]int
	ledgers                       []ledger
	meanwhile                     [kinds]int
}

func newFindings() *findings {
	return &findings{met: map[fake.Fault]int{}, summaries: map[string]int{}}
}

// add records something that must not be.
func (f *findings) add(kind, format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	const kept = 40
	if len(f.anomalies) < kept {
		f.anomalies = append(f.anomalies, kind+": "+fmt.Sprintf(format, args...))
	}
}

// happened records an event of a tenant.
func (f *findings) happened(tenant string, k kind) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if tenant != slow {
		f.events = append(f.events, event{time.Now(), k})
	}
}

// between returns how many events of a kind there were in a time.
func (f *findings) between(from, to time.Time, k kind) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.events {
		if e.kind == k && e.at.After(from) && e.at.Before(to) {
			n++
		}
	}
	return n
}

func (f *findings) larger(g growth) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.growths = append(f.growths, g)
}

func (f *findings) killed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kills = append(f.kills, time.Now())
}

// preview counts a preview that has asked models.
func (f *findings) preview() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
}

// late is how long a worker may take to store an answer that it has got, and the provider to begin with a request that
// a worker sent before it was killed.
const late = 2 * time.Second

// killedDuring reports whether a worker was killed that can have made a call and not stored its answer.
func (f *findings) killedDuring(c *fake.CallRecord) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.kills, func(at time.Time) bool {
		return at.After(c.Began.Add(-late)) && at.Before(c.Ended.Add(late))
	})
}

func (f *findings) deaths() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.kills)
}

// idle remembers the transaction that was idle for longest.
func (f *findings) idle(d time.Duration, query string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if d > f.longest {
		f.longest, f.after = d, query
	}
}

// print writes what was counted, and what was wrong.
func (f *findings) print(out io.Writer) {
	count := func(k kind) (n int) {
		for _, e := range f.events {
			if e.kind == k {
				n++
			}
		}
		return n
	}
	fmt.Fprintf(out, "\n%d appends and %d views of tenants whose models are not slow; %d messages compared\n",
		count(appended), count(viewed), f.messages)
	fmt.Fprintf(out, "summaries: %v; %d previews asked models; %d workers killed\n", f.summaries, f.asked, len(f.kills))
	fmt.Fprintf(out, "inputs: %d, of which %d paid, %d times again\n", f.inputs, f.paid, f.twice)
	fmt.Fprint(out, "calls:")
	for _, fault := range slices.Sorted(maps.Keys(f.met)) {
		name := string(fault)
		if name == "" {
			name = "good"
		}
		fmt.Fprintf(out, " %s %d", name, f.met[fault])
	}
	fmt.Fprintf(out, "\n\n%-12s %8s %8s %9s %10s %10s %8s\n", "tenant", "calls", "of", "answered", "tokens", "provider",
		"cost")
	for _, l := range f.ledgers {
		fmt.Fprintf(out, "%-12s %8d %8d %9d %10d %10d %8.4f\n", l.tenant, l.calls, l.allowed, l.answered, l.tokens,
			l.counted, l.cost)
	}
	fmt.Fprintf(out, "\nbreakers opened %d times and closed %d times\nlongest idle transaction %v\n", f.opened,
		f.closed, f.longest.Round(time.Millisecond))
	fmt.Fprintf(out, "during %d answers of the slow model: %d appends, %d views, %d compactions of other tenants\n",
		f.slowCalls, f.meanwhile[appended], f.meanwhile[viewed], f.meanwhile[compacted])
	if len(f.anomalies) == 0 {
		fmt.Fprintln(out, "0 invalid, 0 grown, 0 lost, no budget exceeded")
	}
	for _, text := range f.anomalies {
		fmt.Fprintln(out, text)
	}
}
