package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/compact/summary"
	"github.com/varve-dev/varve/internal/compact/text"
	"github.com/varve-dev/varve/internal/policy"
)

// codelia is recorded in two versions: the one that Varve follows (seed), and a later one (head).

var codeliaOperations = map[string]operation{
	"processToolMessage": codeliaProcess,
	"trimMessages":       codeliaTrim,
	"shouldCompact":      codeliaShould,
	"compact":            codeliaCompact,
}

// codelia is one call: its input, and what it does meanwhile.
type codelia struct {
	Version  string
	Messages []codeliaMessage
	Rounds   [][]codeliaMessage // lists that are appended before each round
	Store    string             // "none", "fail", or one that works
	LLM      struct {
		Provider, Model string
		Responses       []codeliaResponse
	}
	Registry []codeliaModel
	Usages   []*codeliaUsage
	Config   codeliaConfig

	policy   policy.Policy
	asked    int              // how many of the responses were given
	requests []map[string]any // to the model
	saved    []codeliaMessage // to the store
}

type codeliaConfig struct {
	Enabled, Auto                        *bool
	ThresholdRatio, RetainLastTurns      *float64
	Model, SummaryPrompt                 *string
	RetainPrompt                         json.RawMessage // null: no retain section
	SummaryDirectives, RetainDirectives  []string
	MaxMessageBytes, ContextBudgetTokens *float64
	TotalBudgetTrim                      *bool
}

type codeliaResponse struct {
	Text, Error *string
	ErrorName   string
	Messages    []codeliaMessage
	Usage       json.RawMessage
}

type codeliaUsage struct {
	Model       *string
	TotalTokens *float64 `json:"total_tokens"`
}

func newCodelia(v vector) (*codelia, error) {
	c := &codelia{}
	if err := v.decode(c); err != nil {
		return nil, err
	}
	p, err := policy.Profile("codelia")
	if err != nil {
		return nil, err
	}
	if c.head() {
		p.Trigger, p.Budget.Max = 0.85, 100_000
	}
	c.LLM.Provider = orText(c.LLM.Provider, "openai")
	c.policy = p
	c.configure()
	return c, nil
}

func (c *codelia) head() bool { return c.Version == "head" }

// configure applies the call's options to the profile.
func (c *codelia) configure() {
	p, options := &c.policy, c.Config
	if options.ThresholdRatio != nil {
		p.Trigger = *options.ThresholdRatio
	}
	if options.MaxMessageBytes != nil {
		p.Cap.MaxBytes = int(math.Floor(*options.MaxMessageBytes))
	}
	if options.ContextBudgetTokens != nil {
		p.Budget.Tokens = int(math.Floor(*options.ContextBudgetTokens))
	}
	p.Budget.Enabled = !c.head() || options.TotalBudgetTrim == nil || *options.TotalBudgetTrim
	s := &p.Summarise
	s.Directives, s.RetainDirectives = options.SummaryDirectives, options.RetainDirectives
	if options.SummaryPrompt != nil {
		s.Prompt = orText(*options.SummaryPrompt, " ") // what is set to nothing is not the built-in one
	}
	if string(options.RetainPrompt) == "null" {
		s.Retain = false
	} else if prompt, ok := jsonText(options.RetainPrompt); ok {
		s.RetainPrompt = orText(prompt, " ")
	}
	if options.RetainLastTurns != nil {
		s.KeepTurns = int(math.Max(0, math.Floor(*options.RetainLastTurns)))
	}
}

// off reports whether an option that is on unless it is false is off.
func off(option *bool) bool { return option != nil && !*option }

func codeliaShould(v vector) (any, error) {
	c, err := newCodelia(v)
	if err != nil {
		return nil, err
	}
	results := make([]any, len(c.Usages))
	for i, usage := range c.Usages {
		results[i] = c.should(usage)
	}
	return map[string]any{"results": results}, nil
}

func (c *codelia) should(usage *codeliaUsage) any {
	if off(c.Config.Enabled) || off(c.Config.Auto) || usage == nil {
		return false
	}
	id := c.LLM.Model
	if usage.Model != nil {
		id = *usage.Model
	}
	for _, limit := range c.limits(c.dated(id)) {
		if limit > 0 {
			return usage.TotalTokens != nil && reached(int64(*usage.TotalTokens), limit, c.policy.Trigger)
		}
	}
	if c.head() {
		return false
	}
	return map[string]any{"error": fmt.Sprintf("Missing context limit for %s/%s in model registry", c.LLM.Provider, id)}
}

func codeliaCompact(v vector) (any, error) {
	c, err := newCodelia(v)
	if err != nil {
		return nil, err
	}
	answer := map[string]any{}
	if c.Rounds == nil {
		answer, err = c.compact(c.Messages)
	} else {
		answer["rounds"], err = c.rounds()
	}
	if err != nil {
		answer = map[string]any{}
	}
	answer["llmRequests"] = orEmpty(c.requests)
	return answer, err
}

func (c *codelia) rounds() (answers []map[string]any, err error) {
	var history []codeliaMessage
	for _, appended := range c.Rounds {
		answer, err := c.compact(slices.Concat(history, appended))
		if err != nil {
			return nil, err
		}
		history = answer["messages"].([]codeliaMessage)
		answers = append(answers, answer)
	}
	return answers, nil
}

func (c *codelia) compact(messages []codeliaMessage) (map[string]any, error) {
	unchanged := map[string]any{"compacted": false, "messages": orEmpty(messages), "usage": nil, "sameReference": true, "inputMutated": false}
	prepared := c.prepared(messages)
	if off(c.Config.Enabled) || c.head() && len(prepared) == 0 {
		return unchanged, nil
	}
	response, err := c.ask(prepared)
	if err != nil || response.Error != nil {
		return unchanged, err
	}
	if len(response.Usage) > 0 {
		unchanged["usage"] = response.Usage
	}
	answer, ok := summary.Parse(response.said(), c.policy.Summarise.Retain)
	if !ok {
		return unchanged, nil
	}
	changed := maps.Clone(unchanged)
	changed["compacted"], changed["sameReference"] = true, false
	changed["messages"] = c.compacted(messages, answer)
	return changed, nil
}

// prepared returns the messages that the model is asked about: a call that ends them has no result and would be refused.
func (c *codelia) prepared(messages []codeliaMessage) []codeliaMessage {
	messages = slices.Clone(messages)
	if c.head() {
		messages = slices.DeleteFunc(messages, codeliaMessage.remembers)
	}
	if len(messages) == 0 {
		return messages
	}
	last := messages[len(messages)-1]
	if last.text("role") != "assistant" || len(last.list("tool_calls")) == 0 {
		return messages
	}
	messages = messages[:len(messages)-1]
	if content, isText := jsonText(last["content"]); last.absent("content") || isText && content == "" {
		return messages
	}
	answer := maps.Clone(last)
	maps.DeleteFunc(answer, func(name string, _ json.RawMessage) bool {
		return !slices.Contains([]string{"role", "content", "name"}, name)
	})
	return append(messages, answer)
}

// ask gives the next scripted response. Only an abort is an error to the caller.
func (c *codelia) ask(prepared []codeliaMessage) (codeliaResponse, error) {
	p := c.policy.Summarise
	question := codeliaMessage{}
	question.set("role", "user")
	question.set("content", summary.Prompt(summary.Request{
		Style: summary.Codelia, Prompt: p.Prompt, Directives: p.Directives,
		Retain: p.Retain, RetainPrompt: p.RetainPrompt, RetainDirectives: p.RetainDirectives,
	}))
	request := map[string]any{"messages": append(prepared, question), "tools": nil, "toolChoice": "none"}
	if c.Config.Model != nil && *c.Config.Model != "" {
		request["model"] = *c.Config.Model
	}
	c.requests = append(c.requests, request)
	if c.asked == len(c.LLM.Responses) {
		none := "no response is left"
		return codeliaResponse{Error: &none}, nil
	}
	response := c.LLM.Responses[c.asked]
	c.asked++
	if slices.Contains([]string{"AbortError", "APIUserAbortError", "AbortSignal"}, response.ErrorName) && response.Error != nil {
		return response, &failure{Name: response.ErrorName, Message: *response.Error}
	}
	return response, nil
}

// said returns the text of the assistant messages of a response.
func (r codeliaResponse) said() string {
	if r.Text != nil {
		return *r.Text
	}
	var texts []string
	for _, m := range r.Messages {
		if m.text("role") != "assistant" || m.absent("content") {
			continue
		}
		if content, ok := jsonText(m["content"]); ok {
			texts = append(texts, content)
			continue
		}
		var b strings.Builder
		for _, part := range m.list("content") {
			switch part.text("type") {
			case "text":
				b.WriteString(part.text("text"))
			case "other":
				b.Write(appendJavaScript(nil, part["payload"]))
			}
		}
		texts = append(texts, b.String())
	}
	return string(text.Trim([]byte(strings.Join(texts, "\n"))))
}

const (
	retainMark  = "[codelia.compaction.retain]\n"
	summaryMark = "[codelia.compaction.summary]\n"
)

// compacted returns the new history: system messages, what is retained, the summary, and the last turns.
func (c *codelia) compacted(messages []codeliaMessage, answer summary.Answer) []codeliaMessage {
	var systems, others []codeliaMessage
	var retained, summaries []string
	for _, m := range messages {
		content, _ := jsonText(m["content"])
		switch {
		case m.text("role") == "system":
			systems = append(systems, m)
		case !c.head() || !m.remembers():
			others = append(others, m)
		case strings.HasPrefix(content, retainMark):
			retained = append(retained, content[len(retainMark):])
		default:
			summaries = append(summaries, content[len(summaryMark):])
		}
	}
	if c.head() {
		answer.Retain = marked(retainMark, summary.Carry(append(retained, answer.Retain), "\n\n"))
		if answer.Summary == "" && len(summaries) > 0 {
			answer.Summary = string(text.Trim([]byte(summaries[len(summaries)-1])))
		}
		answer.Summary = marked(summaryMark, answer.Summary)
	}
	history := systems
	for _, said := range []string{answer.Retain, answer.Summary} {
		if said != "" {
			m := codeliaMessage{}
			m.set("role", "user")
			m.set("content", said)
			history = append(history, m)
		}
	}
	return orEmpty(append(history, c.tail(others)...))
}

func marked(mark, text string) string {
	if text == "" {
		return ""
	}
	return mark + text
}

// tail returns the last turns. The system has no units: a turn begins wherever the user says something.
func (c *codelia) tail(messages []codeliaMessage) []codeliaMessage {
	turns := make([]summary.Turn, len(messages))
	for i, m := range messages {
		turns[i] = summary.Turn{User: m.text("role") == "user", UnitStart: true}
	}
	p := c.policy.Summarise
	kept := messages[summary.Boundary(turns, p.KeepTurns, p.KeepMessages, 0):]
	if !c.head() {
		return kept
	}
	var normal []codeliaMessage
	for _, m := range kept {
		switch m.text("role") {
		case "user":
			normal = append(normal, m)
		case "assistant":
			if !m.absent("content") || m.text("refusal") != "" {
				normal = append(normal, m.only("role", "content", "name", "refusal"))
			}
		}
	}
	return normal
}
