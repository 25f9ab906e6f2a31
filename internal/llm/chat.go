package llm

import (
	"context"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"

	"github.com/varve-dev/varve/internal/compact/summary"
)

// chat speaks OpenAI's Chat Completions.
type chat struct {
	name    string
	model   Definition
	own     bool // the provider is OpenAI itself
	service openai.ChatCompletionService
}

func newChat(l link, name string, d Definition) *chat {
	return &chat{name, d, ownHost(l.provider.BaseURL), openai.NewChatCompletionService(l.openai(name)...)}
}

// openai returns the options for OpenAI's SDK. Its services are made one by one: its client reads the environment.
func (l link) openai(name string) []option.RequestOption {
	options := []option.RequestOption{
		option.WithBaseURL(l.provider.BaseURL), option.WithHTTPClient(l.client), option.WithMaxRetries(0),
		option.WithMiddleware(l.around(name)),
	}
	if l.provider.Key.Set() {
		options = append(options, option.WithAPIKey(l.provider.Key.reveal()))
	}
	return options
}

// Ask makes one attempt.
func (c *chat) Ask(ctx context.Context, d summary.Dialogue) (Reply, error) {
	answer, err := c.service.New(ctx, c.request(d))
	if err != nil {
		return Reply{}, failure(ctx, c.name, err)
	}
	return c.read(answer, d)
}

// request returns the request. It has no tools, and so no choice of one, which OpenAI refuses without tools.
func (c *chat) request(d summary.Dialogue) openai.ChatCompletionNewParams {
	p := openai.ChatCompletionNewParams{Model: c.model.Model, ReasoningEffort: shared.ReasoningEffort(c.model.Effort)}
	if c.model.Limit == maxCompletionTokens {
		p.MaxCompletionTokens = openai.Int(int64(d.MaxTokens))
	} else {
		p.MaxTokens = openai.Int(int64(d.MaxTokens))
	}
	if c.own { // others may not know it
		p.Store = openai.Bool(false)
	}
	if c.model.Temperature != nil {
		p.Temperature = openai.Float(*c.model.Temperature)
	}
	for _, t := range turnsOf(d) {
		p.Messages = append(p.Messages, chatMessages(t)...)
	}
	return p
}

func chatMessages(t turn) (list []openai.ChatCompletionMessageParamUnion) {
	switch t.role {
	case system:
		return append(list, openai.SystemMessage(t.text))
	case user:
		return append(list, openai.UserMessage(t.text))
	case tool:
		for _, r := range t.results {
			list = append(list, openai.ToolMessage(r.Text, r.CallID))
		}
		return list
	}
	m := openai.ChatCompletionAssistantMessageParam{}
	if t.text != "" {
		m.Content.OfString = openai.String(t.text)
	}
	for _, call := range t.calls {
		f := openai.ChatCompletionMessageFunctionToolCallParam{ID: call.CallID}
		f.Function.Name, f.Function.Arguments = call.Tool, call.Text
		m.ToolCalls = append(m.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{OfFunction: &f})
	}
	return append(list, openai.ChatCompletionMessageParamUnion{OfAssistant: &m})
}

// read reads an answer.
func (c *chat) read(answer *openai.ChatCompletion, d summary.Dialogue) (Reply, error) {
	r := reading{model: c.name, echoed: answer.Model}
	if len(answer.Choices) == 0 {
		return r.failed(ErrMalformed, "it has no choice")
	}
	first := answer.Choices[0]
	r.text = written(first.Message.JSON.Content.Raw())
	if u := answer.Usage; u.JSON.PromptTokens.Valid() && u.JSON.CompletionTokens.Valid() {
		r.usage = Usage{Input: u.PromptTokens, Cached: u.PromptTokensDetails.CachedTokens, Output: u.CompletionTokens}
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
