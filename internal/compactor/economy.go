package compactor

import (
	"fmt"
	"math"

	"github.com/varve-dev/varve/internal/compact/rule"
	"github.com/varve-dev/varve/internal/due"
	"github.com/varve-dev/varve/internal/policy"
)

// Economy is what a compaction gains and costs, in the price of an input token that no cache holds.
type Economy struct {
	Saved     int64   `json:"saved"`     // tokens by which the view becomes smaller
	Rewritten int64   `json:"rewritten"` // tokens behind the kept prefix
	Gain      float64 `json:"gain"`
	Cost      float64 `json:"cost"`
	// part of the cost: what is expected to be read back afterwards
	ReadBack float64 `json:"read_back" schema:"optional"`
	Horizon  int     `json:"horizon"` // requests
}

// Offer is a compaction that could be done now.
type Offer struct {
	Saved    int64 // tokens that it takes from the view
	After    int64 // tokens of the view that it leaves
	Kept     int64 // tokens of the beginning of the view that keeps its bytes
	Warm     bool  // the provider's cache still has the view
	Requests int   // that are expected before the hard limit makes a compaction necessary; 0: not known
}

// Price weighs an offer by the price card of a policy, and reports whether the compaction pays. It is pure: with
// due.Session.DueWithin it is all that decides when a session is compacted.
//
// The gain is that of sending fewer tokens in the requests to come, which are at most those until the hard limit while
// the cache is warm: then the session is compacted in any case. The cost is that of writing what is behind the kept
// prefix anew, which a cold cache does not charge for, since the next request writes the whole view anyway; and that of
// what is read back, which is a request more that reads the view, and tokens that all later requests send: as many as
// the card says, but at most half of what the compaction takes.
func Price(card policy.Economy, o Offer) (e Economy, pays bool) {
	e = Economy{Saved: o.Saved, Rewritten: o.After - o.Kept, Horizon: card.Horizon}
	if o.Warm && o.Requests > 0 {
		e.Horizon = min(e.Horizon, o.Requests)
	}
	price := rule.Cache{Read: card.CacheRead, Write: card.CacheWrite}
	if _, e.Gain, e.Cost = rule.Worth(e.Saved, e.Rewritten, o.Warm, e.Horizon, price); e.Saved <= 0 {
		return e, false
	}
	if back := min(float64(card.ReadBackTokens), float64(e.Saved)/2); back > 0 {
		sent := card.CacheWrite + float64(e.Horizon-1)*card.CacheRead // of a token, now and in all requests to come
		e.ReadBack = card.CacheRead*float64(o.After) + sent*back
	}
	e.Cost += e.ReadBack
	return e, e.Gain >= e.Cost
}

// RequestsLeft returns how many requests are expected until a session with this many tokens in its view, overhead
// included, reaches its hard limit, at least 1, if messages came with this many tokens. A request and its answer are
// about two messages. It returns 0 if there is nothing to go by.
func RequestsLeft(s due.Session, tokens, messageTokens int64, messages int) int {
	if messageTokens <= 0 || messages <= 0 {
		return 0
	}
	each := 2 * float64(messageTokens) / float64(messages)
	left := s.Hard*s.EstimatedWindow() - s.EstimatedUnseen() - float64(tokens)
	return int(max(1, min(math.MaxInt32, left/each)))
}

// weighs reports whether the compaction is done only if it pays: always, if the session is idle below its trigger.
func (d *Decision) weighs(p *policy.Policy) bool { return p.Economy.Enabled || d.reached == due.Idle }

// postponeUnpaid postpones what does not pay. At its trigger, a session whose cache is warm waits until that is cold,
// if its policy compacts idle sessions: then the compaction breaks no cache.
func (d *Decision) postponeUnpaid(p *Proposal) {
	e := d.Economy
	sums := fmt.Sprintf("sending %d tokens fewer in %d requests gains the price of %.0f", e.Saved, e.Horizon, e.Gain)
	if d.reached == due.Idle {
		d.postpone("%s; the session is idle, but %s, and what is read back costs that of %.0f: it does not pay",
			d.size(), sums, e.Cost)
		return
	}
	if of := p.Input.Policy.DueRule(); d.Cache.Warm && of.IdleFrom > 0 {
		d.waitFor(p.Snapshot, of.IdleAfter)
	}
	d.postpone("%s, writing %d tokens behind the kept prefix anew costs that of %.0f: waiting is cheaper",
		sums, e.Rewritten, e.Cost)
}

// priced returns what the compaction gains and costs, as a part of a sentence. It is empty if the compaction was not
// priced or is done whatever it costs.
func (d *Decision) priced() string {
	e := d.Economy
	if e == nil || !d.automatic() {
		return ""
	}
	return fmt.Sprintf(", which gains the price of %.0f tokens in %d requests and costs that of %.0f",
		e.Gain, e.Horizon, e.Cost)
}

// price weighs the compaction of a session by the policy's price card, and reports whether it pays. What nobody has
// used for as long as makes the session idle is cold.
func (d *Decision) price(p *Proposal) (pays bool) {
	if p.alone || !p.Changed {
		return false
	}
	card, of := p.Input.Policy.Economy, p.Input.Policy.DueRule()
	cache := cacheOf(p.Snapshot, int64(card.TTLSeconds))
	if d.reached == due.Idle {
		cache = cacheOf(p.Snapshot, of.IdleAfter)
	}
	offer := Offer{Saved: p.Saved(), After: p.Plan.After, Kept: p.Kept, Warm: cache.Warm}
	if d.reached == due.Trigger {
		offer.Requests = requestsLeft(p)
	}
	priced, pays := Price(card, offer)
	d.Cache, d.Economy = cache, &priced
	return pays
}

// requestsLeft goes by the messages that were taken in.
func requestsLeft(p *Proposal) int {
	of := ruleOf(p.Snapshot, &p.Input.Policy)
	context := p.Snapshot.ContextTokens + int64(p.Snapshot.OverheadTokens)
	return RequestsLeft(of, context, p.taken.tokens, p.taken.messages)
}
