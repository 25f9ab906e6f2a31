package policy

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/varve-dev/varve/internal/compact/text"
)

// rules checks the range of every number, then the templates, and then the fields against one another. A field that has
// a problem already is not held against others.
func (p *parser) rules() {
	p.ranges()
	p.templates()
	p.levels()
	p.cuts()
	p.waits()
	p.selections()
}

func (p *parser) ranges() {
	for pointer, value := range eachField(reflect.ValueOf(p.policy), "") {
		var number float64
		switch value.Kind() {
		case reflect.Int:
			number = float64(value.Int())
		case reflect.Float64:
			number = value.Float()
		default:
			continue
		}
		f := fields[pointer]
		if number >= f.low && number <= f.high || f.orZero && number == 0 {
			continue
		}
		p.problem(pointer, OutOfRange, "must be%s, not %s", f.span(), p.written(pointer, number))
	}
}

const (
	refBytes     = 24                         // about the length of a ref
	maxLineBytes = 2*MinCutChars - 2*refBytes // of a line that replaces a result, values other than the ref aside
)

// templates parses each text of the wording. A cleared result must not become longer than the line that was there.
func (p *parser) templates() {
	size := map[string]int{} // bytes of each, values other than the ref aside
	for pointer, value := range eachField(reflect.ValueOf(p.policy.Wording), "/wording") {
		f := fields[pointer]
		parsed, err := text.Parse(value.String(), f.names...)
		switch {
		case p.bad[pointer]:
		case err != nil:
			p.problem(pointer, InvalidTemplate, "%s", err)
		case f.needs != "" && !parsed.Has(f.needs):
			p.problem(pointer, InvalidTemplate, "the template must contain {%s}", f.needs)
		}
		size[pointer] = parsed.Constant() + refBytes*parsed.Places("ref")
	}
	const clear = "/wording/clear"
	for _, line := range []string{"/wording/stub", "/wording/stale", "/wording/placeholder", clear} {
		if size[line] > maxLineBytes {
			p.problem(line, OutOfRange,
				"the line has %d bytes without its values: the limit is %d, which is less than head and tail keep",
				size[line], maxLineBytes)
		}
		if size[clear] > size[line] {
			p.conflict("the line for a cleared result must not be longer than "+line+", which it may replace",
				clear, line)
		}
	}
}

// levels compares the shares of the window.
func (p *parser) levels() {
	d := &p.policy
	p.below("/target", d.Target, "/trigger", d.Trigger, true, "else a session is compacted at every append")
	p.below("/trigger", d.Trigger, "/hard", d.Hard, false, "hard is the later alarm")
	if d.Trim.Enabled {
		p.below("/trim/floor_ratio", d.Trim.FloorRatio, "/trigger", d.Trigger, false,
			"else a due session is not trimmed")
	}
	p.below("/budget/min_tokens", float64(d.Budget.Min), "/budget/max_tokens", float64(d.Budget.Max), false,
		"the limit lies between them")
}

// cuts compares how much of a result is kept.
func (p *parser) cuts() {
	c, t := &p.policy.Cap, &p.policy.Trim
	longest := float64(t.BookendMaxChars)
	p.below("/trim/bookend_min_chars", float64(t.BookendMinChars), "/trim/bookend_max_chars", longest, false,
		"bookends shrink from max to min")
	if !c.Enabled {
		return
	}
	if t.Enabled {
		const why = "bookends are cut from what the cap keeps"
		p.below("/trim/bookend_max_chars", longest, "/cap/head_chars", float64(c.HeadChars), false, why)
		p.below("/trim/bookend_max_chars", longest, "/cap/tail_chars", float64(c.TailChars), false, why)
	}
	if c.MaxTokens == 0 && c.MaxBytes == 0 && c.MaxChars == 0 && c.MaxLines == 0 && c.MaxLineChars == 0 {
		p.conflict("the cap must have a limit: set one of max_tokens, max_bytes, max_chars, max_lines and "+
			"max_line_chars, or set enabled to false", "/cap/enabled",
			"/cap/max_tokens", "/cap/max_bytes", "/cap/max_chars", "/cap/max_lines", "/cap/max_line_chars")
	}
	const maxBytes, head, tail = "/cap/max_bytes", "/cap/head_chars", "/cap/tail_chars"
	kept := c.HeadChars + c.TailChars
	switch {
	case kept < 2*MinCutChars:
		p.conflict(fmt.Sprintf("head and tail must have at least %d characters together, not %d", 2*MinCutChars, kept),
			head, tail)
	case c.MaxBytes > 0 && c.MaxBytes < kept:
		p.conflict(fmt.Sprintf("%s (%s) must not be below the %d characters of head and tail, "+
			"else a slightly larger result could not be cut", maxBytes, p.written(maxBytes, float64(c.MaxBytes)), kept),
			maxBytes, head, tail)
	}
}

// waits compares the figures of the provider's cache.
func (p *parser) waits() {
	e, ttl := &p.policy.Economy, p.policy.Cache.TTLSeconds
	p.below("/economy/cache_read", e.CacheRead, "/economy/cache_write", e.CacheWrite, false,
		"a cache that costs more to read than to write saves nothing")
	if e.Enabled && ttl > 0 {
		p.below("/economy/ttl_seconds", float64(e.TTLSeconds), "/cache/ttl_seconds", float64(ttl), false,
			"else one takes a cache for cold that the other takes for warm")
	}
}

// selections compares what is selected with what is excluded.
func (p *parser) selections() {
	d, protect := &p.policy.Dedupe, &p.policy.Protect
	if protect.LastTurns > 0 && protect.MaxTurnRatio == 0 {
		p.conflict("must be above 0 while last_turns is: each turn is larger than 0 of the target",
			"/protect/max_turn_ratio", "/protect/last_turns")
	}
	if d.Enabled && d.Identity == ByFields && len(d.Fields) == 0 && !d.ToolOnly {
		p.conflict("identity by fields needs fields, or tool_only",
			"/dedupe/identity", "/dedupe/fields", "/dedupe/tool_only")
	}
	p.disjoint("/dedupe/allow_tools", d.AllowTools, "/dedupe/deny_tools", d.DenyTools)
	p.disjoint("/dedupe/allow_operations", stringsOf(d.AllowOperations...),
		"/dedupe/deny_operations", stringsOf(d.DenyOperations...))
}

// disjoint requires that no entry is in both lists.
func (p *parser) disjoint(aPointer string, a []string, bPointer string, b []string) {
	for _, entry := range a {
		if slices.Contains(b, entry) {
			p.conflict(strconv.Quote(entry)+" is in both "+aPointer+" and "+bPointer, bPointer, aPointer)
		}
	}
}

// below requires a < b, or a <= b if not strict.
func (p *parser) below(aPointer string, a float64, bPointer string, b float64, strict bool, why string) {
	if a < b || a == b && !strict {
		return
	}
	relation, reverse := "must not be above", "must not be below"
	if strict {
		relation, reverse = "must be below", "must be above"
	}
	if p.blamed(aPointer, bPointer) == bPointer {
		aPointer, bPointer = bPointer, aPointer
		a, b = b, a
		relation = reverse
	}
	p.conflict(fmt.Sprintf("%s %s %s%s (%s%s): %s", p.written(aPointer, a), relation,
		p.layer.Pointer, bPointer, p.written(bPointer, b), p.owner(bPointer), why), aPointer, bPointer)
}

// conflict reports a problem of several fields. It points at the first that the topmost layer sets, for that one can be
// changed.
func (p *parser) conflict(detail string, pointers ...string) {
	if !slices.ContainsFunc(pointers, func(pointer string) bool { return p.bad[pointer] }) {
		p.problem(p.blamed(pointers...), Contradiction, "%s", detail)
	}
}

// blamed returns the first field that the topmost layer sets, or else the first.
func (p *parser) blamed(pointers ...string) string {
	for _, pointer := range pointers {
		if p.sources[pointer] == p.layer.Name {
			return pointer
		}
	}
	return pointers[0]
}

// owner returns the name of the lower layer that a value comes from, as a part of a sentence. It is empty for values of
// the topmost layer or of a profile.
func (p *parser) owner(pointer string) string {
	for _, layer := range p.layers {
		if layer.Name == p.sources[pointer] && layer.Name != p.layer.Name {
			return ", set by the " + layer.Name
		}
	}
	return ""
}

// written returns a number as a document has it, or the number itself if it is that of the profile.
func (p *parser) written(pointer string, number float64) string {
	if literal, ok := p.literals[pointer]; ok {
		return literal
	}
	return decimal(number)
}

func decimal(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
