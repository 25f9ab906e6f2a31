// Package due decides when a session is compacted. It owns the whole rule, as a Go function and as the SQL expression
// of it, which a test on a database holds to each other.
//
// A session is due when its view, with the overhead, reaches the trigger: a share of its window, or a number of tokens.
// It is due at once, with nothing to wait for, when the view reaches the hard limit. An eager stage makes a session due
// before that, when the view is so large that the stage may have something to do. A session that its newest compaction
// left above the first of these must grow by Regrowth of its window before it is due again, or to its trigger. A
// session whose policy compacts only on request is never due.
//
// Start at Session.Due.
package due

import "strconv"

// Regrowth is the share of its window by which a session must grow from its floor before it is due again.
const Regrowth = 0.05

// Threshold names a number of tokens at which a session asks for a compaction.
type Threshold int16

// The thresholds. The one that is armed makes the next append that reaches it take the slow path.
const (
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
	Unseen      int64   // the provider's tokens beyond that, such as tools; 0 if the policy does not calibrate
	Rule
	Floor int64     // estimated tokens that the newest compaction left; 0 if the session is due above them
	Armed Threshold // the next one that asks for a compaction
}

// Rule is what a policy has to do with it.
type Rule struct {
	OnRequest     bool    // the session is never due
	Trigger       float64 // share of the window
	TriggerTokens int64   // the provider's tokens in place of Trigger; 0 for none
	Hard          float64 // share of the window
	Trim          float64 // share of the window at which the stage trim has something to do; 0: it is not eager
	Budget        Budget  // of the stage budget
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

// regrown returns how many estimated tokens are enough growth since the newest compaction.
func (s Session) regrown() float64 {
	return float64(s.Floor) + float64(float64(Regrowth*float64(s.Window))/s.calibration())
}

// reachTrigger returns how many estimated tokens reach the trigger, or the first of what comes before it.
func (s Session) reachTrigger() float64 {
	trigger := s.estimated(s.TriggerAt())
	switch {
	case s.Floor == 0:
		return s.first()
	case float64(s.Floor) >= trigger:
		return s.regrown()
	}
	return min(trigger, max(s.first(), s.regrown()))
}

// reachHard returns how many estimated tokens reach the hard limit.
func (s Session) reachHard() float64 {
	if s.Floor == 0 {
		return s.share(s.Hard)
	}
	return max(s.share(s.Hard), s.regrown())
}

// Due returns the highest threshold that a session with this many estimated tokens, overhead included, reaches; it
// reports false if that threshold is not armed or none is reached.
func (s Session) Due(tokens int64) (Threshold, bool) {
	switch {
	case s.Armed == None, s.OnRequest:
		return 0, false
	case float64(tokens) >= s.reachHard():
		return Hard, true
	case s.Armed == Trigger && float64(tokens) >= s.reachTrigger():
		return Trigger, true
	}
	return 0, false
}

// FloorAfter returns the floor of a session that a compaction left with this many tokens, overhead included.
func (s Session) FloorAfter(tokens int64) int64 {
	if float64(tokens) < min(s.first(), s.share(s.Hard)) {
		return 0
	}
	return max(tokens, 1)
}

// FloorAfterPostponed does what FloorAfter does for a compaction that was postponed because it did not pay. The floor
// stays low enough for the session to be due when it reaches its hard limit.
func (s Session) FloorAfterPostponed(tokens int64) int64 {
	return min(s.FloorAfter(tokens), int64(s.share(s.Hard-Regrowth)))
}

// PolicyColumns are the columns of policies that hold a Rule, in the order of Rule.Columns.
const PolicyColumns = `p.on_request, p.trigger_ratio, p.trigger_tokens, p.hard_ratio, p.trim_ratio, p.budget_ratio,
	p.budget_min, p.budget_max`

// Columns returns where a row's PolicyColumns go.
func (r *Rule) Columns() []any {
	return []any{
		&r.OnRequest, &r.Trigger, &r.TriggerTokens, &r.Hard, &r.Trim, &r.Budget.Ratio, &r.Budget.Min, &r.Budget.Max,
	}
}

// ArmedSQL returns the number of estimated tokens, overhead included, at which the next append takes the slow path. It
// is an SQL expression over a row s of sessions and a row p of policies; calibration and unseen are the session's.
func ArmedSQL(calibration, unseen string) string {
	e := expression{calibration: calibration, unseen: unseen}
	return `
	CASE
	WHEN p.on_request THEN 'infinity'::float8
	WHEN s.armed_threshold = ` + number(Trigger) + ` THEN least(` + e.reachTrigger() + `, ` + e.reachHard() + `)
	WHEN s.armed_threshold = ` + number(Hard) + ` THEN ` + e.reachHard() + `
	ELSE 'infinity'::float8
	END`
}

// TriggerSQL returns what ArmedSQL returns with the trigger armed.
func TriggerSQL(calibration, unseen string) string {
	e := expression{calibration: calibration, unseen: unseen}
	return `
	CASE
	WHEN p.on_request THEN 'infinity'::float8
	ELSE least(` + e.reachTrigger() + `, ` + e.reachHard() + `)
	END`
}

// expression writes the methods of Session as SQL.
type expression struct{ calibration, unseen string }

func (e expression) factor() string {
	return `(CASE WHEN p.calibrate THEN ` + e.calibration + ` ELSE 1 END)::float8`
}

func (e expression) estimated(counted string) string {
	beyond := `(CASE WHEN p.calibrate THEN ` + e.unseen + ` ELSE 0 END)::float8`
	return `((` + counted + ` - ` + beyond + `) / ` + e.factor() + `)`
}

func (e expression) trigger() string {
	return e.estimated(`CASE WHEN p.trigger_tokens > 0 THEN p.trigger_tokens::float8
	                          ELSE p.trigger_ratio * s.window_tokens END`)
}

// first relies on least and greatest passing over NULL.
func (e expression) first() string {
	return `least(` + e.trigger() + `,
	              CASE WHEN p.trim_ratio > 0 THEN ` + e.estimated(`p.trim_ratio * s.window_tokens`) + ` END,
	              CASE WHEN p.budget_max > 0
	                   THEN greatest(least(p.budget_ratio * s.window_tokens / ` + e.factor() + `, p.budget_max),
	                                 p.budget_min) END)`
}

func (e expression) regrown() string {
	regrowth := strconv.FormatFloat(Regrowth, 'g', -1, 64) + `::float8`
	return `(s.floor_tokens + ` + regrowth + ` * s.window_tokens / ` + e.factor() + `)`
}

func (e expression) reachTrigger() string {
	return `CASE
	        WHEN s.floor_tokens = 0 THEN ` + e.first() + `
	        WHEN s.floor_tokens >= ` + e.trigger() + ` THEN ` + e.regrown() + `
	        ELSE least(` + e.trigger() + `, greatest(` + e.first() + `, ` + e.regrown() + `))
	        END`
}

func (e expression) reachHard() string {
	return `greatest(` + e.estimated(`p.hard_ratio * s.window_tokens`) + `,
	                 CASE WHEN s.floor_tokens > 0 THEN ` + e.regrown() + ` END)`
}

func number(t Threshold) string { return strconv.Itoa(int(t)) }
