// Package due decides when a session is compacted. It owns the whole rule, as a Go function and as the SQL expression
// of it, which a test on a database holds to each other.
//
// A session is due when its view, with the overhead, reaches the trigger: a share of its window. It is due at once,
// with nothing to wait for, when the view reaches the hard limit. A session that its newest compaction left above the
// trigger must first grow by Regrowth of its window.
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
	Window      int64     // tokens, by the provider's count
	Calibration float64   // the provider's tokens for each estimated token; 1 if the policy does not calibrate
	Unseen      int64     // the provider's tokens beyond that, such as tools; 0 if the policy does not calibrate
	Trigger     float64   // share of the window
	Hard        float64   // share of the window
	Floor       int64     // estimated tokens that the newest compaction left; 0 if they are below the trigger
	Armed       Threshold // the next one that asks for a compaction
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

// estimated returns how many estimated tokens make the share of the window, together with the unseen ones.
func (s Session) estimated(share float64) float64 {
	return float64(float64(share*float64(s.Window))-float64(s.Unseen)) / s.calibration()
}

// reach returns how many estimated tokens reach the share of the window. The conversions keep the compiler from fusing
// the operations, so that the result is PostgreSQL's to the last bit.
func (s Session) reach(share float64) float64 {
	if s.Floor == 0 {
		return s.estimated(share)
	}
	regrown := float64(s.Floor) + float64(float64(Regrowth*float64(s.Window))/s.calibration())
	return max(s.estimated(share), regrown)
}

// Due returns the highest threshold that a session with this many estimated tokens, overhead included, reaches; it
// reports false if that threshold is not armed or none is reached.
func (s Session) Due(tokens int64) (Threshold, bool) {
	switch {
	case s.Armed == None:
		return 0, false
	case float64(tokens) >= s.reach(s.Hard):
		return Hard, true
	case s.Armed == Trigger && float64(tokens) >= s.reach(s.Trigger):
		return Trigger, true
	}
	return 0, false
}

// FloorAfter returns the floor of a session that a compaction left with this many tokens, overhead included.
func (s Session) FloorAfter(tokens int64) int64 {
	if float64(tokens) < s.estimated(s.Trigger) {
		return 0
	}
	return max(tokens, 1)
}

// FloorAfterPostponed does what FloorAfter does for a compaction that was postponed because it did not pay. The floor
// stays low enough for the session to be due when it reaches its hard limit.
func (s Session) FloorAfterPostponed(tokens int64) int64 {
	return min(s.FloorAfter(tokens), int64(s.estimated(s.Hard-Regrowth)))
}

// ArmedSQL returns the number of estimated tokens, overhead included, at which the next append takes the slow path. It
// is an SQL expression over a row s of sessions and a row p of policies; calibration and unseen are the session's.
func ArmedSQL(calibration, unseen string) string {
	return `
	CASE s.armed_threshold
	WHEN ` + number(Trigger) + ` THEN ` + reachSQL(`p.trigger_ratio`, calibration, unseen) + `
	WHEN ` + number(Hard) + ` THEN ` + reachSQL(`p.hard_ratio`, calibration, unseen) + `
	ELSE 'infinity'::float8
	END`
}

// TriggerSQL returns what ArmedSQL returns with the trigger armed.
func TriggerSQL(calibration, unseen string) string {
	return reachSQL(`p.trigger_ratio`, calibration, unseen)
}

func reachSQL(share, calibration, unseen string) string {
	factor := `(CASE WHEN p.calibrate THEN ` + calibration + ` ELSE 1 END)::float8`
	beyond := `(CASE WHEN p.calibrate THEN ` + unseen + ` ELSE 0 END)::float8`
	regrowth := strconv.FormatFloat(Regrowth, 'g', -1, 64) + `::float8`
	return `greatest((` + share + ` * s.window_tokens - ` + beyond + `) / ` + factor + `,
	                 CASE WHEN s.floor_tokens > 0
	                      THEN s.floor_tokens + ` + regrowth + ` * s.window_tokens / ` + factor + `
	                 END)`
}

func number(t Threshold) string { return strconv.Itoa(int(t)) }
