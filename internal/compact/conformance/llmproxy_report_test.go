package conformance

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// proxyResult is what the service answers.
type proxyResult struct {
	Messages       []proxyMessage `json:"messages"`
	SameReference  bool           `json:"sameReference"`
	Compacted      int            `json:"compacted_count"`
	BytesSaved     int            `json:"bytes_saved"`
	TokensSaved    int            `json:"tokens_saved_estimate"`
	OriginalCount  int            `json:"original_message_count"`
	StaleResources []string       `json:"stale_resources"`
	Error          *string        `json:"error"`
	WasCompacted   bool           `json:"was_compacted"`
	FailedOpen     bool           `json:"failed_open"`
	Metrics        map[string]int `json:"metrics"`
	Events         []proxyEvent   `json:"event_records"`
	Aggregate      proxyAggregate `json:"aggregate_metrics"`
	Alerts         []proxyAlert   `json:"alerts"`
}

// proxyRun is what a request's pipeline answers.
type proxyRun struct {
	*proxyResult
	TokenEstimate   int    `json:"tokenEstimate"`
	PostEstimate    *int   `json:"postEstimate,omitempty"`
	OverflowWarning bool   `json:"overflowWarning"`
	Stage           string `json:"stage"`
}

// proxyEvent is what was decided about one result, or about the request.
type proxyEvent struct {
	CorrelationID   *string `json:"correlation_id"`
	CallID          *string `json:"tool_call_id"`
	Tool            string  `json:"tool_name"`
	Operation       string  `json:"tool_category"`
	KeyHash         string  `json:"resource_identity_hash"`
	KeyPreview      *string `json:"resource_identity_preview"`
	PreviewRedacted bool    `json:"resource_preview_redacted"`
	OriginalBytes   int     `json:"original_bytes"`
	CompactedBytes  int     `json:"compacted_bytes"`
	SavedBytes      int     `json:"saved_bytes"`
	OriginalTokens  int     `json:"original_tokens_estimate"`
	SavedTokens     int     `json:"saved_tokens_estimate"`
	Applied         bool    `json:"applied"`
	Reason          string  `json:"decision_reason"`
	FailedOpen      bool    `json:"failed_open"`
	FailureReason   *string `json:"failure_reason"`
	OriginalSHA256  *string `json:"original_sha256"`
	CompactedSHA256 *string `json:"compacted_sha256"`
	Message         *int    `json:"message_index"`
}

// proxyAggregate is the sum of a call's events.
type proxyAggregate struct {
	Processed      int            `json:"processed_evaluations"`
	Applied        int            `json:"applied_evaluations"`
	FailOpen       int            `json:"fail_open_count"`
	OriginalBytes  int            `json:"total_original_bytes"`
	CompactedBytes int            `json:"total_compacted_bytes"`
	SavedBytes     int            `json:"total_saved_bytes"`
	SavedTokens    int            `json:"total_saved_tokens_estimate"`
	ByOperation    map[string]int `json:"by_category"`
	ByReason       map[string]int `json:"by_decision_reason"`
}

// proxyAlerts says from how many events on to warn. The counters live for one call.
type proxyAlerts struct {
	Enabled  bool `json:"enabled"`
	Window   int  `json:"window_seconds"`
	FailOpen int  `json:"fail_open_threshold"`
	Overflow int  `json:"overflow_risk_threshold"`
}

type proxyAlert struct {
	Type      string  `json:"alert_type"`
	Threshold int     `json:"threshold"`
	Observed  int     `json:"observed_count"`
	Window    int     `json:"window_seconds"`
	Warning   string  `json:"warning"`
	Operation *string `json:"category"`
}

// unchanged answers the messages that came.
func (p *proxy) unchanged(events ...proxyEvent) *proxyResult {
	r := &proxyResult{Messages: p.shown(nil), SameReference: true, OriginalCount: len(p.Messages), Events: events}
	return r.finish(p)
}

// shown returns the messages as the proxy writes them, with those that were replaced.
func (p *proxy) shown(replaced map[int]proxyMessage) []proxyMessage {
	messages := []proxyMessage{}
	for i, m := range p.Messages {
		if stub, ok := replaced[i]; ok {
			m = stub
		}
		messages = append(messages, m.shown())
	}
	return messages
}

// decide records what becomes of a superseded result, and replaces it if nothing speaks against it.
func (r *proxyResult) decide(p *proxy, result proxyToolResult, name string, replaced map[int]proxyMessage) {
	m := p.Messages[result.message]
	id, preview := m.text("tool_call_id"), name
	if runes := []rune(preview); len(runes) > 200 {
		preview = string(runes[:200])
	}
	correlation := fmt.Sprintf("hc:%d:%s", result.message, cmp.Or(id, "none"))
	event := proxyEvent{
		CorrelationID: &correlation, CallID: &id, Tool: result.tool, Operation: result.operation, KeyHash: hash(name), KeyPreview: &preview,
		PreviewRedacted: p.policy.Dedupe.Redact, OriginalBytes: len(result.text), CompactedBytes: len(result.text),
		OriginalTokens: len(result.text) / 4, Message: &result.message,
	}
	switch minimum := p.policy.Dedupe.MinTokens; {
	case !p.eligible(result.tool, result.operation):
		event.Reason = "denied_by_policy"
	case minimum > 0 && codePointQuarters([]byte(result.text)) < minimum:
		event.Reason = "skipped_below_min_tokens"
	default:
		stub := p.stubOf(result)
		replaced[result.message] = m.stubbed(stub, len(result.text))
		before, after := hash(result.text), hash(stub)
		event.Reason, event.Applied, event.OriginalSHA256, event.CompactedSHA256 = "applied", true, &before, &after
		event.CompactedBytes, event.SavedBytes = len(stub), max(0, len(result.text)-len(stub))
		event.SavedTokens = event.SavedBytes / 4
		r.BytesSaved += event.SavedBytes
		r.StaleResources = append(r.StaleResources, name)
	}
	r.Events = append(r.Events, event)
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// finish counts.
func (r *proxyResult) finish(p *proxy) *proxyResult {
	slices.Sort(r.StaleResources)
	r.StaleResources = append([]string{}, slices.Compact(r.StaleResources)...)
	r.Events = append([]proxyEvent{}, r.Events...)
	r.TokensSaved, r.WasCompacted = r.BytesSaved/4, r.Compacted > 0
	r.Metrics = map[string]int{
		"compaction_messages_compacted": r.Compacted, "compaction_bytes_saved": r.BytesSaved, "compaction_tokens_saved_estimate": r.TokensSaved,
		"compaction_original_count": r.OriginalCount, "compaction_stale_resources_count": len(r.StaleResources), "compaction_failed_open": 0,
	}
	if r.FailedOpen {
		r.Metrics["compaction_failed_open"] = 1
	}
	r.Aggregate = proxyAggregate{ByOperation: map[string]int{}, ByReason: map[string]int{}}
	r.Alerts = []proxyAlert{}
	for _, event := range r.Events {
		r.Aggregate.add(event)
		r.Alerts = append(r.Alerts, p.Config.Alerts.of(event)...)
	}
	return r
}

func (a *proxyAggregate) add(event proxyEvent) {
	a.Processed++
	if event.Applied {
		a.Applied++
	}
	if event.FailedOpen {
		a.FailOpen++
	}
	a.OriginalBytes += event.OriginalBytes
	a.CompactedBytes += event.CompactedBytes
	a.SavedBytes += event.SavedBytes
	a.SavedTokens += event.SavedTokens
	a.ByOperation[cmp.Or(event.Operation, "unknown")]++
	a.ByReason[event.Reason]++
}

// of returns the warnings about an event. A call fails open once, so only a threshold of one is ever reached.
func (a proxyAlerts) of(event proxyEvent) []proxyAlert {
	if !a.Enabled || !event.FailedOpen {
		return nil
	}
	var alerts []proxyAlert
	warn := func(name, kind string, threshold int) {
		if threshold <= 1 {
			warning := fmt.Sprintf("History compaction %s events are frequent; category=, count=1, window_seconds=%d.", name, a.Window)
			alerts = append(alerts, proxyAlert{Type: kind, Threshold: threshold, Observed: 1, Window: a.Window, Warning: warning})
		}
	}
	warn("fail-open", "fail_open_rate", a.FailOpen)
	if strings.Contains(strings.ToLower(*event.FailureReason), "overflow") {
		warn("overflow-risk", "overflow_risk_rate", a.Overflow)
	}
	return alerts
}

// diagnostics says which controls are on.
func (p *proxy) diagnostics() any {
	active := []string{
		fmt.Sprintf("compaction.token_threshold=%d", p.Config.TokenThreshold), fmt.Sprintf("compaction.max_tokens=%d", p.Config.MaxTokens),
		fmt.Sprintf("compaction.min_tool_output_tokens_to_compact=%d", p.policy.Dedupe.MinTokens),
	}
	inactive, reasons := []string{}, map[string]string{}
	control := func(on bool, name, absent, reason string) {
		if on {
			active = append(active, name)
			return
		}
		inactive = append(inactive, absent)
		reasons[strings.TrimSuffix(absent, "_empty")] = reason
	}
	control(p.Config.Enabled, "compaction.enabled", "compaction.enabled", "Compaction disabled in configuration.")
	control(p.policy.Dedupe.Redact, "compaction.redact_resource_identifiers", "compaction.redact_resource_identifiers",
		"Redaction disabled; resource identifiers may appear in stub text.")
	allowed, denied := list(p.policy.Dedupe.AllowOperations), list(p.policy.Dedupe.DenyOperations)
	control(allowed != "", "compaction.allowed_tool_categories="+allowed, "compaction.allowed_tool_categories_empty",
		"Allowlist empty; all non-denied tool categories are eligible.")
	if denied != "" {
		active = append(active, "compaction.denied_tool_categories="+denied)
	}
	all := slices.Sorted(slices.Values(slices.Concat(active, inactive)))
	return map[string]any{"diagnostics": map[string]any{
		"active_controls": slices.Sorted(slices.Values(active)), "inactive_controls": append([]string{}, slices.Sorted(slices.Values(inactive))...),
		"ignored_controls": []string{}, "reasons": reasons, "fingerprint": hash(strings.Join(all, "|"))[:16], "warnings": []string{},
	}}
}

func list[S ~string](names []S) string {
	var texts []string
	for _, name := range names {
		texts = append(texts, string(name))
	}
	slices.Sort(texts)
	return strings.Join(texts, ",")
}
