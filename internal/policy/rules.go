package policy

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"

	"github.com/varve-dev/varve/internal/compact/text"
)

// rules checks the range of every number, then the templates, and then the fields against one another. A field that has
// a problem already is not held against others.
func (p *parser) rules() {
	p.ranges()
	p.templates()
	p.patterns()
	p.inOrder()
	p.cuts()
	p.selections()
	p.summaries()
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
		p.numbers[pointer] = number
		f := fields[pointer]
		if number >= f.Low && number <= f.High || f.OrZero && number == 0 {
			continue
		}
		p.problem(pointer, OutOfRange, "must be%s, not %s", f.span(), p.written(pointer))
	}
}

const (
	refBytes     = 24                        // about the length of a ref
	maxLineBytes = MaxLineBytes - 2*refBytes // of a line that replaces a result, values other than the ref aside
)

// templates parses each text of the wording. A cleared result must not become longer than the line that was there.
func (p *parser) templates() {
	size := map[string]int{} // bytes of each, values other than the ref aside
	for pointer, value := range eachField(reflect.ValueOf(p.policy.Wording), "/wording") {
		f := fields[pointer]
		parsed, err := text.Parse(value.String(), f.Names...)
		switch {
		case p.bad[pointer]:
		case err != nil:
			p.problem(pointer, InvalidTemplate, "%s", err)
		case f.Needs != "" && parsed.Places(f.Needs) == 0:
			p.problem(pointer, InvalidTemplate, "the template must contain {%s}", f.Needs)
		}
		size[pointer] = parsed.Constant() + refBytes*parsed.Places("ref")
	}
	clears := p.policy.Trim.Enabled || p.policy.Budget.Enabled || p.policy.MediaBytes > 0
	const again, clear = "/wording/placeholder_again", "/wording/clear"
	for _, line := range []string{"/wording/stub", "/wording/placeholder", again, clear} {
		if size[line] > maxLineBytes {
			p.problem(line, OutOfRange,
				"the line has %d bytes without its values: the limit is %d",
				size[line], maxLineBytes)
		}
		if clears && size[clear] > size[line] && (line != again || p.policy.Wording.PlaceholderAgain != "") {
			p.conflict("the line for a cleared result must not be longer than "+line+", which it may replace",
				clear, line)
		}
	}
}

// patterns compiles the patterns of pins.
func (p *parser) patterns() {
	const limit = 50
	if n := len(p.policy.Pins.Patterns); n > limit {
		p.problem("/pins/patterns", OutOfRange, "there are %d patterns: the limit is %d", n, limit)
	}
	for i, pattern := range p.policy.Pins.Patterns {
		at := fmt.Sprintf("/pins/patterns/%d", i)
		compiled, err := regexp.Compile(pattern)
		if err != nil {
			p.problem(at, InvalidPattern, "%q is no regular expression of RE2: %s", pattern, err)
		} else if compiled.MatchString("") {
			p.problem(at, InvalidPattern, "%q matches the empty text, so it would pin every line", pattern)
		}
	}
}

// ordered lists the pairs of numbers of which one must not be above the other.
var ordered = []struct {
	low, high string
	strict    bool // they must not be equal, either
	while     func(*Policy) bool
	why       string
}{
	{"/target", "/trigger", true, inShares, "else a session is compacted at every append"},
	{"/target_tokens", "/trigger_tokens", true, inTokens, "else a session is compacted at every append"},
	{"/trigger", "/hard", false, always, "hard is the later alarm"},
	{"/budget/min_tokens", "/budget/max_tokens", false, always, "the limit lies between them"},
	{"/economy/cache_read", "/economy/cache_write", false, always,
		"a cache that costs more to read than to write saves nothing"},
	{"/economy/ttl_seconds", "/cache/ttl_seconds", false, waitsTwice,
		"else one takes a cache for cold that the other takes for warm"},
}

func always(*Policy) bool       { return true }
func inShares(p *Policy) bool   { return p.TriggerTokens == 0 && p.TargetTokens == 0 }
func inTokens(p *Policy) bool   { return p.TriggerTokens > 0 && p.TargetTokens > 0 }
func waitsTwice(p *Policy) bool { return p.Economy.Enabled && p.Cache.TTLSeconds > 0 }

// inOrder checks the pairs of numbers.
func (p *parser) inOrder() {
	for _, rule := range ordered {
		a, b := p.numbers[rule.low], p.numbers[rule.high]
		if a < b || a == b && !rule.strict || !rule.while(&p.policy) {
			continue
		}
		this, other := rule.low, rule.high
		relation, reverse := "must not be above", "must not be below"
		if rule.strict {
			relation, reverse = "must be below", "must be above"
		}
		if p.blamed(this, other) == other {
			this, other = other, this
			relation = reverse
		}
		p.conflict(fmt.Sprintf("%s %s %s%s (%s%s): %s", p.written(this), relation, p.layer.Pointer, other,
			p.written(other), p.owner(other), rule.why), rule.low, rule.high)
	}
}

// cuts checks the limits of the cap.
func (p *parser) cuts() {
	c := &p.policy.Cap
	if !c.Enabled {
		return
	}
	limits := c.MaxTokens + c.MaxBytes + c.MaxChars + c.MaxLines + c.MaxLineChars
	if limits == 0 && c.MaxRatio == 0 && c.UnitRatio == 0 {
		p.conflict("the cap must have a limit: set one of max_tokens, max_bytes, max_chars, max_lines, "+
			"max_line_chars, max_ratio and unit_ratio, or set enabled to false", "/cap/enabled",
			"/cap/max_tokens", "/cap/max_bytes", "/cap/max_chars", "/cap/max_lines", "/cap/max_line_chars")
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
func (p *parser) written(pointer string) string {
	return cmp.Or(p.literals[pointer], decimal(p.numbers[pointer]))
}

func decimal(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
