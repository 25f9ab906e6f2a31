package replay

import (
	"context"
	"math"
	"time"

	"github.com/varve-dev/varve/internal/compact/summary"
)

// Measure replays a session under a contender in a window of this many tokens. No model is asked: that of a policy that
// names one writes what Extract would, and its calls are part of the cost. It is safe to be called by several
// goroutines, also with the same session.
//
// Errors: that of a message that cannot be read, or of a compaction that failed.
func Measure(ctx context.Context, s *Session, by Contender, window int) (Outcome, error) {
	o := Outcome{Session: s.Name, Contender: by.Name, Window: window, Seed: s.seed, LogTokens: s.Tokens()}
	if err := s.prepare(); err != nil {
		return o, err
	}
	m := newMeter(s, by, window, &o)
	return o, m.run(ctx)
}

// newMeter returns what measures a prepared session.
func newMeter(s *Session, by Contender, window int, o *Outcome) *meter {
	m := &meter{life: newLife(s, by, window), out: o}
	if name := by.Policy.Summarise.Model; name != "" {
		asked := &model{name: name, price: by.price, kept: map[summary.Digest]summary.Answer{}, paid: m.summaryPaid}
		m.life.write = asked.write
	}
	m.all = meterFor(&o.All)
	m.share = meterFor(&o.Share)
	m.late = meterFor(&o.Late)
	m.life.after = m.compacted
	m.fates.facts = s.facts
	for i := range s.facts {
		m.fates.list = append(m.fates.list, Fate{Kind: s.facts[i].kind.name, OfResult: s.facts[i].kind.in >= inResult})
	}
	return m
}

// meter measures a life.
type meter struct {
	*life
	out   *Outcome
	all   sums
	share sums
	late  sums
	fates fates

	ends     []int     // by compaction: how many messages had been appended
	seen     int64     // tokens of the view at the last request
	answered time.Time // when that was answered
}

// sums are Sums under way.
type sums struct {
	*Sums
	readBacks map[[2]int32]bool // source and compaction
}

func meterFor(s *Sums) sums {
	s.makeMaps()
	return sums{s, map[[2]int32]bool{}}
}

func (m *meter) run(ctx context.Context) error {
	m.view.kept = math.MaxInt64
	next := 0
	for i := range m.messages {
		if err := ctx.Err(); err != nil {
			return err
		}
		if next < len(m.requests) && m.requests[next].message == i {
			m.request(&m.requests[next])
			next++
		}
		if err := m.append(ctx, i); err != nil {
			return err
		}
	}
	m.finish()
	return nil
}

// request measures the view that a request sends.
func (m *meter) request(r *request) {
	at, before := m.messages[r.message].at, m.messages[r.message].before
	m.out.Peak = max(m.out.Peak, m.view.tokens)
	cached := min(m.view.kept, m.seen)
	idle := at.Sub(m.answered)
	for _, to := range m.at(before) {
		m.count(to, cached, idle)
		for i := range r.calls {
			m.call(to, &r.calls[i])
		}
		m.requestContent(to, r)
	}
	m.seen, m.answered = m.view.tokens, at
	m.view.kept = math.MaxInt64
}

// at returns the sums that count what happens after that number of tokens of the log.
func (m *meter) at(before int64) []*sums {
	list := []*sums{&m.all}
	if float64(before) >= lateShare*float64(m.window) {
		list = append(list, &m.share)
	}
	if before >= lateTokens {
		list = append(list, &m.late)
	}
	return list
}

// summaryPaid counts the cost of a call of the model for summaries.
func (m *meter) summaryPaid(cost float64) {
	newest := &m.messages[min(m.view.tail+len(m.tail), len(m.messages))-1]
	for _, to := range m.at(newest.before) {
		to.Summaries++
		for _, c := range Cards() {
			to.Cost[c.Name] += cost
		}
	}
}

// count counts a request and its cost.
func (m *meter) count(to *sums, cached int64, idle time.Duration) {
	to.Requests++
	to.Tokens += m.view.tokens
	if m.view.tokens > int64(m.window) {
		to.Over++
	}
	for _, c := range Cards() {
		read := float64(cached)
		if m.seen == 0 || idle > time.Duration(c.TTLSeconds)*time.Second {
			read = 0
		}
		to.Cost[c.Name] += read*c.Read + (float64(m.view.tokens)-read)*c.Write
	}
}

// call counts a call.
func (m *meter) call(to *sums, c *call) {
	var whole, far, edit Ratio
	var by, farBy [kinds]Ratio
	for _, n := range c.needs {
		held := m.holds(n.found)
		whole.need(held)
		by[n.kind].need(held)
		if n.far {
			far.need(held)
			farBy[n.kind].need(held)
		}
		if n.far && n.own && c.edit {
			edit.need(held)
		}
		if !held {
			m.readBack(to, n)
		}
	}
	to.Calls.add(whole)
	to.Far.add(far)
	to.FarEdits.add(edit)
	for k := range kinds {
		addBy(to.CallsBy, k, by[k])
		addBy(to.FarBy, k, farBy[k])
	}
}

// need counts a string of a call: a call is whole if all of them are held.
func (r *Ratio) need(held bool) {
	if r.All == 0 {
		*r = Ratio{1, 1}
	}
	if !held {
		r.Kept = 0
	}
}

func addBy(by map[string]Ratio, k Kind, r Ratio) {
	sum := by[k.String()]
	sum.add(r)
	by[k.String()] = sum
}

// The cost of a read-back: one more request that reads the view, its output, and the source again in the view, read by
// some requests after it.
const (
	backOutput = 100 * 5
	backReads  = 10
)

// readBack counts that the agent has to read a source again, unless it did so since the last compaction.
func (m *meter) readBack(to *sums, n need) {
	key := [2]int32{n.last, int32(m.view.compactions)}
	if to.readBacks[key] {
		return
	}
	to.readBacks[key] = true
	to.ReadBacks++
	source := float64(m.session.Messages[n.last].Tokens)
	for _, c := range Cards() {
		to.BackCost[c.Name] += float64(m.view.tokens)*c.Read + backOutput + source*(c.Write+backReads*c.Read)
	}
}

// compacted counts what is left of the user's words and of the facts.
func (m *meter) compacted() {
	m.out.UserEach.add(m.wordsKept(m.view.tail+len(m.tail), false))
	m.compactedContent(m.view.tail + len(m.tail))
	m.follow(&m.fates)
}

// wordsKept returns how much of the user's words in the first n messages, or of the demands, the view has.
func (m *meter) wordsKept(n int, onlyDemands bool) (r Ratio) {
	for _, w := range m.words {
		if w.message >= n || onlyDemands && !w.demand {
			continue
		}
		size := float64(w.size)
		if onlyDemands {
			size = 1
		}
		r.All += size
		if m.holds(w.found) {
			r.Kept += size
		}
	}
	return r
}

func (m *meter) finish() {
	m.out.Facts = m.fates.list
	m.out.Compactions = m.view.compactions
	m.out.Prefix = Ratio{float64(m.view.outlived), float64(m.view.before)}
	m.out.UserEnd = m.wordsKept(len(m.messages), false)
	m.out.DemandsEnd = m.wordsKept(len(m.messages), true)
	for _, a := range m.answers() {
		m.out.Content[Answered].count(a.Held)
		m.out.Content[AnsweredByRef].count(a.Named)
	}
}
