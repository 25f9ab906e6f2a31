package llm

import (
	"context"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"github.com/varve-dev/varve/internal/compact/summary"
)

// response speaks OpenAI's Responses.
type response struct {
	name    string
	model   Definition
	service responses.ResponseService
}

func newResponses(l link, name string, d Definition) *response {
	return &response{name, d, responses.NewResponseService(l.openai(name)...)}
}

// Ask makes one attempt.
func (c *response) Ask(ctx context.Context, d summary.Dialogue) (Reply, error) {
	answer, err := c.service.New(ctx, c.request(d))
	if err != nil {
		return Reply{}, failure(ctx, c.name, err)
	}
	return c.read(answer, d)
}

// request returns the request. The provider must not store it, which it does if nothing is said.
func (c *response) request(d summary.Dialogue) responses.ResponseNewParams {
	p := responses.ResponseNewParams{
		Model: c.model.Model, Store: openai.Bool(false), MaxOutputTokens: openai.Int(int64(d.MaxTokens)),
		Reasoning: shared.ReasoningParam{Effort: shared.ReasoningEffort(c.model.Effort)},
	}
	if c.model.Temperature != nil {
		p.Temperature = openai.Float(*c.model.Temperature)
	}
	for i, t := range turnsOf(d) {
		if i == 0 && t.role == system {
			p.Instructions = openai.String(t.text)
			continue
		}
		p.Input.OfInputItemList = append(p.Input.OfInputItemList, responseItems(t)...)
	}
	return p
}

func responseItems(t turn) (list []responses.ResponseInputItemUnionParam) {
	if t.text != "" {
		role := responses.EasyInputMessageRole(t.role)
		list = append(list, responses.ResponseInputItemParamOfMessage(t.text, role))
	}
	for _, call := range t.calls {
		list = append(list, responses.ResponseInputItemParamOfFunctionCall(call.Text, call.CallID, call.Tool))
	}
	for _, r := range t.results {
		item := responses.ResponseInputItemParamOfFunctionCallOutput(r.Text)
		item.OfFunctionCallOutput.CallID = openai.String(r.CallID)
		list = append(list, item)
	}
	return list
}

// read reads an answer.
func (c *response) read(answer *responses.Response, d summary.Dialogue) (Reply, error) {
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
				texts = append(texts, written(part.JSON.Text.Raw()))
			}
		}
	}
	r.text = strings.Join(texts, "")
	if u := answer.Usage; u.JSON.InputTokens.Valid() && u.JSON.OutputTokens.Valid() {
		r.usage = Usage{Input: u.InputTokens, Cached: u.InputTokensDetails.CachedTokens, Output: u.OutputTokens}
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
