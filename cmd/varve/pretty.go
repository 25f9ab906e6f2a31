package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// view is a view as far as a person wants to read it.
type view struct {
	Session    string            `json:"session"`
	Format     string            `json:"format"`
	Checkpoint int               `json:"checkpoint"`
	ThroughSeq int64             `json:"through_seq"`
	LastSeq    int64             `json:"last_seq"`
	Tokens     int64             `json:"tokens"`
	System     json.RawMessage   `json:"system"`
	Messages   []json.RawMessage `json:"messages"`
	Omitted    *struct {
		Units    int   `json:"units"`
		Messages int   `json:"messages"`
		Tokens   int64 `json:"tokens"`
	} `json:"omitted"`
}

// write prints every message under its role: texts as they are, calls and results marked by arrows.
func (v *view) write(out io.Writer) error {
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, "session %s (%s): %d messages, %d tokens, checkpoint %d through %d of %d\n",
		printable(v.Session), v.Format, len(v.Messages), v.Tokens, v.Checkpoint, v.ThroughSeq, v.LastSeq)
	if v.Omitted != nil {
		fmt.Fprintf(w, "left out: %d units (%d messages, %d tokens)\n", v.Omitted.Units, v.Omitted.Messages, v.Omitted.Tokens)
	}
	if len(v.System) > 0 {
		fmt.Fprintf(w, "\n## system\n\n%s\n", plainText(contentText(v.System)))
	}
	for _, raw := range v.Messages {
		var m struct {
			Role      string          `json:"role"`
			Content   json.RawMessage `json:"content"`
			CallID    string          `json:"tool_call_id"`
			ToolCalls []toolCall      `json:"tool_calls"`
		}
		if json.Unmarshal(raw, &m) != nil {
			fmt.Fprintf(w, "\n## a message\n\n%s\n", raw)
			continue
		}
		fmt.Fprintf(w, "\n## %s\n\n", plainText(m.Role))
		if m.CallID != "" {
			fmt.Fprintf(w, "← %s\n", plainText(m.CallID))
		}
		fmt.Fprintln(w, plainText(contentText(m.Content)))
		for _, c := range m.ToolCalls {
			fmt.Fprintf(w, "→ %s %s (%s)\n", plainText(c.Function.Name), plainText(c.Function.Arguments), plainText(c.ID))
		}
	}
	return w.Flush()
}

type toolCall struct {
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// contentText is content as text: a string, blocks line by line, or the JSON of what is neither.
func contentText(raw json.RawMessage) string {
	var text string
	var blocks []json.RawMessage
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return ""
	case json.Unmarshal(raw, &text) == nil:
		return text
	case json.Unmarshal(raw, &blocks) == nil:
		lines := make([]string, len(blocks))
		for i, b := range blocks {
			lines[i] = blockText(b)
		}
		return strings.Join(lines, "\n")
	}
	return string(raw)
}

func blockText(raw json.RawMessage) string {
	var b struct {
		Type      string          `json:"type"`
		Text      string          `json:"text"`
		Thinking  string          `json:"thinking"`
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Input     json.RawMessage `json:"input"`
		ToolUseID string          `json:"tool_use_id"`
		Content   json.RawMessage `json:"content"`
	}
	if json.Unmarshal(raw, &b) != nil {
		return string(raw)
	}
	switch b.Type {
	case "text":
		return b.Text
	case "thinking":
		return "(thinking) " + b.Thinking
	case "tool_use":
		return fmt.Sprintf("→ %s %s (%s)", b.Name, b.Input, b.ID)
	case "tool_result":
		return fmt.Sprintf("← %s\n%s", b.ToolUseID, contentText(b.Content))
	}
	return fmt.Sprintf("(%s, %d bytes)", b.Type, len(raw))
}

// printable is a name as a line or a table can show it: quoted if it would break them.
func printable(name string) string {
	if utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl) {
		return name
	}
	return strconv.Quote(name)
}

// plainText keeps control characters of recorded output away from the terminal.
func plainText(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) {
			return '\uFFFD'
		}
		return r
	}, s)
}
