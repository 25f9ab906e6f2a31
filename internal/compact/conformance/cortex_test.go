package conformance

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/varve-dev/varve/internal/compact/rule"
	"github.com/varve-dev/varve/internal/policy"
)

var cortexOperations = map[string]operation{
	"estimateTokens": cortexEstimate,
	"capToolResult":  cortexCap,
	"applyBookend":   cortexBookend,
	"computeAction":  cortexAction,
	"trimState":      cortexTrimState,
	"micro":          cortexMicro,
}

func cortexEstimate(v vector) (any, error) {
	var in struct{ Text string }
	err := v.decode(&in)
	return map[string]any{"tokens": utf16Quarters([]byte(in.Text))}, err
}

func cortexCap(v vector) (any, error) {
	var in struct{ Text string }
	if err := v.decode(&in); err != nil {
		return nil, err
	}
	c, err := newCortex(v)
	return map[string]any{"content": c.capAtInsertion(in.Text)}, err
}

func cortexBookend(v vector) (any, error) {
	var in struct {
		Text, ToolName, Path                 string
		HeadChars, TailChars, OriginalTokens int
	}
	if err := v.decode(&in); err != nil {
		return nil, err
	}
	c, err := newCortex(v)
	action := trimAction{Step: rule.Bookend, Head: in.HeadChars, Tail: in.TailChars, Tokens: in.OriginalTokens}
	if in.Path != "" {
		return map[string]any{"content": c.persistedText(in.Text, action, in.ToolName, in.Path)}, err
	}
	return map[string]any{"content": c.trimmedText(in.Text, action)}, err
}

func cortexAction(v vector) (any, error) {
	var in struct {
		Messages                 []cortexMessage
		HotZone, DegradationSpan float64
		Offsets                  []float64
	}
	if err := v.decode(&in); err != nil {
		return nil, err
	}
	c, err := newCortex(v)
	var actions []map[string]any
	for _, offset := range in.Offsets {
		actions = append(actions, map[string]any{"tokenOffset": offset, "action": c.action(in.Messages[0], offset, in.HotZone, in.DegradationSpan)})
	}
	return map[string]any{"actions": actions}, err
}

func cortexTrimState(v vector) (any, error) {
	var in struct {
		Messages                  []cortexMessage
		ContextWindow, UsageRatio float64
	}
	if err := v.decode(&in); err != nil {
		return nil, err
	}
	c, err := newCortex(v)
	return c.trimState(in.Messages, in.ContextWindow, in.UsageRatio), err
}

// cortexCall is one call of apply on an engine.
type cortexCall struct {
	Messages                     []cortexMessage
	ContextWindow, CurrentTokens float64
	CacheCold                    *bool
	ResetCache                   bool
}

func cortexMicro(v vector) (any, error) {
	var in struct {
		cortexCall
		Calls []cortexCall
	}
	if err := v.decode(&in); err != nil {
		return nil, err
	}
	c, err := newCortex(v)
	if in.Calls == nil {
		answer := c.apply(in.cortexCall)
		answer["persisted"] = c.persisted
		return answer, err
	}
	var results []map[string]any
	for _, call := range in.Calls {
		if call.Messages == nil {
			call.Messages = in.Messages
		}
		results = append(results, c.apply(call))
	}
	return map[string]any{"results": results, "persisted": c.persisted}, err
}

// cortex is one engine of the system: the profile with the vector's configuration, and what it remembers.
type cortex struct {
	policy     policy.Policy
	multiplier float64 // of the hot zone of what cannot be had again
	persist    string  // "ok", "fail", or "" for no persister
	persisted  []map[string]any
	state      *trimState
}

// trimState are the actions of a history by index, reused as long as its length and band of usage stay.
type trimState struct {
	HistoryLength   int                `json:"historyLength"`
	UtilizationBand int                `json:"utilizationBand"`
	Actions         map[int]trimAction `json:"actions"`
}

// cortexConfig is the system's configuration; what is not given is the profile's.
type cortexConfig struct {
	MaxResultTokens, HotZoneMinTokens, BookendMaxChars, BookendMinChars             *int
	TrimFloorRatio, HotZoneRatio, DegradationSpanRatio, ExtendedRetentionMultiplier *float64
	ToolCategories                                                                  map[string]policy.Category
}

// newCortex puts the vector's configuration over the profile.
func newCortex(v vector) (*cortex, error) {
	var in struct {
		Config  cortexConfig
		Persist *struct{ Mode string }
	}
	p, err := policy.Profile("cortex")
	if err == nil {
		err = v.decode(&in)
	}
	in.Config.apply(&p)
	c := &cortex{policy: p, multiplier: 1.5, persisted: []map[string]any{}}
	if in.Persist != nil {
		c.persist, c.multiplier = in.Persist.Mode, 1
	}
	set(&c.multiplier, in.Config.ExtendedRetentionMultiplier)
	return c, err
}

func (g cortexConfig) apply(p *policy.Policy) {
	set(&p.Cap.MaxTokens, g.MaxResultTokens)
	set(&p.Cap.HeadChars, g.BookendMaxChars)
	set(&p.Cap.TailChars, g.BookendMaxChars)
	set(&p.Trim.FloorRatio, g.TrimFloorRatio)
	set(&p.Trim.HotZoneMinTokens, g.HotZoneMinTokens)
	set(&p.Trim.HotZoneRatio, g.HotZoneRatio)
	set(&p.Trim.BookendMaxChars, g.BookendMaxChars)
	set(&p.Trim.BookendMinChars, g.BookendMinChars)
	set(&p.Trim.DegradationSpanRatio, g.DegradationSpanRatio)
	for tool, category := range g.ToolCategories {
		if category != "" {
			p.Trim.Categories[tool] = category
		}
	}
}

// set overwrites what the vector gives.
func set[T any](setting, given *T) {
	if given != nil {
		*setting = *given
	}
}

// apply runs one turn of microcompaction.
func (c *cortex) apply(call cortexCall) map[string]any {
	if call.ResetCache {
		c.state = nil
	}
	after, changed := call.Messages, false
	ratio := call.CurrentTokens / call.ContextWindow
	warm := call.CacheCold != nil && !*call.CacheCold
	if call.ContextWindow > 0 && len(call.Messages) > 0 && !warm && !(ratio < c.policy.Trim.FloorRatio) {
		after, changed = c.trim(call.Messages, call.ContextWindow, ratio)
	}
	return map[string]any{"messages": after, "sameReference": !changed, "inputMutated": false, "cachedState": c.state}
}

func (c *cortex) trim(history []cortexMessage, window, ratio float64) (after []cortexMessage, changed bool) {
	if c.state == nil || c.state.HistoryLength != len(history) || c.state.UtilizationBand != band(ratio) {
		c.state = c.trimState(history, window, ratio)
	}
	after = slices.Clone(history)
	for i := range after {
		if action, ok := c.state.Actions[i]; ok {
			after[i] = c.trimMessage(history[i], i, action)
		}
	}
	return after, len(c.state.Actions) > 0
}

func band(ratio float64) int { return int(math.Floor(ratio * 10)) }

// trimState walks the history from its end and ages each tool result by the tokens behind it.
func (c *cortex) trimState(history []cortexMessage, window, ratio float64) *trimState {
	state := &trimState{len(history), band(ratio), map[int]trimAction{}}
	zone := max(float64(c.policy.Trim.HotZoneMinTokens), window*c.policy.Trim.HotZoneRatio)
	span := window * c.policy.Trim.DegradationSpanRatio
	behind := 0
	for i, message := range slices.Backward(history) {
		if message.isToolResult() {
			if action := c.action(message, float64(behind), zone, span); action.Step != rule.Whole {
				state.Actions[i] = action
			}
		}
		behind += utf16Quarters([]byte(message.text()))
	}
	return state
}

// trimAction is what becomes of a tool result.
type trimAction struct {
	Step               rule.Step
	Clear              bool // Line, but without a preview
	Head, Tail, Tokens int
	Tool, Preview      string
}

// MarshalJSON writes the action as the system does.
func (a trimAction) MarshalJSON() ([]byte, error) {
	switch {
	case a.Step == rule.Whole:
		return json.Marshal(map[string]any{"kind": "full"})
	case a.Step == rule.Bookend:
		return json.Marshal(map[string]any{"kind": "bookend", "headChars": a.Head, "tailChars": a.Tail, "originalTokens": a.Tokens})
	case a.Clear:
		return json.Marshal(map[string]any{"kind": "clear"})
	}
	return json.Marshal(map[string]any{"kind": "placeholder", "toolName": a.Tool, "preview": a.Preview})
}

func (c *cortex) action(message cortexMessage, distance, zone, span float64) trimAction {
	tool, named := message.toolName()
	category := c.category(tool)
	if category == policy.NonReproducible {
		zone *= c.multiplier
	}
	if !named {
		tool = "unknown"
	}
	content := []byte(message.text())
	aging := rule.Aging{Zone: zone, Span: span, MaxChars: c.policy.Trim.BookendMaxChars, MinChars: c.policy.Trim.BookendMinChars}
	step, chars := aging.At(distance)
	return trimAction{
		Step:  step,
		Clear: category == policy.Ephemeral,
		Head:  chars, Tail: chars, Tokens: utf16Quarters(content),
		Tool: tool, Preview: preview(content, 80),
	}
}

// category returns what a tool is worth; one without a name has no category, whatever the table has.
func (c *cortex) category(tool string) policy.Category {
	if tool == "" {
		return ""
	}
	return c.policy.Trim.Categories[tool]
}
