package llm

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/varve-dev/varve/internal/compact/summary"
)

// messages speaks Anthropic's Messages.
type messages struct {
	link  link
	name  string
	model Definition
}

// messagesRequest has the members of a request that are sent: https://docs.anthropic.com/en/api/messages.
type messagesRequest struct {
	Model       string            `json:"model"`
	MaxTokens   int               `json:"max_tokens"`
	Temperature *float64          `json:"temperature,omitempty"`
	System      []block           `json:"system,omitempty"`
	Messages    []blocks          `json:"messages"`
	Tools       []toolSchema      `json:"tools,omitempty"`
	ToolChoice  map[string]string `json:"tool_choice,omitempty"`
}

// blocks is a message.
type blocks struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

// block is a text, a call or a result.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   []block         `json:"content,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
}

type toolSchema struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"input_schema"`
}

// messagesAnswer has the members of an answer that are read.
type messagesAnswer struct {
	Model      string
	Content    []struct{ Type, Text string }
	StopReason string `json:"stop_reason"`
	Usage      struct {
		InputTokens  *int64 `json:"input_tokens"`
		CacheWritten int64  `json:"cache_creation_input_tokens"`
		CacheRead    int64  `json:"cache_read_input_tokens"`
		OutputTokens *int64 `json:"output_tokens"`
	}
}

// Ask makes one attempt.
func (c *messages) Ask(ctx context.Context, d summary.Dialogue) (Reply, error) {
	var answer messagesAnswer
	if err := c.link.post(ctx, c.name, c.link.versioned("messages"), c.request(d), &answer); err != nil {
		return Reply{}, err
	}
	return c.read(&answer, d)
}

// opening stands before a dialogue that the assistant begins: the first message must be the user's.
const opening = "(The conversation has begun before.)"

// request returns the request. The API takes calls and results only beside definitions of their tools; none may be
// called. All messages of the system are its one system prompt.
func (c *messages) request(d summary.Dialogue) messagesRequest {
	r := messagesRequest{Model: c.model.Model, MaxTokens: d.MaxTokens, Temperature: c.model.Temperature}
	defined := map[string]bool{}
	for _, t := range turnsOf(d) {
		if t.role == system {
			r.System = append(r.System, textBlock(t.text))
			continue
		}
		if len(r.Messages) == 0 && t.role == assistant {
			r.Messages = append(r.Messages, blocks{user, []block{textBlock(opening)}})
		}
		for _, call := range t.calls {
			if !defined[call.Tool] {
				defined[call.Tool] = true
				anything := json.RawMessage(`{"type":"object","properties":{}}`)
				r.Tools = append(r.Tools, toolSchema{call.Tool, anything})
			}
		}
		r.add(t)
	}
	if len(r.Tools) > 0 {
		r.ToolChoice = map[string]string{"type": "none"}
	}
	return r
}

// add adds a turn. Results stand first in a message of the user, whose text follows in the same one.
func (r *messagesRequest) add(t turn) {
	role := user
	if t.role == assistant {
		role = assistant
	}
	if last := len(r.Messages) - 1; last < 0 || r.Messages[last].Role != role {
		r.Messages = append(r.Messages, blocks{Role: role})
	}
	m := &r.Messages[len(r.Messages)-1]
	for _, result := range t.results {
		b := block{Type: "tool_result", ToolUseID: result.CallID, IsError: result.Failed}
		if strings.TrimSpace(result.Text) != "" { // an empty text is refused, a result without any is not
			b.Content = []block{textBlock(result.Text)}
		}
		m.Content = append(m.Content, b)
	}
	if t.text != "" {
		m.Content = append(m.Content, textBlock(t.text))
	}
	for _, call := range t.calls {
		b := block{Type: "tool_use", ID: call.CallID, Name: call.Tool, Input: json.RawMessage(call.Text)}
		m.Content = append(m.Content, b)
	}
}

func textBlock(text string) block { return block{Type: "text", Text: text} }

// read reads an answer. What the API counts as input leaves out what it wrote to and read from its cache.
func (c *messages) read(answer *messagesAnswer, d summary.Dialogue) (Reply, error) {
	r := reading{model: c.name, echoed: answer.Model}
	var texts []string
	var called bool
	for _, block := range answer.Content {
		called = called || block.Type == "tool_use"
		if block.Type == "text" {
			texts = append(texts, block.Text)
		}
	}
	r.text = strings.Join(texts, "")
	if u := answer.Usage; u.InputTokens != nil && u.OutputTokens != nil {
		input := *u.InputTokens + u.CacheWritten + u.CacheRead
		r.usage = Usage{Input: input, Cached: u.CacheRead, Output: *u.OutputTokens}
	}
	if answer.Content != nil || r.usage != (Usage{}) {
		r.weigh(d)
	}
	switch answer.StopReason {
	case "max_tokens", "model_context_window_exceeded":
		return r.failed(ErrCut, "")
	case "refusal":
		return r.failed(ErrRefused, "")
	case "end_turn", "stop_sequence":
	default:
		return r.failed(ErrMalformed, "it did not end its turn")
	}
	if called {
		return r.failed(ErrMalformed, "it calls a tool")
	}
	return r.reply()
}
