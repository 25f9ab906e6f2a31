package conformance

import (
	"flag"
	"regexp"
	"testing"

	"github.com/varve-dev/varve/test/harness"
)

var mutated = flag.Bool("mutants", false, "run the vectors through every mutant, which takes a minute each")

const (
	engine   = "internal/compact/"
	profiles = "internal/policy/profiles/"
)

// off leaves a stage out, named in the list of stages.
func off(stage, enabled string) harness.Mutant {
	return mutant(stage+": off", engine+"run.go", enabled, "false && "+enabled)
}

func mutant(name, file, old, new string) harness.Mutant {
	return harness.Mutant{Name: name, Edits: []harness.Edit{harness.Replace(file, old, new)}}
}

// mutants are defects of each stage: it is off, one more or less than its limit, in the wrong order, with another text.
var mutants = []harness.Mutant{
	off("cap", "p.Cap.Enabled"),
	mutant("cap: a character late", engine+"cap.go", "text.Len(t) > c.MaxChars", "text.Len(t) > c.MaxChars+1"),
	mutant("cap: a byte late", engine+"cap.go", "len(t) > c.MaxBytes", "len(t) > c.MaxBytes+1"),
	mutant("cap: a token late", engine+"cap.go", "case c.MaxTokens > 0 && tokens > c.MaxTokens", "case c.MaxTokens > 0 && tokens > c.MaxTokens+1"),
	mutant("cap: the end is the head", engine+"cap.go", "head = text.First(t, headChars)", "head = text.Last(t, headChars)"),
	mutant("cap: falai's text", profiles+"falai.json", "[Truncated: {chars}", "[truncated: {chars}"),
	mutant("cap: codelia's text", profiles+"codelia.json", "[tool output truncated;", "[output truncated;"),
	mutant("cap: cortex's text", profiles+"cortex.json", "trimmed at insertion", "cut at insertion"),
	off("dedupe", "p.Dedupe.Enabled"),
	mutant("dedupe: a token late", engine+"dedupe.go", "p.tokens >= limits.MinTokens", "p.tokens > limits.MinTokens"),
	mutant("dedupe: a byte late", engine+"resource/omit.go", "size, size > overBytes", "size, size > overBytes+1"),
	mutant("dedupe: keeps one more", engine+"rule/rule.go", "if len(seen) >= keepLast {", "if len(seen) > keepLast {"),
	mutant("dedupe: the oldest stays", engine+"dedupe.go", "keys[k] = found[k].Occurrence", "keys[len(found)-1-k] = found[k].Occurrence"),
	mutant("dedupe: tool-compaction's text", profiles+"tool-compaction.json", "Large fields omitted;", "Large fields removed;"),
	mutant("dedupe: llm-proxy's text", profiles+"llm-proxy.json", "was removed because", "is gone because"),
	off("trim", "p.Trim.Enabled"),
	mutant("trim: a token late", engine+"runstate.go", "s.sum[len(s.sum)-1] - s.sum[m] }", "max(s.sum[len(s.sum)-1]-s.sum[m]-1, 0) }"),
	mutant("trim: a character more", engine+"trim.go", "return chars // the least", "return chars + 1 // the least"),
	mutant("trim: the newest age", engine+"runstate.go", "return s.sum[len(s.sum)-1] - s.sum[m] }", "return s.sum[m] }"),
	mutant("trim: a bookend's text", profiles+"cortex.json", "tokens trimmed; full content", "tokens cut; full content"),
	mutant("trim: a header's text", profiles+"cortex.json", "[Result persisted: {ref}", "[Result saved: {ref}"),
	mutant("trim: a saved result's text", profiles+"cortex.json", "[Tool result persisted --", "[Tool result saved --"),
	mutant("trim: a line's text", profiles+"cortex.json", "for findings; full content", "for more; full content"),
	mutant("trim: a cleared result's text", profiles+"cortex.json", "[Tool result cleared;", "[Cleared;"),
	off("budget", "p.Budget.Enabled ||"),
	mutant("budget: a token early", engine+"budget.go", "if total <= budget {", "if total < budget {"),
	mutant("budget: the newest first", engine+"budget.go", "for i := range s.parts {", "for k := range s.parts {\n\t\ti := len(s.parts) - 1 - k"),
	mutant("budget: a line's text", profiles+"codelia.json", `"placeholder": "[tool output trimmed`, `"placeholder": "[output trimmed`),
	off("whitespace", "p.Whitespace.Enabled"),
	mutant("whitespace: two spaces", engine+"text/space.go", "dst = append(dst, ' ')", "dst = append(dst, ' ', ' ')"),
	mutant("whitespace: one message more", engine+"protect.go", "min(m+rule.LastMessages, now)", "min(m+rule.LastMessages-1, now)"),
	{Name: "whitespace: before the cap", Edits: []harness.Edit{
		harness.Replace(engine+"run.go", `{"cap", func(p *policy.Policy) bool { return p.Cap.Enabled }, capOver, capOversized},`,
			`{"whitespace", func(p *policy.Policy) bool { return p.Whitespace.Enabled }, nil, collapseWhitespace},`),
		harness.Replace(engine+"run.go", "\t"+`{"whitespace", func(p *policy.Policy) bool { return p.Whitespace.Enabled }, nil, collapseWhitespace},`+"\n\t{\"hard",
			"\t"+`{"cap", func(p *policy.Policy) bool { return p.Cap.Enabled }, capOver, capOversized},`+"\n\t{\"hard"),
	}},
	off("summarise", "p.Summarise.Enabled"),
	mutant("summarise: one turn less", engine+"summarise.go", "s.summarisable(limits.KeepTurns,", "s.summarisable(max(limits.KeepTurns-1, 0),"),
	mutant("summarise: one message more", engine+"summarise.go", "limits.KeepTurns, limits.KeepMessages)", "limits.KeepTurns, limits.KeepMessages+1)"),
	mutant("summarise: facts last", engine+"segments.go", "joined(p.lasting, p.now)", "joined(p.now, p.lasting)"),
	mutant("summarise: falai's text", profiles+"falai.json", "[Conversation Summary;", "[Summary;"),
	mutant("summarise: codelia's prompt", engine+"summary/prompts.tmpl", "for context compaction", "for compaction"),
	mutant("summarise: falai's prompt", engine+"summary/prompts.tmpl", "conversation concisely", "conversation briefly"),
	mutant("summarise: cortex's prompt", engine+"summary/prompts.tmpl", "conversation turns to", "turns to"),
	mutant("summarise: directives first", engine+"summary/prompts.tmpl",
		"{{- range .RetainDirectives}}\n- {{.}}\n{{- end}}\n{{end}}\nSummary instructions:\n{{or .Prompt \"Summarize", "{{end}}\nSummary instructions:\n{{or .Prompt \"Summarize"),
	mutant("truncate: off", engine+"truncate.go", "!s.policy.Truncate.Enabled && !s.dropsUnwritten()", "true"),
	mutant("truncate: a token late", engine+"truncate.go", "float64(t.size) > t.over", "float64(t.size) > t.over+1"),
	mutant("truncate: one unit more", engine+"truncate.go", "t.to = next\n\treturn true", "t.to = next\n\tt.over--\n\treturn true"),
}

// TestMutantsFitTheSources reports a mutant whose place in the sources has changed.
func TestMutantsFitTheSources(t *testing.T) {
	t.Parallel()
	if err := harness.Fit(t.Context(), mutants); err != nil {
		t.Error(err)
	}
}

// TestEveryMutantIsFound asks each mutant the vectors, their variants, and what reaches its models.
func TestEveryMutantIsFound(t *testing.T) {
	if !*mutated {
		t.Skip("takes a minute a mutant: -args -mutants")
	}
	t.Setenv("VARVE_VARIANTS", "600")
	found := regexp.MustCompile(`(?m)^ +--- FAIL|^--- FAIL: (TestConformance|TestVariants|TestModels\w+)`)
	for i, m := range mutants {
		t.Run(m.Name, func(t *testing.T) {
			out, err := harness.Tested(t.Context(), t.TempDir(), &mutants[i], "-vet=off", "-run", "^Test(Conformance|Variants|Models)",
				"./internal/compact/conformance")
			if err == nil || !found.MatchString(out) {
				t.Errorf("it is not found: %v\n%s", err, out)
			}
		})
	}
}
