package llm

import (
	"context"

	"github.com/varve-dev/varve/internal/compact/summary"
)

// chat speaks OpenAI's Chat Completions.
type chat struct {
	link  link
	name  string
	model Definition
	own   bool // the provider is OpenAI itself
}

// chatRequest has the members of a request that are sent: https://platform.openai.com/docs/api-reference/chat/create.
type chatRequest struct {
	Model               string        `json:"model"`
	Messages            []chatMessage `json:"messages"`
	MaxTokens           int           `json:"max_tokens,omitempty"`
	MaxCompletionTokens int           `json:"max_completion_tokens,omitempty"`
	Store               *bool         `json:"store,omitempty"`
	Temperature         *float64      `json:"temperature,omitempty"`
	ReasoningEffort     string        `json:"reasoning_effort,omitempty"`
}

type chatMessage struct {
	Role       string     `json:"role"`
	Content    *string    `json:"content,omitempty"`
	ToolCalls  []chatCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

type chatCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// chatAnswer has the members of an answer that are read.
type chatAnswer struct {
	Model   string
	Choices []struct {
		FinishReason string `json:"finish_reason"`
		Message      struct {
			Content   string
			Refusal   string
			ToolCalls []struct{} `json:"tool_calls"`
		}
	}
	Usage struct {
		PromptTokens     *int64 `json:"prompt_tokens"`
		CompletionTokens *int64 `json:"completion_tokens"`
		Details          struct {
			CachedTokens int64 `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	}
}

// Ask makes one attempt.
func (c *chat) Ask(ctx context.Context, d summary.Dialogue) (Reply, error) {
	var answer chatAnswer
	if err := c.link.post(ctx, c.name, "chat/completions", c.request(d), &answer); err != nil {
		return Reply{}, err
	}
	return c.read(&answer, d)
}

// request returns the request. It has no tools, and so no choice of one, which OpenAI refuses without tools.
func (c *chat) request(d summary.Dialogue) chatRequest {
	r := chatRequest{Model: c.model.Model, Temperature: c.model.Temperature, ReasoningEffort: c.model.Effort}
	if c.model.Limit == maxCompletionTokens {
		r.MaxCompletionTokens = d.MaxTokens
	} else {
		r.MaxTokens = d.MaxTokens
	}
	if c.own { // others may not know it
		r.Store = new(bool)
	}
	for _, t := range turnsOf(d) {
		r.Messages = append(r.Messages, chatMessages(t)...)
	}
	return r
}

func chatMessages(t turn) (list []chatMessage) {
	for _, r := range t.results {
		list = append(list, chatMessage{Role: tool, Content: &r.Text, ToolCallID: r.CallID})
	}
	if t.role == tool {
		return list
	}
	m := chatMessage{Role: t.role}
	if t.text != "" {
		m.Content = &t.text
	}
	for _, call := range t.calls {
		c := chatCall{ID: call.CallID, Type: "function"}
		c.Function.Name, c.Function.Arguments = call.Tool, call.Text
		m.ToolCalls = append(m.ToolCalls, c)
	}
	return append(list, m)
}

// read reads an answer.
func (c *chat) read(answer *chatAnswer, d summary.Dialogue) (Reply, error) {
	r := reading{model: c.name, echoed: answer.Model}
	if len(answer.Choices) == 0 {
		return r.failed(ErrMalformed, "it has no choice")
	}
	first := answer.Choices[0]
	r.text = first.Message.Content
	if u := answer.Usage; u.PromptTokens != nil && u.CompletionTokens != nil {
		r.usage = Usage{Input: *u.PromptTokens, Cached: u.Details.CachedTokens, Output: *u.CompletionTokens}
	}
	r.weigh(d)
	switch first.FinishReason {
	case "length", "max_tokens": // the second is that of gateways to other providers
		return r.failed(ErrCut, "")
	case "content_filter":
		return r.failed(ErrRefused, "content_filter")
	case "error", "abort", "insufficient_system_resource": // of gateways, vLLM and DeepSeek
		return r.failed(ErrUnavailable, "the provider's own work failed")
	}
	switch {
	case first.Message.Refusal != "":
		return r.failed(ErrRefused, "")
	case first.FinishReason == "tool_calls", first.FinishReason == "function_call", len(first.Message.ToolCalls) > 0:
		return r.failed(ErrMalformed, "it calls a tool")
	}
	return r.reply()
}
