package conformance

import (
	"encoding/json"
	"math"

	"github.com/varve-dev/varve/internal/llm/llmtest"
	"github.com/varve-dev/varve/internal/session"
)

// falaiInput is the input of a vector of falai.
type falaiInput struct {
	Messages []object
	Config   object
	LLM      struct {
		Responses []struct{ Message *string }
	}
	Rounds int
}

func falai(v vector) (object, error) {
	var in falaiInput
	v.input(&in)
	q := in.question()
	switch v.Op {
	case "estimateTokens":
		o, err := q.compact()
		return object{"estimatedTokens": o.Decision.ContextTokens}, err
	case "validateOptions":
		if _, err := q.resolve(); err != nil {
			return object{"error": object{"name": "Error", "message": err.Error()}}, nil
		}
		return object{"valid": true}, nil
	case "applyToolResultBudget":
		q.set("whitespace.enabled", false)
		q.set("summarise.enabled", false)
		o, err := q.compact()
		return object{"history": in.history(q, &o)}, err
	}
	var rounds []object
	for range max(in.Rounds, 1) {
		o, err := q.compact()
		if err != nil {
			return nil, err
		}
		in.Messages = in.history(q, &o)
		rounds = append(rounds, object{"history": in.Messages, "sameReference": !o.changed(), "strategy": strategy(&o)})
		q = in.question()
	}
	if in.Rounds == 0 {
		return rounds[0], nil
	}
	return object{"rounds": rounds}, nil
}

// strategy returns what the system calls the last stage that was entered.
func strategy(o *outcome) string {
	name := "none"
	for _, stage := range o.Plan.Stages {
		if stage.Entered && o.Decision.Due() {
			name = map[string]string{
				"cap": "tool_result_budget", "whitespace": "micro_compact", "summarise": "auto_compact",
				"truncate": "auto_compact",
			}[stage.Stage]
		}
	}
	return name
}

func (in *falaiInput) question() *question {
	q := ask("falai", session.OpenAIChat, 1000)
	q.set("tokens.tokenizer", "json-chars4")
	q.set("only_smaller", false)
	q.set("hard", 1)
	q.settings(in.Config, "compactionThreshold trigger", "maxToolResultChars cap.max_chars cap.head_chars")
	if keep, ok := in.Config["preserveRecentCount"].(json.Number); ok {
		whole, _ := keep.Float64()
		q.set("protect.last_messages", int(whole))
		q.set("summarise.keep_messages", int(whole))
	} else {
		q.set("protect.last_messages", 0)
		q.set("trigger", 0.002)
		q.set("target", 0.001)
	}
	if window, ok := in.Config["maxTokens"].(json.Number); ok {
		size, _ := window.Float64()
		q.window = int(size)
		if threshold, ok := in.Config["compactionThreshold"].(json.Number); ok {
			share, _ := threshold.Float64()
			q.set("target", (math.Ceil(share*size)-1)/size) // at the threshold the next strategy runs
		}
	}
	for _, r := range in.LLM.Responses {
		reply := llmtest.Reply{Err: errNoAnswer}
		if r.Message != nil {
			reply = llmtest.Reply{Text: *r.Message}
		}
		q.replies = append(q.replies, reply)
	}
	for _, m := range in.Messages {
		q.chat(m, "name")
	}
	return q
}

func (in *falaiInput) history(q *question, o *outcome) []object {
	return q.messages(o, in.Messages, "system", func(_ int, m, body object) {
		m["content"] = named(body["content"].(string), "")
	})
}
