package compactor

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/due"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// Verdict is what a decision comes to.
type Verdict string

// The verdicts.
const (
	Now       Verdict = "now"
	Postponed Verdict = "postponed" // it is not due, or waiting is cheaper
	Unchanged Verdict = "unchanged" // it would change nothing
)

// Decision is why a session is compacted now, or why not yet: the figures that decided.
type Decision struct {
	Verdict Verdict `json:"decision"`
	Cause   string  `json:"cause"`
	// what is sent to the model, overhead included
	ContextTokens int64 `json:"context_tokens" schema:"Tokens"`
	TriggerTokens int64 `json:"trigger_tokens" schema:"Tokens"`
	HardTokens    int64 `json:"hard_tokens" schema:"Tokens"`
	// `context_tokens` times `calibration` plus `unseen_tokens` is compared with the other two
	Calibration float64 `json:"calibration"`
	// plus this: what the caller's usage counts beyond the estimate
	UnseenTokens int64 `json:"unseen_tokens"`
	// the state of the provider's prompt cache, if the policy considers it
	Cache *Cache `json:"cache,omitempty"`
	// what the compaction saves and costs, in units of the price of an uncached input token, if the policy
	// considers it
	Economy *Economy `json:"economy,omitempty"`

	reached due.Threshold // 0 for none
	early   bool          // only an eager stage has reached its own trigger
	heavy   string        // what the view has too much of, if only that has

	wait   time.Duration // until it is decided again, if nobody uses the session; 0 if that is not known
	reason string
}

// Cache is what is known of the provider's cache of the session's prefix.
type Cache struct {
	Warm       bool  `json:"warm"`
	AgeSeconds int64 `json:"age_seconds"` // since the last append
	TTLSeconds int64 `json:"ttl_seconds"`
}

// Due reports whether the view has reached its trigger.
func (d *Decision) Due() bool { return d.reached >= due.Trigger }

// Reason returns the decision in a sentence.
func (d *Decision) Reason() string { return d.reason }

// automatic reports whether nobody asked for the compaction and the view is below its hard limit: only then does it
// wait for anything.
func (d *Decision) automatic() bool {
	switch d.Cause {
	case causeManual, causeRecompaction, causeHard, causeDamage, causeSummary:
		return false
	}
	return d.reached != due.Hard
}

// CausePreview is the cause of a proposal that is not carried out. It is weighed like one that a trigger asks for.
const CausePreview = "preview"

// causeThreshold is the cause of a run that the trigger asked for.
const causeThreshold = "threshold"

// The causes that decide otherwise than a trigger. Only an idle one waits for anything.
const (
	causeIdle         = "idle"
	causeManual       = "manual"
	causeRecompaction = "recompaction"
	causeHard         = "hard"
	causeDamage       = "damage"  // of the newest checkpoint
	causeSummary      = "summary" // a model has answered, or has failed
)

// ruleOf returns the rule by which the snapshot's session is due under a policy, whatever it grew from.
func ruleOf(s postgres.Snapshot, p *policy.Policy) due.Session {
	rule := due.Session{
		Window: int64(s.WindowTokens), Calibration: 1, Bytes: s.ViewBytes, Rule: p.DueRule(), Armed: due.Trigger,
		Images: s.Images, MaxImages: int64(provider.MaxImages(s.Format, s.Model)),
	}
	if p.Tokens.Calibrate {
		rule.Calibration, rule.Unseen = s.Calibration, s.Unseen
	}
	return rule
}

// newDecision returns what is known before anything is planned.
func newDecision(s postgres.Snapshot, p *policy.Policy, cause string) Decision {
	rule := ruleOf(s, p)
	d := Decision{
		Verdict: Now, Cause: cause, Calibration: rule.Calibration, UnseenTokens: rule.Unseen,
		ContextTokens: s.ContextTokens + int64(s.OverheadTokens),
		TriggerTokens: int64(math.Ceil(rule.TriggerAt())),
		HardTokens:    int64(math.Ceil(p.Hard * float64(s.WindowTokens))),
	}
	if s.WindowTokens > 0 {
		d.reached, _ = rule.Due(d.ContextTokens)
		rule.TriggerBytes, rule.MaxImages = 0, 0
		reached, _ := rule.Due(d.ContextTokens)
		if reached != d.reached {
			d.heavy = heavyReason(s, ruleOf(s, p))
		}
		rule.Trim, rule.Budget = 0, due.Budget{}
		reached, _ = rule.Due(d.ContextTokens)
		d.early = reached != d.reached
	}
	return d
}

func heavyReason(s postgres.Snapshot, rule due.Session) string {
	if rule.TriggerBytes > 0 && rule.Bytes >= rule.TriggerBytes {
		return fmt.Sprintf("%d bytes, the trigger is %d bytes", s.ViewBytes, rule.TriggerBytes)
	}
	return fmt.Sprintf("%d new messages with images, a request has at most %d images", s.Images, rule.MaxImages)
}

// waitForCold postpones what must wait until nobody has used the session for a while, so that the provider's cache is
// cold, and reports whether it must.
func (d *Decision) waitForCold(s postgres.Snapshot, policy *policy.Policy) bool {
	of := policy.DueRule()
	ttl := of.Wait(d.reached)
	if ttl == 0 || !d.automatic() {
		return false
	}
	if d.Cache = cacheOf(s, ttl); !d.Cache.Warm {
		return false
	}
	d.waitFor(s, ttl)
	if d.reached == due.Idle {
		d.postpone("the session was used %d s ago and is idle after %d s: the compaction waits until it is",
			d.Cache.AgeSeconds, ttl)
		return true
	}
	d.postpone("the provider's cache of the prefix was used %d s ago and is kept for %d s: "+
		"the compaction waits until it is cold", d.Cache.AgeSeconds, ttl)
	return true
}

// waitFor sets how long it takes until nobody has used the session for a number of seconds.
func (d *Decision) waitFor(s postgres.Snapshot, seconds int64) {
	d.wait = max(0, time.Duration(seconds)*time.Second-age(s))
}

// How often it is looked whether a turn has ended, and after how long one that nobody continues is given up.
const (
	turnWait     = 15 * time.Second
	turnPatience = time.Hour
)

// mayWaitForTurn reports whether a compaction may wait for the end of a turn whose thinking its model would refuse
// afterwards.
func (d *Decision) mayWaitForTurn(s postgres.Snapshot) bool {
	return d.automatic() && age(s) < turnPatience
}

// waitForTurn postpones what would take the thinking of a turn from it that still calls tools.
func (d *Decision) waitForTurn(s postgres.Snapshot) {
	d.wait = turnWait
	d.postpone("%s binds its thinking to all that stands before it, and a turn that calls tools is not over: "+
		"the compaction waits until it is, or until the hard limit of %d tokens", s.Model, d.HardTokens)
}

func age(s postgres.Snapshot) time.Duration {
	return time.Duration(s.LastAppendAge * float64(time.Second))
}

func cacheOf(s postgres.Snapshot, ttl int64) *Cache {
	since := age(s)
	warm := since < time.Duration(ttl)*time.Second
	return &Cache{Warm: warm, AgeSeconds: int64(since.Seconds()), TTLSeconds: ttl}
}

func (d *Decision) postpone(format string, args ...any) {
	d.Verdict = Postponed
	d.reason = fmt.Sprintf(format, args...)
}

// onRequest reports whether the policy leaves it to the caller when a session is compacted, who has not asked.
func (d *Decision) onRequest(p *policy.Policy) bool {
	switch d.Cause {
	case causeManual, causeRecompaction, causeDamage, causeSummary:
		return false
	}
	return !p.Auto
}

func (d *Decision) postponeNotDue(p *policy.Policy) {
	if d.onRequest(p) {
		d.postpone("%s: the policy compacts only on request (auto is false)", d.size())
		return
	}
	if d.reached == due.Idle {
		d.postpone("%s, the trigger is %d: not due before nobody has used the session for %d s",
			d.size(), d.TriggerTokens, p.DueRule().IdleAfter)
		return
	}
	d.postpone("%s, the trigger is %d: not due yet", d.size(), d.TriggerTokens)
}

// weigh decides whether what was planned is done now.
func (d *Decision) weigh(p *Proposal) {
	policy := &p.Input.Policy
	pays := d.price(p)
	switch {
	case p.forgets():
		d.reason = d.size() + "; the summaries are made anew, from the log"
	case !policy.Enabled:
		d.Verdict = Unchanged
		d.reason = "the policy switches compaction off (enabled is false)"
	case !p.Changed && d.Cause == causeSummary:
		d.Verdict = Unchanged
		d.reason = p.newest() + ": it changes nothing, for it does not fit or nothing waits for it any more"
	case !p.Changed:
		d.Verdict = Unchanged
		d.reason = d.whyUnchanged(p)
	case d.Cause == CausePreview && !d.Due(), d.Cause == causeIdle && d.reached == 0, d.onRequest(policy):
		d.postponeNotDue(policy)
	case d.Cause == CausePreview && d.waitForCold(p.Snapshot, policy):
	case d.automatic() && d.weighs(policy) && !pays:
		d.postponeUnpaid(p)
	case p.Saved() == 0 && p.model() != "":
		d.reason = fmt.Sprintf("%s; the messages stay until %s has written their summary", d.occasion(p), p.model())
	default:
		d.reason = fmt.Sprintf("%s; the compaction takes %d tokens away%s", d.occasion(p), p.Saved(), d.priced())
	}
}

// whyUnchanged returns why a compaction changes nothing: it waits for a model, no stage had to act, or what those that
// did may act on cannot be shortened.
func (d *Decision) whyUnchanged(p *Proposal) string {
	entered := func(s compact.StageReport) bool { return s.Entered }
	switch {
	case p.model() != "":
		return fmt.Sprintf("%s; the messages stay until %s has written their summary", d.size(), p.model())
	case !slices.ContainsFunc(p.Plan.Stages, entered):
		target := int64(p.Input.Policy.TargetOf(float64(p.Input.WindowTokens)))
		return fmt.Sprintf("%s, the target is %d: no stage has to act", d.size(), target)
	}
	return fmt.Sprintf("nothing in the view of %d tokens can be shortened under this policy", d.ContextTokens)
}

// occasion returns what made the compaction due.
func (d *Decision) occasion(p *Proposal) string {
	switch {
	case d.Cause == causeSummary:
		return p.newest() + ": " + d.size()
	case d.Cause == causeManual:
		return "asked for: " + d.size()
	case d.Cause == causeRecompaction:
		return "part of a recompaction: " + d.size()
	case d.Cause == causeDamage:
		return "the newest checkpoint is damaged: " + d.size()
	case d.reached == due.Hard:
		return fmt.Sprintf("%s, the hard limit is %d", d.size(), d.HardTokens)
	}
	if d.reached == due.Idle && d.Cause == causeIdle {
		return fmt.Sprintf("%s, the trigger is %d; nobody has used the session for %d s, its cache is cold after %d s",
			d.size(), d.TriggerTokens, d.Cache.AgeSeconds, d.Cache.TTLSeconds)
	}
	if d.heavy != "" {
		return d.size() + " in a view of " + d.heavy
	}
	if d.early {
		return fmt.Sprintf("%s, below the trigger of %d: a stage that is eager acts", d.size(), d.TriggerTokens)
	}
	return fmt.Sprintf("%s, the trigger is %d", d.size(), d.TriggerTokens)
}

func (d *Decision) size() string {
	if d.Calibration == 1 && d.UnseenTokens == 0 {
		return fmt.Sprintf("%d tokens are sent", d.ContextTokens)
	}
	counted := int64(float64(d.ContextTokens)*d.Calibration) + d.UnseenTokens
	return fmt.Sprintf("%d tokens are sent, %d by the caller's own count", d.ContextTokens, counted)
}
