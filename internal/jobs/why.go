package jobs

import (
	"fmt"
	"math"
	"time"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/compact/rule"
	"github.com/varve-dev/varve/internal/postgres"
)

// Decision says whether a compaction is done.
type Decision string

// The decisions.
const (
	Now       Decision = "now"
	Postponed Decision = "postponed" // it is not due, or waiting is cheaper
	Unchanged Decision = "unchanged" // it would change nothing
)

// Why says why a session is compacted now, or why not yet: the figures that decided.
type Why struct {
	Decision      Decision `json:"decision"`
	Cause         string   `json:"cause"`
	ContextTokens int64    `json:"context_tokens"` // what is sent to the model, overhead included
	TriggerTokens int64    `json:"trigger_tokens"`
	HardTokens    int64    `json:"hard_tokens"`
	Calibration   float64  `json:"calibration"` // the triggers are compared with context_tokens times this
	Cache         *Cache   `json:"cache,omitempty"`
	Economy       *Economy `json:"economy,omitempty"`

	reason string
}

// Cache is what is known of the provider's cache of the session's prefix.
type Cache struct {
	Warm       bool  `json:"warm"`
	AgeSeconds int64 `json:"age_seconds"` // since the last append
	TTLSeconds int64 `json:"ttl_seconds"`
}

// Economy is what a compaction gains and costs, in the price of an input token that no cache holds.
type Economy struct {
	Saved     int64   `json:"saved"`     // tokens that the view has fewer
	Rewritten int64   `json:"rewritten"` // tokens behind the kept prefix
	Gain      float64 `json:"gain"`
	Cost      float64 `json:"cost"`
	Horizon   int     `json:"horizon"` // requests
}

// Due reports whether the view has come to its trigger.
func (w *Why) Due() bool { return w.calibrated() >= w.TriggerTokens }

func (w *Why) calibrated() int64 { return int64(float64(w.ContextTokens) * w.Calibration) }

// Reason is Why in a sentence.
func (w *Why) Reason() string { return w.reason }

// automatic reports whether nobody asked for the compaction and the view is not at its hard limit: only then does it
// wait for anything.
func (w *Why) automatic() bool {
	return w.Cause != causeManual && w.Cause != causeRecompaction && w.Cause != causeHard && w.calibrated() < w.HardTokens
}

// CausePreview is the cause of a proposal that nobody carries out: it is weighed like one that a trigger asks for.
const CausePreview = "preview"

// The causes that do not wait.
const (
	causeManual       = "manual"
	causeRecompaction = "recompaction"
	causeHard         = "hard"
)

// situation is what is known before anything is planned.
func situation(s postgres.Snapshot, policy compact.Policy, cause string) Why {
	window, calibration := float64(s.WindowTokens), 1.0
	if policy.Tokens.Calibrate {
		calibration = s.Calibration
	}
	return Why{
		Decision: Now, Cause: cause, ContextTokens: s.ContextTokens + int64(s.OverheadTokens), Calibration: calibration,
		TriggerTokens: int64(math.Ceil(policy.Trigger * window)), HardTokens: int64(math.Ceil(policy.Hard * window)),
	}
}

// waitForCold postpones what has to wait until the provider's cache is cold, and says how long that takes: 0 if it need
// not wait.
func (w *Why) waitForCold(s postgres.Snapshot, policy compact.Policy) time.Duration {
	ttl := policy.Cache.TTLSeconds
	if ttl == 0 || !w.automatic() {
		return 0
	}
	w.Cache = cacheOf(s, ttl)
	if !w.Cache.Warm {
		return 0
	}
	wait := time.Duration(ttl)*time.Second - age(s)
	w.postpone("the provider's cache of the prefix was used %d s ago and is kept for %d s: the compaction waits until it is cold", w.Cache.AgeSeconds, ttl)
	return wait
}

func age(s postgres.Snapshot) time.Duration {
	return time.Duration(s.LastAppendAge * float64(time.Second))
}

func cacheOf(s postgres.Snapshot, ttl int) *Cache {
	since := age(s)
	return &Cache{Warm: since < time.Duration(ttl)*time.Second, AgeSeconds: int64(since.Seconds()), TTLSeconds: int64(ttl)}
}

func (w *Why) postpone(format string, args ...any) {
	w.Decision, w.reason = Postponed, fmt.Sprintf(format, args...)
}

func (w *Why) postponeNotDue() {
	w.postpone("%s, the trigger is %d: not due yet", w.size(), w.TriggerTokens)
}

// weigh decides whether what was planned is done now.
func (w *Why) weigh(p *Proposal) {
	policy := p.Input.Policy
	switch {
	case !p.Changed:
		w.Decision, w.reason = Unchanged, fmt.Sprintf("nothing in the view of %d tokens can be shortened under this policy", w.ContextTokens)
	case w.Cause == CausePreview && !w.Due():
		w.postponeNotDue()
	case w.Cause == CausePreview && w.waitForCold(p.Snapshot, policy) > 0:
	case w.automatic() && policy.Economy.Enabled && !w.pays(p):
		w.postpone("sending %d tokens fewer in %d requests gains %.0f, writing %d tokens behind the kept prefix anew costs %.0f: waiting is cheaper",
			w.Economy.Saved, w.Economy.Horizon, w.Economy.Gain, w.Economy.Rewritten, w.Economy.Cost)
	default:
		w.reason = fmt.Sprintf("%s; the compaction takes %d tokens away", w.occasion(), p.Saved())
	}
}

// pays weighs what the compaction saves against the part of the provider's cache that it breaks.
func (w *Why) pays(p *Proposal) bool {
	policy := p.Input.Policy.Economy
	e := &Economy{Saved: p.Saved(), Rewritten: p.Plan.After - p.Kept, Horizon: policy.Horizon}
	w.Cache = cacheOf(p.Snapshot, policy.TTLSeconds)
	worth, gain, cost := rule.Worth(e.Saved, e.Rewritten, w.Cache.Warm, e.Horizon, rule.Cache{Read: policy.CacheRead, Write: policy.CacheWrite})
	e.Gain, e.Cost = gain, cost
	w.Economy = e
	return worth
}

// occasion says what made the compaction due.
func (w *Why) occasion() string {
	switch {
	case w.Cause == causeManual:
		return "asked for: " + w.size()
	case w.Cause == causeRecompaction:
		return "part of a recompaction: " + w.size()
	case w.calibrated() >= w.HardTokens:
		return fmt.Sprintf("%s, the hard limit is %d", w.size(), w.HardTokens)
	}
	return fmt.Sprintf("%s, the trigger is %d", w.size(), w.TriggerTokens)
}

func (w *Why) size() string {
	if w.Calibration == 1 {
		return fmt.Sprintf("%d tokens are sent", w.ContextTokens)
	}
	return fmt.Sprintf("%d tokens are sent, %d by the caller's own count", w.ContextTokens, w.calibrated())
}
