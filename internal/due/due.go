// Package due decides when a session is compacted. It owns the whole rule, as a Go function and as the SQL expression
// of it, which a test on a database holds to each other.
//
// A session is due when its view, with the overhead, reaches the trigger: a share of its window, or a number of tokens.
// It is due as well when its view has too many bytes, for the tokens of pictures say nothing of their bytes, and when
// half as many messages with images as a request may have images came since the newest compaction.
// It is due at once, with nothing to wait for, when the view reaches the hard limit. An eager stage makes a session due
// before that, when the view is so large that the stage may have something to do. Below all of these, a session is
// compacted once nobody has used it for a while, from the share of its window that its policy names.
//
// A session that its newest compaction left above the first of these, its floor, must grow by Regrowth of its window
// before it is due again, or to its trigger or hard limit, unless that compaction has shown that it cannot be brought
// below it. A floor is a word about one log under one policy, by one version of the engine: it ends early when the
// policy protects less of what is there, because other messages came, and when any of the three changes. A session
// whose policy compacts only on request is never due.
//
// Start at Session.Due, which decides by tokens, and Session.DueWithin, which decides by tokens and time.
package due

import (
	_ "embed" // armed.sql
	"math"
	"strconv"
	"strings"
)

// Regrowth is the share of its window by which a session must grow from its floor before it is due again.
const Regrowth = 0.05

// Threshold names a number of tokens at which a session asks for a compaction.
type Threshold int16

// The thresholds. The one that is armed makes the next append that reaches it take the slow path. Idle is never armed
// by itself: it asks while the trigger is armed, unless it has asked already.
const (
	Idle    Threshold = -1
	Trigger Threshold = 1
	Hard    Threshold = 2 // armed once the trigger has asked for a compaction
	None    Threshold = 3 // armed once the hard limit has
)

// Next returns the threshold that is armed after this one was reached.
func (t Threshold) Next() Threshold { return t + 1 }

// Session is what the rule needs to know of a session and its policy.
type Session struct {
	Window      int64   // tokens, by the provider's count
	Calibration float64 // the provider's tokens for each estimated token; 1 if the policy does not calibrate
	Bytes       int64   // of the view
	Images      int64   // messages with images after the newest checkpoint, if one is appended
	MaxImages   int64   // of a request; 0 for any number
	Unseen      int64   // the provider's tokens beyond that, such as tools; 0 if the policy does not calibrate
	Rule
	Floor
	Armed Threshold // the next one that asks for a compaction

	IdleAsked bool  // Idle has asked for a compaction
	Seq       int64 // of the last message
	Version   int   // of the tenant's policy
	Engine    int   // version of the engine
}

// Floor is what the newest compaction left, and what it was found under. The zero Floor is none.
type Floor struct {
	Tokens  int64     // estimated; 0 for none
	Hides   Threshold // the highest one that the compaction could not bring the session below; 0: only what is lower
	Seq     int64     // the floor ends with this message; 0: only growth ends it
	Version int       // of the tenant's policy
	Engine  int       // version of the engine
}

// Rule is what a policy has to do with it.
type Rule struct {
	OnRequest     bool    // the session is never due
	Trigger       float64 // share of the window
	TriggerTokens int64   // the provider's tokens in place of Trigger; 0 for none
	TriggerBytes  int64   // bytes of the view that are a trigger, too; 0 for none
	Hard          float64 // share of the window
	Trim          float64 // share of the window at which the stage trim has something to do; 0: it is not eager
	Budget        Budget  // of the stage budget
	ColdAfter     int64   // seconds without an append for which a session at its trigger waits; 0: it does not wait
	IdleFrom      float64 // share of the window from which a session is compacted once it is idle; 0: it never is
	IdleAfter     int64   // seconds without an append after which it is idle
}

// Budget is what the tokens of all results may be, and so the least that a view has whose results are more. The zero
// Budget is of a stage that is not eager.
type Budget struct {
	Ratio    float64 // share of the window
	Min, Max int64   // estimated tokens
}

// EstimatedWindow returns the window in estimated tokens: smaller if they were counted to be more than was estimated.
func (s Session) EstimatedWindow() float64 { return float64(s.Window) / s.calibration() }

// EstimatedUnseen returns the unseen tokens in estimated ones.
func (s Session) EstimatedUnseen() float64 { return float64(s.Unseen) / s.calibration() }

func (s Session) calibration() float64 {
	if s.Calibration <= 0 {
		return 1
	}
	return s.Calibration
}

// TriggerAt returns how many of the provider's tokens are the trigger.
func (s Session) TriggerAt() float64 {
	if s.TriggerTokens > 0 {
		return float64(s.TriggerTokens)
	}
	return s.Trigger * float64(s.Window)
}

// estimated returns how many estimated tokens make a number of the provider's, together with the unseen ones. The
// conversions here and below keep the compiler from fusing the operations, so that the results are PostgreSQL's to the
// last bit.
func (s Session) estimated(counted float64) float64 {
	return float64(float64(counted)-float64(s.Unseen)) / s.calibration()
}

func (s Session) share(share float64) float64 { return s.estimated(share * float64(s.Window)) }

// first returns how many estimated tokens reach the trigger, or what makes an eager stage act if that is less.
func (s Session) first() float64 {
	first := s.estimated(s.TriggerAt())
	if s.Trim > 0 {
		first = min(first, s.share(s.Trim))
	}
	if s.Budget.Max > 0 {
		share := float64(s.Budget.Ratio*float64(s.Window)) / s.calibration()
		first = min(first, max(min(share, float64(s.Budget.Max)), float64(s.Budget.Min)))
	}
	return first
}

// floor returns the tokens of the floor, or 0 if it has ended.
func (s Session) floor() int64 {
	f := s.Floor
	if f.Version != s.Version || f.Engine != s.Engine || f.Seq > 0 && s.Seq >= f.Seq {
		return 0
	}
	return f.Tokens
}

// hidden reports whether the floor hides a threshold that is reached with this many estimated tokens.
func (s Session) hidden(threshold Threshold, reached float64) bool {
	floor := s.floor()
	return floor > 0 && s.Floor.Hides >= threshold && float64(floor) >= reached
}

// regrown returns how many estimated tokens are enough growth since the newest compaction.
func (s Session) regrown() float64 {
	return float64(s.Floor.Tokens) + float64(float64(Regrowth*float64(s.Window))/s.calibration())
}

// heavy reports whether the view has too many bytes or images.
func (s Session) heavy() bool {
	return s.TriggerBytes > 0 && s.Bytes >= s.TriggerBytes || s.MaxImages > 0 && s.Images >= max(1, s.MaxImages/2)
}

// reachTrigger returns how many estimated tokens reach the trigger, or the first of what comes before it. A view that
// is heavy has reached it; if the newest compaction left it so, once it has grown.
func (s Session) reachTrigger() float64 {
	reach := s.reachByTokens()
	switch {
	case !s.heavy():
		return reach
	case s.floor() == 0:
		return math.Inf(-1)
	}
	return min(reach, s.regrown())
}

// reachByTokens does what reachTrigger does, whatever the view's bytes are.
func (s Session) reachByTokens() float64 {
	trigger := s.estimated(s.TriggerAt())
	switch {
	case s.floor() == 0:
		return s.first()
	case s.hidden(Trigger, trigger):
		return s.regrown()
	}
	return min(trigger, max(s.first(), s.regrown()))
}

// reachHard returns how many estimated tokens reach the hard limit.
func (s Session) reachHard() float64 {
	hard := s.share(s.Hard)
	if s.hidden(Hard, hard) {
		return s.regrown()
	}
	return hard
}

// reachIdle returns how many estimated tokens make the session one to compact once it is idle.
func (s Session) reachIdle() float64 {
	from := s.share(s.IdleFrom)
	if s.floor() == 0 {
		return from
	}
	return max(from, s.regrown())
}

// Due returns the highest threshold that a session with this many estimated tokens, overhead included, reaches; it
// reports false if that threshold is not armed or none is reached. What has reached a threshold still waits: see Wait.
func (s Session) Due(tokens int64) (Threshold, bool) {
	switch {
	case s.Armed == None, s.OnRequest:
		return 0, false
	case float64(tokens) >= s.reachHard():
		return Hard, true
	case s.Armed != Trigger:
		return 0, false
	case float64(tokens) >= s.reachTrigger():
		return Trigger, true
	case s.IdleFrom > 0 && !s.IdleAsked && float64(tokens) >= s.reachIdle():
		return Idle, true
	}
	return 0, false
}

// Wait returns how many seconds without an append a session waits that has reached a threshold.
func (r *Rule) Wait(reached Threshold) int64 {
	switch reached {
	case Trigger:
		return r.ColdAfter
	case Idle:
		return r.IdleAfter
	}
	return 0
}

// DueWithin returns the threshold at which a session is compacted that has this many estimated tokens, overhead
// included, after an append that no other one follows for a number of seconds. after is how many seconds later than the
// append that is: 0 for at once. It reports false if the session is not compacted before the next append. The worker
// does the same, without knowing when the next append comes: a compaction that waits begins to wait anew with each.
func (s Session) DueWithin(tokens int64, seconds float64) (reached Threshold, after int64, isDue bool) {
	s.Armed, s.IdleAsked = Trigger, false
	if reached, isDue = s.Due(tokens); !isDue {
		return 0, 0, false
	}
	after = s.Wait(reached)
	return reached, after, after == 0 || float64(after) <= seconds
}

// FloorAfter returns the floor of a session that a compaction left with this many tokens, overhead included. What is
// above its trigger then has been shown not to shrink below it; what is not has only reached its target.
func (s Session) FloorAfter(tokens int64) Floor {
	limit := min(s.first(), s.share(s.Hard))
	if s.IdleFrom > 0 {
		limit = min(limit, s.share(s.IdleFrom))
	}
	if float64(tokens) < limit && !s.heavy() {
		return Floor{}
	}
	floor := Floor{Tokens: max(tokens, 1), Version: s.Version, Engine: s.Engine}
	if float64(tokens) >= min(s.estimated(s.TriggerAt()), s.share(s.Hard)) {
		floor.Hides = Hard
	}
	return floor
}

// FloorAfterPostponed does what FloorAfter does for a compaction that was postponed because it did not pay: that hides
// the trigger, and never the hard limit.
func (s Session) FloorAfterPostponed(tokens int64) Floor {
	floor := s.FloorAfter(tokens)
	floor.Hides = min(floor.Hides, Trigger)
	return floor
}

// PolicyColumns are the columns of policies that hold a Rule, in the order of Rule.Columns.
const PolicyColumns = `p.on_request, p.trigger_ratio, p.trigger_tokens, p.trigger_bytes, p.hard_ratio, p.trim_ratio,
	p.budget_ratio, p.budget_min, p.budget_max, extract(epoch FROM p.cache_ttl)::bigint, p.idle_ratio, p.idle_after`

// Columns returns where a row's PolicyColumns go.
func (r *Rule) Columns() []any {
	return []any{
		&r.OnRequest, &r.Trigger, &r.TriggerTokens, &r.TriggerBytes, &r.Hard, &r.Trim,
		&r.Budget.Ratio, &r.Budget.Min, &r.Budget.Max, &r.ColdAfter, &r.IdleFrom, &r.IdleAfter,
	}
}

//go:embed armed.sql
var armedSQL string

// ArmedSQL returns the number of estimated tokens, overhead included, at which the next append takes the slow path. It
// is an SQL expression over a row s of sessions and a row p of policies; calibration, unseen, seq, the last seq, and
// bytes, of the view, are the session's. engine is the version of the engine.
func ArmedSQL(calibration, unseen, seq, bytes string, engine int) string {
	return reachSQL(`s.armed_threshold`, `s.idle_asked`, calibration, unseen, seq, bytes, engine)
}

// TriggerSQL returns what ArmedSQL returns with the trigger armed and without what waits for an idle session.
func TriggerSQL(calibration, unseen, seq, bytes string, engine int) string {
	return reachSQL(`1`, `true`, calibration, unseen, seq, bytes, engine)
}

func reachSQL(armed, idleAsked, calibration, unseen, seq, bytes string, engine int) string {
	return strings.NewReplacer("{armed}", armed, "{idle_asked}", idleAsked, "{calibration}", calibration,
		"{unseen}", unseen, "{seq}", seq, "{bytes}", bytes, "{engine}", strconv.Itoa(engine),
		"{regrowth}", strconv.FormatFloat(Regrowth, 'g', -1, 64)).Replace(armedSQL)
}
