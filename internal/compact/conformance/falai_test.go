package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/varve-dev/varve/internal/compact/text"
	"github.com/varve-dev/varve/internal/policy"
)

var falaiOperations = map[string]operation{
	"estimateTokens":        falaiEstimate,
	"applyToolResultBudget": falaiBudget,
	"validateOptions":       falaiValidate,
	"checkAndCompact":       falaiCompact,
	"toolExecutorTruncate":  falaiExecutor,
}

func falaiEstimate(v vector) (any, error) {
	f, err := newFalai(v)
	return map[string]any{"estimatedTokens": estimateFalai(f.Messages)}, err
}

func falaiBudget(v vector) (any, error) {
	f, err := newFalai(v)
	if err != nil {
		return nil, err
	}
	history, changed := f.budget(f.Messages)
	unchanged := make([]bool, len(changed))
	for i := range changed {
		unchanged[i] = !changed[i]
	}
	return map[string]any{"history": history, "unchangedRefs": unchanged}, nil
}

func falaiValidate(v vector) (any, error) {
	f, err := newFalai(v)
	if err == nil {
		err = f.validate()
	}
	if err != nil {
		return map[string]any{"llmCalls": f.calls}, err
	}
	return map[string]any{"valid": true}, nil
}

func falaiCompact(v vector) (any, error) {
	f, err := newFalai(v)
	if err == nil {
		err = f.validate()
	}
	if err != nil {
		return map[string]any{"llmCalls": f.calls}, err
	}
	history := f.Messages
	var rounds []map[string]any
	for range max(1, f.Rounds) {
		answer := f.compact(history)
		history = answer["history"].([]falaiMessage)
		rounds = append(rounds, answer)
	}
	answer := map[string]any{"rounds": rounds}
	if f.Rounds == 0 {
		answer = rounds[0]
	}
	answer["llmCalls"], answer["logs"] = f.calls, f.logs
	return answer, nil
}

func falaiExecutor(v vector) (any, error) {
	var in struct {
		Result map[string]json.RawMessage
		Config struct{ MaxResultSizeChars *float64 }
	}
	f, err := newFalai(v)
	if err == nil {
		err = v.decode(&in)
	}
	if limit := in.Config.MaxResultSizeChars; err != nil || limit == nil || *limit <= 0 || absent(in.Result["data"]) {
		return map[string]any{"result": in.Result}, err
	}
	f.maxChars = *in.Config.MaxResultSizeChars
	whole := contentText(in.Result["data"])
	if cut, ok := f.cut(whole); ok {
		metadata := map[string]any{}
		if raw, ok := in.Result["metadata"]; ok {
			mustDecode(raw, &metadata)
		}
		metadata["truncated"], metadata["originalLength"] = true, text.Len(whole)
		in.Result["data"], in.Result["metadata"] = jsonOf(string(cut)), jsonOf(metadata)
	}
	return map[string]any{"result": in.Result}, nil
}

// falai is one engine of the system: the profile, the vector's configuration, and its scripted model.
type falai struct {
	Messages []falaiMessage
	Config   map[string]any
	LLM      *struct{ Responses []falaiAnswer }
	Rounds   int

	policy                        policy.Policy
	maxTokens, threshold, maxKeep float64
	maxChars                      float64
	calls, logs                   []map[string]any
}

// falaiAnswer is what the model says: a message, or an error.
type falaiAnswer struct {
	Message *string
	Error   *string
}

// falaiMessage is a message of the system, each member as it came.
type falaiMessage map[string]json.RawMessage

func newFalai(v vector) (*falai, error) {
	f := &falai{calls: []map[string]any{}, logs: []map[string]any{}}
	err := v.decode(f)
	if err == nil {
		f.policy, err = policy.Profile("falai")
	}
	f.maxTokens, f.threshold = number(f.Config["maxTokens"]), number(f.Config["compactionThreshold"])
	f.maxKeep, f.maxChars = number(f.Config["preserveRecentCount"]), number(f.Config["maxToolResultChars"])
	return f, err
}

// number returns a setting's value, NaN if the setting is not a number.
func number(setting any) float64 {
	literal, ok := setting.(json.Number)
	value, err := literal.Float64()
	if !ok || err != nil {
		return math.NaN()
	}
	return value
}

// validate answers for the first setting that is wrong; maxTokens is never looked at.
func (f *falai) validate() error {
	wrong := func(setting, rule string) error {
		return &failure{"Error", fmt.Sprintf("%s must be %s, got %s", setting, rule, f.shown(setting))}
	}
	switch {
	case !(f.threshold >= 0.5 && f.threshold <= 0.95):
		return wrong("compactionThreshold", "between 0.5 and 0.95")
	case !(f.maxKeep >= 2):
		return wrong("preserveRecentCount", ">= 2")
	case !(f.maxChars > 0):
		return wrong("maxToolResultChars", "> 0")
	}
	return nil
}

// shown returns a setting as JavaScript puts it into a text.
func (f *falai) shown(setting string) string {
	value, ok := f.Config[setting]
	switch value := value.(type) {
	case string:
		return value
	case json.Number:
		return string(appendJavaScriptNumber(nil, json.RawMessage(value)))
	}
	if !ok {
		return "undefined"
	}
	return string(jsonOf(value))
}

// compact runs one strategy after the other until the history fits.
func (f *falai) compact(history []falaiMessage) map[string]any {
	threshold := f.maxTokens * f.threshold
	fits := func(history []falaiMessage) bool { return float64(estimateFalai(history)) < threshold }
	if fits(history) {
		answer := answerOf("none", history, 0)
		answer["sameReference"] = true
		return answer
	}
	border := len(history) - min(int(f.maxKeep), len(history))
	old, tail := history[:border], history[border:]
	budgeted, changed := f.budget(old)
	if after := slices.Concat(budgeted, tail); fits(after) {
		return answerOf("tool_result_budget", after, count(changed))
	}
	micro := collapse(budgeted, changed)
	if after := slices.Concat(micro, tail); fits(after) {
		return answerOf("micro_compact", after, count(changed))
	}
	if summary, ok := f.summarise(micro); ok {
		message := falaiMessage{"role": jsonOf("system"), "content": jsonOf(fill(f.policy.Wording.Summary, values{"text": summary}))}
		answer := answerOf("auto_compact", slices.Concat([]falaiMessage{message}, tail), len(old))
		answer["summary"] = summary
		return answer
	}
	kept := fitting(chars(micro), room(threshold)-sumOf(chars(tail)))
	return answerOf("auto_compact", slices.Concat(micro[len(micro)-kept:], tail), len(old)-kept)
}

func answerOf(strategy string, history []falaiMessage, compacted int) map[string]any {
	if history == nil {
		history = []falaiMessage{}
	}
	return map[string]any{
		"strategy": strategy, "estimatedTokens": estimateFalai(history), "messagesCompacted": compacted,
		"history": history, "sameReference": false,
	}
}

// room returns how many characters have an estimate below threshold.
func room(threshold float64) int {
	if math.IsNaN(threshold) {
		return -1
	}
	return 4 * int(math.Ceil(threshold)-1)
}

// budget cuts each tool result that is too long, and says which it did cut.
func (f *falai) budget(history []falaiMessage) (after []falaiMessage, changed []bool) {
	after, changed = slices.Clone(history), make([]bool, len(history))
	for i, m := range history {
		if m.role() != "tool" {
			continue
		}
		if cut, ok := f.cut(contentText(m["content"])); ok {
			after[i], changed[i] = m.with(cut), true
		}
	}
	return after, changed
}

// cut returns the beginning of a text that is too long, and the notice after it.
func (f *falai) cut(whole []byte) (cut []byte, ok bool) {
	length := text.Len(whole)
	if float64(length) <= f.maxChars {
		return nil, false
	}
	keep := int(f.maxChars)
	if keep < 0 { // slice(0, -n) counts from the end
		keep = max(0, length+keep)
	}
	limit := appendJavaScriptNumber(nil, jsonOf(f.maxChars))
	notice := fill(f.policy.Wording.Cap, values{"chars": strconv.Itoa(length), "head": string(limit)})
	return append(bytes.Clone(text.First(whole, keep)), notice...), true
}

// collapse makes one space of all white space in tool results; each of them counts as changed.
func collapse(history []falaiMessage, changed []bool) []falaiMessage {
	after := slices.Clone(history)
	for i, m := range history {
		if m.role() == "tool" {
			after[i], changed[i] = m.with(text.Collapse(nil, contentText(m["content"]))), true
		}
	}
	return after
}

const (
	falaiPrompt  = "Summarize the following conversation concisely, preserving key facts, decisions, and context:\n\n"
	falaiWarning = "CompactionEngine: LLM summarization failed, falling back to aggressive truncation"
)

// summarise asks the model; no message is a failure, an empty one is not.
func (f *falai) summarise(history []falaiMessage) (summary string, ok bool) {
	if f.LLM != nil {
		lines := make([][]byte, len(history))
		for i, m := range history {
			lines[i] = fmt.Appendf(nil, "[%s]: %s", m.role(), contentText(m["content"]))
		}
		f.calls = append(f.calls, map[string]any{
			"prompt":  falaiPrompt + string(bytes.Join(lines, []byte{'\n'})),
			"history": []any{}, "context": map[string]any{},
			"parameters": map[string]any{"maxOutputTokens": f.policy.Summarise.MaxTokens, "jsonSchema": map[string]any{}},
		})
		if n := len(f.calls); n <= len(f.LLM.Responses) && f.LLM.Responses[n-1].Message != nil {
			return *f.LLM.Responses[n-1].Message, true
		}
	}
	f.logs = append(f.logs, map[string]any{"level": "warn", "message": falaiWarning})
	return "", false
}
