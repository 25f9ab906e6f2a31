package compact

import "strconv"

// policyMinimum is the least that a head or a tail may keep, in characters. It makes every bookend longer than the
// stub and the placeholder below it, whatever the tool's name and the preview are.
const policyMinimum = 128

// rules checks the ranges of every number and then the numbers against one another. A field that has a problem already
// is not held against others.
func (p *policyParser) rules() {
	p.ranges()
	d := &p.policy
	p.below("/target", d.Target, "/trigger", d.Trigger, true, "else a session is compacted at every append")
	p.below("/trigger", d.Trigger, "/hard", d.Hard, false, "hard is the later alarm")
	if d.Trim.Enabled {
		p.below("/trim/floor_ratio", d.Trim.FloorRatio, "/trigger", d.Trigger, false, "else a due session is not trimmed")
	}
	longest, shortest := float64(d.Trim.BookendMaxChars), float64(d.Trim.BookendMinChars)
	p.below("/trim/bookend_min_chars", shortest, "/trim/bookend_max_chars", longest, false, "bookends shrink from max to min")
	if d.Cap.Enabled && d.Trim.Enabled {
		const why = "bookends are cut from what the cap left"
		p.below("/trim/bookend_max_chars", longest, "/cap/head_chars", float64(d.Cap.HeadChars), false, why)
		p.below("/trim/bookend_max_chars", longest, "/cap/tail_chars", float64(d.Cap.TailChars), false, why)
	}
}

func (p *policyParser) ranges() {
	d := &p.policy
	for _, r := range []struct {
		pointer          string
		value, low, high float64
	}{
		{"/trigger", d.Trigger, 0.01, 1},
		{"/target", d.Target, 0.001, 1},
		{"/hard", d.Hard, 0.01, 1},
		{"/cache/ttl_seconds", float64(d.Cache.TTLSeconds), 0, 604_800},
		{"/protect/last_units", float64(d.Protect.LastUnits), 0, 1_000},
		{"/cap/max_tokens", float64(d.Cap.MaxTokens), 100, 10_000_000},
		{"/cap/head_chars", float64(d.Cap.HeadChars), policyMinimum, 1_000_000},
		{"/cap/tail_chars", float64(d.Cap.TailChars), policyMinimum, 1_000_000},
		{"/dedupe/keep_last", float64(d.Dedupe.KeepLast), 1, 1_000},
		{"/dedupe/min_tokens", float64(d.Dedupe.MinTokens), 0, 1_000_000},
		{"/trim/min_tokens", float64(d.Trim.MinTokens), 0, 1_000_000},
		{"/trim/floor_ratio", d.Trim.FloorRatio, 0, 1},
		{"/trim/hot_zone_min_tokens", float64(d.Trim.HotZoneMinTokens), 0, 10_000_000},
		{"/trim/hot_zone_ratio", d.Trim.HotZoneRatio, 0, 1},
		{"/trim/bookend_max_chars", float64(d.Trim.BookendMaxChars), policyMinimum, 1_000_000},
		{"/trim/bookend_min_chars", float64(d.Trim.BookendMinChars), policyMinimum, 1_000_000},
		{"/trim/degradation_span_ratio", d.Trim.DegradationSpanRatio, 0, 10},
		{"/trim/extended_retention_multiplier", d.Trim.ExtendedRetentionMultiplier, 1, 100},
	} {
		if r.value < r.low || r.value > r.high {
			p.problem(r.pointer, OutOfRange, "%s is not from %s to %s", p.written(r.pointer, r.value), decimal(r.low), decimal(r.high))
		}
	}
}

// below requires a < b, or a <= b if not strict.
func (p *policyParser) below(aPointer string, a float64, bPointer string, b float64, strict bool, why string) {
	if a < b || a == b && !strict || p.has(aPointer) || p.has(bPointer) {
		return
	}
	relation := "must not be above"
	if strict {
		relation = "must be below"
	}
	p.problem(aPointer, Contradiction, "%s %s %s (%s): %s", p.written(aPointer, a), relation, p.at+bPointer, p.written(bPointer, b), why)
}

// written is a number as the document has it, or the default.
func (p *policyParser) written(pointer string, otherwise float64) string {
	if literal, ok := p.literals[pointer]; ok {
		return literal
	}
	return decimal(otherwise)
}

func (p *policyParser) has(pointer string) bool {
	for _, problem := range p.problems {
		if problem.Pointer == p.at+pointer && problem.Code != Contradiction {
			return true
		}
	}
	return false
}

func decimal(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
