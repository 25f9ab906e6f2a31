package llm

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/varve-dev/varve/internal/compact/summary"
)

// messages speaks Anthropic's Messages.
type messages struct {
	name    string
	model   Definition
	service anthropic.MessageService
}

// newMessages makes the SDK's service and not its client, which reads the environment and files of credentials.
func newMessages(l link, name string, d Definition) *messages {
	options := []option.RequestOption{
		option.WithBaseURL(strings.TrimSuffix(l.provider.BaseURL, "v1/")), option.WithHTTPClient(l.client),
		option.WithMaxRetries(0), option.WithMiddleware(l.around(name)), option.WithoutOpenTelemetry(),
		option.WithRequestTimeout(2 * seconds(l.provider.Timeout)), // the call's own deadline comes first
	}
	if l.provider.Key.Set() {
		options = append(options, option.WithAPIKey(l.provider.Key.reveal()))
	}
	return &messages{name, d, anthropic.NewMessageService(options...)}
}

// Ask makes one attempt.
func (c *messages) Ask(ctx context.Context, d summary.Dialogue) (Reply, error) {
	answer, err := c.service.New(ctx, c.request(d))
	if err != nil {
		return Reply{}, failure(ctx, c.name, err)
	}
	return c.read(answer, d)
}

// opening stands before a dialogue that the assistant begins: the first message must be the user's.
const opening = "(The conversation has begun before.)"

// request returns the request. The API takes calls and results only beside definitions of their tools; none may be
// called. All messages of the system are its one system prompt.
func (c *messages) request(d summary.Dialogue) anthropic.MessageNewParams {
	p := anthropic.MessageNewParams{Model: c.model.Model, MaxTokens: int64(d.MaxTokens)}
	if c.model.Temperature != nil {
		p.Temperature = anthropic.Float(*c.model.Temperature)
	}
	defined := map[string]bool{}
	for _, t := range turnsOf(d) {
		if t.role == system {
			p.System = append(p.System, anthropic.TextBlockParam{Text: t.text})
			continue
		}
		if len(p.Messages) == 0 && t.role == assistant {
			p.Messages = append(p.Messages, anthropic.NewUserMessage(anthropic.NewTextBlock(opening)))
		}
		for _, call := range t.calls {
			if !defined[call.Tool] {
				defined[call.Tool] = true
				anything := anthropic.ToolInputSchemaParam{Properties: map[string]any{}}
				p.Tools = append(p.Tools, anthropic.ToolUnionParamOfTool(anything, call.Tool))
			}
		}
		c.add(&p, t)
	}
	if len(p.Tools) > 0 {
		p.ToolChoice.OfNone = &anthropic.ToolChoiceNoneParam{}
	}
	return p
}

// add adds a turn. Results stand first in a message of the user, whose text follows in the same one.
func (c *messages) add(p *anthropic.MessageNewParams, t turn) {
	var blocks []anthropic.ContentBlockParamUnion
	for _, r := range t.results {
		blocks = append(blocks, resultBlock(r))
	}
	if t.text != "" {
		blocks = append(blocks, anthropic.NewTextBlock(t.text))
	}
	for _, call := range t.calls {
		blocks = append(blocks, anthropic.NewToolUseBlock(call.CallID, json.RawMessage(call.Text), call.Tool))
	}
	role := anthropic.MessageParamRoleUser
	if t.role == assistant {
		role = anthropic.MessageParamRoleAssistant
	}
	if last := len(p.Messages) - 1; last >= 0 && p.Messages[last].Role == role {
		p.Messages[last].Content = append(p.Messages[last].Content, blocks...)
		return
	}
	p.Messages = append(p.Messages, anthropic.MessageParam{Role: role, Content: blocks})
}

// resultBlock returns a result. An empty text is refused, a result without any is not.
func resultBlock(r summary.Part) anthropic.ContentBlockParamUnion {
	block := anthropic.ToolResultBlockParam{ToolUseID: r.CallID}
	if strings.TrimSpace(r.Text) != "" {
		block.Content = []anthropic.ToolResultBlockParamContentUnion{{OfText: &anthropic.TextBlockParam{Text: r.Text}}}
	}
	if r.Failed {
		block.IsError = anthropic.Bool(true)
	}
	return anthropic.ContentBlockParamUnion{OfToolResult: &block}
}

// read reads an answer. What the API counts as input leaves out what it wrote to and read from its cache.
func (c *messages) read(answer *anthropic.Message, d summary.Dialogue) (Reply, error) {
	r := reading{model: c.name, echoed: answer.Model}
	var texts []string
	var called bool
	for _, block := range answer.Content {
		called = called || block.Type == "tool_use"
		if block.Type == "text" {
			texts = append(texts, written(block.JSON.Text.Raw()))
		}
	}
	r.text = strings.Join(texts, "")
	if u := answer.Usage; u.JSON.InputTokens.Valid() && u.JSON.OutputTokens.Valid() {
		input := u.InputTokens + u.CacheCreationInputTokens + u.CacheReadInputTokens
		r.usage = Usage{Input: input, Cached: u.CacheReadInputTokens, Output: u.OutputTokens}
	}
	if answer.JSON.Content.Valid() || r.usage != (Usage{}) {
		r.weigh(d)
	}
	switch answer.StopReason {
	case anthropic.StopReasonMaxTokens, anthropic.StopReasonModelContextWindowExceeded:
		return r.failed(ErrCut, "")
	case anthropic.StopReasonRefusal:
		return r.failed(ErrRefused, "")
	case anthropic.StopReasonEndTurn, anthropic.StopReasonStopSequence:
	default:
		return r.failed(ErrMalformed, "it did not end its turn")
	}
	if called {
		return r.failed(ErrMalformed, "it calls a tool")
	}
	return r.reply()
}
