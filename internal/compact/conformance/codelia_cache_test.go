package conformance

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/compact/text"
)

// codelia caps a result as it comes in, and bounds all of them together.

func codeliaProcess(v vector) (any, error) {
	c, err := newCodelia(v)
	if err != nil {
		return nil, err
	}
	processed, same := make([]codeliaMessage, len(c.Messages)), make([]bool, len(c.Messages))
	for i, m := range c.Messages {
		if same[i] = off(c.Config.Enabled); same[i] {
			processed[i] = m
			continue
		}
		processed[i] = c.process(m)
	}
	return map[string]any{"messages": processed, "sameReference": same, "saved": orEmpty(c.saved)}, nil
}

func (c *codelia) process(m codeliaMessage) codeliaMessage {
	whole := []byte(m.projection())
	m = maps.Clone(m)
	ref := c.save(m, whole)
	if ref != "" {
		m.set("output_ref", map[string]any{"id": ref, "byte_size": len(whole), "line_count": text.CountLines(whole)})
	}
	if c.head() && !m.textOnly() {
		return m
	}
	content := string(whole)
	if tool := m.text("tool_name"); tool != "tool_output_cache" && tool != "tool_output_cache_grep" {
		kept := firstLines(whole, c.policy.Cap.MaxBytes)
		content = string(unixLines(kept))
		if len(kept) < len(whole) {
			content += worded(c.policy.Wording.Cap, ref)
			m.set("trimmed", true)
		}
	}
	m.set("content", content)
	return m
}

var notRefCharacter = regexp.MustCompile(`[^a-zA-Z0-9_-]`)

// save stores a result and returns its ref, "" without a store.
func (c *codelia) save(m codeliaMessage, whole []byte) (ref string) {
	if c.Store == "none" || c.Store == "fail" {
		return ""
	}
	saved := codeliaMessage{"tool_call_id": m["tool_call_id"], "tool_name": m["tool_name"]}
	saved.set("content", string(whole))
	if failed, ok := m["is_error"]; ok {
		saved["is_error"] = failed
	}
	c.saved = append(c.saved, saved)
	return notRefCharacter.ReplaceAllString(m.text("tool_call_id"), "_")
}

// worded fills a ref into a wording, or leaves out what tells of one.
func worded(wording, ref string) string {
	if ref == "" {
		wording = strings.ReplaceAll(wording, "; ref={ref}", "")
	}
	template, err := text.Parse(wording, "ref")
	if err != nil {
		panic(err)
	}
	return string(template.Append(nil, func(dst []byte, _ string) []byte { return append(dst, ref...) }))
}

func codeliaTrim(v vector) (any, error) {
	c, err := newCodelia(v)
	if err != nil {
		return nil, err
	}
	messages, trimmed := c.trim()
	return map[string]any{"messages": messages, "trimmed": trimmed, "sameReference": !trimmed, "inputMutated": false}, nil
}

func (c *codelia) trim() (messages []codeliaMessage, trimmed bool) {
	if off(c.Config.Enabled) || !c.policy.Budget.Enabled {
		return c.Messages, false
	}
	var results, sizes, after []int
	var placeholders []string
	for i, m := range c.Messages {
		if m.text("role") == "tool" {
			placeholder := worded(c.policy.Wording.Placeholder, m.ref())
			results, placeholders = append(results, i), append(placeholders, placeholder)
			sizes = append(sizes, byteQuarters([]byte(m.projection())))
			after = append(after, byteQuarters([]byte(placeholder)))
		}
	}
	messages = slices.Clone(c.Messages)
	for i, replaced := range overBudget(sizes, after, c.budget()) {
		if replaced {
			trimmed = true
			m := maps.Clone(messages[results[i]])
			m.set("content", placeholders[i])
			m.set("trimmed", true)
			messages[results[i]] = m
		}
	}
	return messages, trimmed
}

func (c *codelia) budget() int {
	b := c.policy.Budget
	if c.Config.ContextBudgetTokens != nil {
		return b.Tokens
	}
	limits := c.limits(c.qualified(c.LLM.Model))
	if len(limits) == 0 || limits[0] <= 0 {
		return b.Max
	}
	return max(b.Min, min(b.Max, int(math.Floor(float64(limits[0])*b.Ratio))))
}
