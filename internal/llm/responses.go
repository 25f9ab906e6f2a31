package llm

import (
	"context"
	"strings"

	"github.com/varve-dev/varve/internal/compact/summary"
)

// response speaks OpenAI's Responses.
type response struct {
	link  link
	name  string
	model Definition
}

// responseRequest has the members of a request that are sent: https://platform.openai.com/docs/api-reference/responses.
type responseRequest struct {
	Model           string         `json:"model"`
	Instructions    string         `json:"instructions,omitempty"`
	Input           []responseItem `json:"input,omitempty"`
	MaxOutputTokens int            `json:"max_output_tokens"`
	Store           bool           `json:"store"` // must be false; it is true if it is not sent
	Temperature     *float64       `json:"temperature,omitempty"`
	Reasoning       struct {
		Effort string `json:"effort,omitempty"`
	} `json:"reasoning,omitzero"`
}

// responseItem is a message, which has no type, a call or an output.
type responseItem struct {
	Type      string  `json:"type,omitempty"`
	Role      string  `json:"role,omitempty"`
	Content   string  `json:"content,omitempty"`
	CallID    string  `json:"call_id,omitempty"`
	Name      string  `json:"name,omitempty"`
	Arguments string  `json:"arguments,omitempty"`
	Output    *string `json:"output,omitempty"`
}

// responseAnswer has the members of an answer that are read.
type responseAnswer struct {
	Model             string
	Status            string
	IncompleteDetails struct{ Reason string } `json:"incomplete_details"`
	Output            []struct {
		Type    string
		Content []struct{ Type, Text string }
	}
	Usage struct {
		InputTokens  *int64 `json:"input_tokens"`
		OutputTokens *int64 `json:"output_tokens"`
		Details      struct {
			CachedTokens int64 `json:"cached_tokens"`
		} `json:"input_tokens_details"`
	}
}

// Ask makes one attempt.
func (c *response) Ask(ctx context.Context, d summary.Dialogue) (Reply, error) {
	var answer responseAnswer
	if err := c.link.post(ctx, c.name, "responses", c.request(d), &answer); err != nil {
		return Reply{}, err
	}
	return c.read(&answer, d)
}

func (c *response) request(d summary.Dialogue) responseRequest {
	r := responseRequest{Model: c.model.Model, MaxOutputTokens: d.MaxTokens, Temperature: c.model.Temperature}
	r.Reasoning.Effort = c.model.Effort
	for i, t := range turnsOf(d) {
		if i == 0 && t.role == system {
			r.Instructions = t.text
			continue
		}
		r.Input = append(r.Input, responseItems(t)...)
	}
	return r
}

func responseItems(t turn) (list []responseItem) {
	if t.text != "" {
		list = append(list, responseItem{Role: t.role, Content: t.text})
	}
	for _, call := range t.calls {
		list = append(list,
			responseItem{Type: "function_call", CallID: call.CallID, Name: call.Tool, Arguments: call.Text})
	}
	for _, r := range t.results {
		list = append(list, responseItem{Type: "function_call_output", CallID: r.CallID, Output: &r.Text})
	}
	return list
}

// read reads an answer.
func (c *response) read(answer *responseAnswer, d summary.Dialogue) (Reply, error) {
	r := reading{model: c.name, echoed: answer.Model}
	var texts []string
	var refused, called bool
	for _, item := range answer.Output {
		called = called || item.Type == "function_call"
		if item.Type != "message" {
			continue
		}
		for _, part := range item.Content {
			refused = refused || part.Type == "refusal"
			if part.Type == "output_text" {
				texts = append(texts, part.Text)
			}
		}
	}
	r.text = strings.Join(texts, "")
	if u := answer.Usage; u.InputTokens != nil && u.OutputTokens != nil {
		r.usage = Usage{Input: *u.InputTokens, Cached: u.Details.CachedTokens, Output: *u.OutputTokens}
	}
	if len(answer.Output) > 0 || r.usage != (Usage{}) {
		r.weigh(d)
	}
	switch {
	case answer.Status == "incomplete" && answer.IncompleteDetails.Reason == "content_filter":
		return r.failed(ErrRefused, "content_filter")
	case answer.Status == "incomplete":
		return r.failed(ErrCut, "")
	case answer.Status == "failed":
		return r.failed(ErrUnavailable, "the provider's own work failed")
	case answer.Status != "completed":
		return r.failed(ErrMalformed, "it is not complete")
	case refused:
		return r.failed(ErrRefused, "")
	case called:
		return r.failed(ErrMalformed, "it calls a tool")
	}
	return r.reply()
}
