package conformance

import (
	"errors"
	"strings"

	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/llm/llmtest"
	"github.com/varve-dev/varve/internal/session"
)

// errNoAnswer is what a model answers that fails.
var errNoAnswer = errors.New("the model does not answer")

// codeliaInput is the input of a vector of codelia.
type codeliaInput struct {
	Messages []object
	Config   object
	Store    string
	Registry []struct {
		ID                            string
		ContextWindow, MaxInputTokens int
	}
	Usages []*struct {
		Model       string
		TotalTokens int64 `json:"total_tokens"`
	}
	LLM struct {
		Model     string
		Responses []struct {
			Text     *string
			Messages []object
		}
	}
}

func codelia(v vector) (object, error) {
	var in codeliaInput
	v.input(&in)
	q := ask("codelia", session.OpenAIChat, 1000)
	q.set("tokens.tokenizer", "bytes4")
	q.set("only_smaller", false)
	q.settings(in.Config, "auto auto", "enabled enabled", "thresholdRatio trigger", "maxMessageBytes cap.max_bytes cap.head_chars",
		"contextBudgetTokens budget.tokens", "retainLastTurns summarise.keep_turns")
	for _, m := range in.Messages {
		q.chat(m, "tool_name")
	}
	switch v.Op {
	case "shouldCompact":
		return in.due(q)
	case "processToolMessage":
		return in.capped(q)
	case "trimMessages":
		return in.trimmed(q)
	}
	return in.summarised(q)
}

// window returns the window that the registry has for a model.
func (in *codeliaInput) window(model string) int {
	for _, m := range in.Registry {
		if m.ID == model {
			return max(m.ContextWindow, m.MaxInputTokens)
		}
	}
	return 0
}

func (in *codeliaInput) due(q *question) (object, error) {
	results := []any{}
	for _, usage := range in.Usages {
		if usage == nil {
			results = append(results, false)
			continue
		}
		q.window, q.context = in.window(usage.Model), &usage.TotalTokens
		o, err := q.compact()
		if err != nil {
			return nil, err
		}
		results = append(results, o.Decision.Due())
	}
	return object{"results": results}, nil
}

func (in *codeliaInput) capped(q *question) (object, error) {
	q.set("budget.enabled", false)
	q.set("summarise.enabled", false)
	o, err := q.compact()
	return object{"messages": in.results(q, &o, in.Store == "")}, err
}

func (in *codeliaInput) trimmed(q *question) (object, error) {
	q.window = max(in.window(in.LLM.Model), q.window)
	q.set("cap.enabled", false)
	q.set("summarise.enabled", false)
	o, err := q.compact()
	return object{"messages": in.results(q, &o, false), "trimmed": o.changed(), "sameReference": !o.changed()}, err
}

// results translates the view back. With a store, the names of refs are the ids of calls.
func (in *codeliaInput) results(q *question, o *outcome, store bool) []object {
	list := q.messages(o, in.Messages, "", func(i int, m, body object) {
		id := ""
		for _, r := range o.Plan.Results {
			if store && r.Seq == q.seqs[i] {
				id = r.CallID
				m["output_ref"] = object{"id": id, "byte_size": len(r.Stored), "line_count": r.Lines}
			}
		}
		m["content"], m["trimmed"] = named(body["content"].(string), id), true
	})
	return list
}

func (in *codeliaInput) summarised(q *question) (object, error) {
	for field, value := range map[string]any{
		"trigger": 0.002, "target": 0.001, "hard": 1, "summarise.over": 0, "summarise.min_tokens": 0,
		"protect.max_turn_ratio": 0, "cap.enabled": false, "budget.enabled": false,
	} {
		q.set(field, value)
	}
	if retain, ok := in.Config["retainPrompt"]; ok && retain == nil {
		q.set("summarise.retain", false)
	}
	q.settings(in.Config, "summaryPrompt summarise.prompt", "summaryDirectives summarise.directives",
		"retainPrompt summarise.retain_prompt", "retainDirectives summarise.retain_directives")
	for _, r := range in.LLM.Responses {
		reply := llmtest.Reply{Err: errNoAnswer}
		if r.Text != nil {
			reply = llmtest.Reply{Text: *r.Text}
		} else if r.Messages != nil {
			reply = llmtest.Reply{Text: answerOf(r.Messages)}
		}
		q.replies = append(q.replies, reply)
	}
	o, err := q.compact()
	return object{
		"messages":  q.messages(&o, in.Messages, "user", func(int, object, object) {}),
		"compacted": o.Decision.Verdict == compactor.Now, "sameReference": !o.changed(),
	}, err
}

// answerOf returns the texts of a model's answer.
func answerOf(messages []object) string {
	var texts []string
	for _, m := range messages {
		text, _ := m["content"].(string)
		parts, _ := m["content"].([]any)
		for _, p := range parts {
			part, _ := p.(object)["text"].(string)
			if payload := p.(object)["payload"]; payload != nil {
				part = jsonText(payload)
			}
			text += part
		}
		if m["role"] == "assistant" && m["content"] != nil {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n")
}
