package conformance

import (
	"fmt"
	"maps"
	"strconv"

	"github.com/varve-dev/varve/internal/compact/rule"
	"github.com/varve-dev/varve/internal/compact/text"
	"github.com/varve-dev/varve/internal/policy"
)

// trimMessage carries out an action on the texts of a message.
func (c *cortex) trimMessage(m cortexMessage, index int, action trimAction) cortexMessage {
	parts := m.parts()
	trimmed := maps.Clone(m)
	if len(parts) == 0 {
		content, _ := m["content"].(string)
		trimmed["content"] = c.trimmedText(content, action)
		return trimmed
	}
	after := make([]any, len(parts))
	for i, part := range parts {
		after[i] = part
		if content, ok := part["text"].(string); ok && c.isResultText(m, part) {
			after[i] = maps.Clone(part)
			after[i].(map[string]any)["text"] = c.partText(m, part, content, index, action)
		}
	}
	trimmed["content"] = after
	return trimmed
}

// isResultText reports whether a part is trimmed with its message. A persister spares the user's text beside a result.
func (c *cortex) isResultText(m cortexMessage, part map[string]any) bool {
	if part["type"] == "text" {
		return m["role"] == "toolResult" || c.persist == "" && m.isToolResult()
	}
	return part["type"] == "tool_result"
}

// partText returns what replaces the text of one part, which is persisted first if it is not reproducible.
func (c *cortex) partText(m cortexMessage, part map[string]any, content string, index int, action trimAction) string {
	tool, named := part["name"].(string)
	if !named {
		tool, _ = m["toolName"].(string)
	}
	category := c.category(tool)
	if c.persist == "" || category != policy.NonReproducible && category != policy.Computational {
		return c.trimmedText(content, action)
	}
	path, ok := c.save(content, map[string]any{"toolName": tool, "messageIndex": index, "category": category})
	if !ok {
		return c.trimmedText(content, action)
	}
	return c.persistedText(content, action, tool, path)
}

func (c *cortex) save(content string, meta map[string]any) (path string, ok bool) {
	path = fmt.Sprintf("/persist/%s-%d.txt", meta["toolName"], len(c.persisted))
	c.persisted = append(c.persisted, map[string]any{"content": content, "meta": meta})
	return path, c.persist == "ok"
}

// The wordings of results that are stored nowhere; the profile has those that name where the result is.
const (
	lostCap         = "\n\n... [~{cut_tokens} tokens trimmed at insertion] ...\n\n"
	lostBookend     = "\n\n... [~{cut_tokens} tokens trimmed] ...\n\n"
	lostPlaceholder = "[Tool result trimmed -- {tool}: \"{preview}\" -- see assistant response below for findings]"
	savedHeader     = "[Result persisted: {ref} ({chars} chars, ~{tokens} tokens) -- {tool}]\n\n"
	savedClear      = "[Tool result persisted -- {tool} -- use Read on {ref} for full content]"
)

func (c *cortex) capAtInsertion(content string) string {
	tokens := utf16Quarters([]byte(content))
	if tokens <= c.policy.Cap.MaxTokens {
		return content
	}
	return bookends(content, lostCap, "", trimAction{Head: c.policy.Cap.HeadChars, Tail: c.policy.Cap.TailChars, Tokens: tokens})
}

// trimmedText replaces a text that is stored nowhere.
func (c *cortex) trimmedText(content string, action trimAction) string {
	switch {
	case action.Step == rule.Bookend:
		return bookends(content, lostBookend, "", action)
	case action.Clear:
		return fill(c.policy.Wording.Clear, values{})
	}
	return fill(lostPlaceholder, values{"tool": action.Tool, "preview": action.Preview})
}

// persistedText replaces a text that is stored at path.
func (c *cortex) persistedText(content string, action trimAction, tool, path string) string {
	v := values{"ref": path, "tool": tool, "preview": action.Preview}
	switch {
	case action.Step == rule.Bookend:
		v["chars"], v["tokens"] = strconv.Itoa(text.Len([]byte(content))), strconv.Itoa(action.Tokens)
		return fill(savedHeader, v) + bookends(content, c.policy.Wording.Bookend, path, action)
	case action.Clear:
		return fill(savedClear, v)
	}
	return fill(c.policy.Wording.Placeholder, v)
}

// bookends keeps head and tail of content around the wording, or all of it if they would cover it.
func bookends(content, wording, path string, a trimAction) string {
	head, tail, ok := ends([]byte(content), a.Head, a.Tail)
	if !ok {
		return content
	}
	tailChars := a.Tail
	if tailChars == 0 { // slice(-0) is everything
		tail, tailChars = []byte(content), text.Len([]byte(content))
	}
	cut := a.Tokens - (a.Head+3)/4 - (tailChars+3)/4 // halves of characters count where the system has them
	return string(head) + fill(wording, values{"cut_tokens": strconv.Itoa(cut), "ref": path}) + string(tail)
}
