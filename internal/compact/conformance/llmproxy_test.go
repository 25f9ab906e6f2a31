package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/varve-dev/varve/internal/compact/resource"
	"github.com/varve-dev/varve/internal/compact/rule"
	"github.com/varve-dev/varve/internal/compact/text"
	"github.com/varve-dev/varve/internal/policy"
)

var llmProxyOperations = map[string]operation{
	"compact":               func(v vector) (any, error) { return decodeProxy(v, (*proxy).compact) },
	"compact_with_policies": func(v vector) (any, error) { return decodeProxy(v, (*proxy).compactWithPolicies) },
	"pipeline":              func(v vector) (any, error) { return decodeProxy(v, (*proxy).pipeline) },
	"should_compact":        func(v vector) (any, error) { return decodeProxy(v, (*proxy).shouldCompact) },
	"extractIdentity":       proxyIdentities,
	"categorize":            proxyCategories,
	"redact":                proxyRedaction,
	"diagnostics":           func(v vector) (any, error) { return decodeProxy(v, (*proxy).diagnostics) },
}

// proxy is a request of llm-interactive-proxy: messages in OpenAI's shape, with a member metadata of its own.
type proxy struct {
	Messages      []proxyMessage `json:"messages"`
	Config        proxyConfig    `json:"config"`
	ConfigBase    string         `json:"configBase"` // default: the lists of the manual, else none
	TokenEstimate *int           `json:"tokenEstimate"`
	ForceError    string         `json:"forceError"`
	Allowed       []string       `json:"tool_allowlist"`
	Denied        []string       `json:"tool_denylist"`

	policy policy.Policy
}

// proxyConfig is what the profile has no place for, and what changes the profile.
type proxyConfig struct {
	Enabled        bool                `json:"enabled"`
	TokenThreshold int                 `json:"token_threshold"`
	MaxTokens      int                 `json:"max_tokens"`
	MinTokens      *int                `json:"min_tool_output_tokens_to_compact"`
	Redact         bool                `json:"redact_resource_identifiers"`
	Allowed        *[]policy.Operation `json:"allowed_tool_categories"`
	Denied         *[]policy.Operation `json:"denied_tool_categories"`
	Alerts         proxyAlerts         `json:"alerts"`
}

func decodeProxy[T any](v vector, answer func(*proxy) T) (any, error) {
	policy, err := policy.Profile("llm-proxy")
	if err != nil {
		return nil, err
	}
	p := proxy{policy: policy, Config: proxyConfig{
		TokenThreshold: 100_000, MaxTokens: 150_000,
		Alerts: proxyAlerts{Window: 300, FailOpen: 3, Overflow: 3},
	}}
	if err := v.decode(&p); err != nil {
		return nil, err
	}
	p.applyConfig()
	return answer(&p), nil
}

// applyConfig changes the profile's rule. The application itself starts without the manual's lists.
func (p *proxy) applyConfig() {
	limits := &p.policy.Dedupe
	if p.ConfigBase != "default" {
		limits.AllowOperations, limits.DenyOperations = nil, nil
	}
	if p.Config.Allowed != nil {
		limits.AllowOperations = *p.Config.Allowed
	}
	if p.Config.Denied != nil {
		limits.DenyOperations = *p.Config.Denied
	}
	if p.Config.MinTokens != nil {
		limits.MinTokens = *p.Config.MinTokens
	}
	limits.Redact = p.Config.Redact
}

// compact compacts the request, with the gates of the service.
func (p *proxy) compact() *proxyResult {
	switch {
	case !p.Config.Enabled:
		return p.unchanged(proxyEvent{Reason: "disabled"})
	case len(p.Messages) == 0:
		r := p.unchanged()
		r.SameReference = false
		return r
	case p.belowThreshold():
		return p.unchanged(proxyEvent{Reason: "below_token_threshold"})
	}
	return p.compactWithPolicies()
}

func (p *proxy) belowThreshold() bool {
	return p.TokenEstimate != nil && *p.TokenEstimate <= p.Config.TokenThreshold
}

func (p *proxy) shouldCompact() map[string]bool {
	results := 0
	for _, m := range p.Messages {
		if m.isResult() {
			results++
		}
	}
	return map[string]bool{"result": p.Config.Enabled && !p.belowThreshold() && results >= 2}
}

func (p *proxy) compactWithPolicies() *proxyResult {
	if !p.Config.Enabled {
		return p.unchanged(proxyEvent{Reason: "policies_disabled"})
	}
	results, err := p.results()
	if err != nil {
		reason := err.Error()
		r := p.unchanged(proxyEvent{Reason: "fail_open", FailedOpen: true, FailureReason: &reason})
		r.Error, r.FailedOpen = &reason, true
		return r.finish(p)
	}
	return p.stub(results)
}

// pipeline compacts like a request does: it estimates before and after.
func (p *proxy) pipeline() any {
	estimate := p.estimate(p.Messages)
	switch {
	case !p.Config.Enabled:
		return map[string]any{"stage": "disabled"}
	case estimate < p.Config.TokenThreshold:
		return map[string]any{"stage": "below_threshold_fast", "tokenEstimate": estimate}
	}
	p.TokenEstimate = &estimate
	run := proxyRun{proxyResult: p.compact(), TokenEstimate: estimate, Stage: "not_compacted"}
	if run.WasCompacted {
		after := p.estimate(run.Messages)
		run.Stage, run.PostEstimate, run.OverflowWarning = "compacted", &after, after > p.Config.MaxTokens
	}
	return run
}

func (p *proxy) estimate(messages []proxyMessage) int {
	total := 0
	for _, m := range messages {
		total += len([]rune(m.content()))
	}
	return total / 4
}

// proxyToolResult is a message that tells which resource it is of.
type proxyToolResult struct {
	message   int
	tool      string
	text      string
	key       resource.Key
	operation string
}

// results finds the messages with a result for a resource, oldest first.
func (p *proxy) results() ([]proxyToolResult, error) {
	calls := p.calls()
	var results []proxyToolResult
	for i, m := range p.Messages {
		call, known := calls[m.text("tool_call_id")]
		if !known {
			call = proxyCall{tool: m.tool(), arguments: m.metadata()["tool_args"]}
		}
		content := m.content()
		if !m.isResult() || truthy(m.metadata()["_compacted"]) || call.tool == "" || content == "" {
			continue
		}
		operation := p.operation(call.tool)
		key, ok, err := p.identify(operation, call)
		if err != nil {
			return nil, err
		}
		if ok {
			results = append(results, proxyToolResult{i, call.tool, content, key, operation})
		}
	}
	return results, nil
}

func (p *proxy) operation(tool string) string {
	return resource.OperationOf(string(p.policy.Tools.Table), tool)
}

func (p *proxy) identify(operation string, call proxyCall) (resource.Key, bool, error) {
	if p.ForceError != "" {
		return resource.Key{}, false, fmt.Errorf("%s", p.ForceError)
	}
	arguments, err := proxyArguments(call.arguments)
	if err != nil {
		return resource.Key{}, false, err
	}
	key, ok := resource.Identify(operation, call.tool, arguments)
	return key, ok, nil
}

// proxyArguments returns arguments as the bytes that formats have for them, nil if there are none.
func proxyArguments(arguments any) ([]byte, error) {
	switch arguments := arguments.(type) {
	case nil:
		return nil, nil
	case string:
		return []byte(arguments), nil
	case map[string]any:
		return json.Marshal(arguments)
	}
	return nil, fmt.Errorf("'%s' object has no attribute 'get'", pythonType(arguments))
}

// stub replaces the results that a newer one of their resource supersedes.
func (p *proxy) stub(results []proxyToolResult) *proxyResult {
	occurrences := make([]rule.Occurrence[string], len(results))
	for i, result := range results {
		occurrences[i] = rule.Occurrence[string]{Key: result.key.Comparable(), Counts: true}
	}
	superseded := rule.Superseded(occurrences, p.policy.Dedupe.KeepLast)
	r, replaced := &proxyResult{OriginalCount: len(p.Messages)}, map[int]proxyMessage{}
	first := firstOfEach(occurrences)
	for _, i := range byResource(first) {
		if superseded[i] >= 0 {
			r.decide(p, results[i], keyName(results[first[i]].key), replaced)
		}
	}
	if len(r.Events) == 0 {
		return p.unchanged(proxyEvent{Reason: "no_stale_results"})
	}
	r.Messages, r.SameReference, r.Compacted = p.shown(replaced), len(replaced) == 0, len(replaced)
	return r.finish(p)
}

// firstOfEach returns for each occurrence the first one of its resource. It gives the resource its name, for tools are the
// same whatever their case.
func firstOfEach(occurrences []rule.Occurrence[string]) []int {
	known := map[string]int{}
	first := make([]int, len(occurrences))
	for i, o := range occurrences {
		if _, again := known[o.Key]; !again {
			known[o.Key] = i
		}
		first[i] = known[o.Key]
	}
	return first
}

// byResource orders occurrences by resource, in the order in which resources are first seen.
func byResource(first []int) []int {
	order := make([]int, len(first))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return first[a] - first[b] })
	return order
}

// eligible reports whether the lists let a tool's results be replaced: tools before operations, deny before allow.
func (p *proxy) eligible(tool, operation string) bool {
	has := func(list []string) bool {
		return slices.ContainsFunc(list, func(name string) bool { return strings.EqualFold(name, tool) })
	}
	limits, op := &p.policy.Dedupe, policy.Operation(operation)
	switch {
	case has(p.Denied):
		return false
	case has(p.Allowed):
		return true
	}
	return !slices.Contains(limits.DenyOperations, op) && (len(limits.AllowOperations) == 0 || slices.Contains(limits.AllowOperations, op))
}

// stubOf returns the text that replaces a result, in the profile's wording.
func (p *proxy) stubOf(result proxyToolResult) string {
	wording, err := text.Parse(p.policy.Wording.Stub, "ref", "tool", "resource", "bytes", "seq")
	if err != nil {
		panic(err)
	}
	return string(wording.Append(nil, func(dst []byte, name string) []byte {
		switch name {
		case "resource":
			if p.policy.Dedupe.Redact {
				return append(dst, resource.Redact(result.key.Primary)...)
			}
			return append(dst, result.key.Primary...)
		case "bytes":
			return strconv.AppendInt(dst, int64(len(result.text)), 10)
		}
		return dst
	}))
}

func proxyIdentities(v vector) (any, error) {
	var in struct {
		Cases []struct {
			Tool      string `json:"tool_name"`
			Arguments any    `json:"arguments"`
		} `json:"cases"`
	}
	if err := v.decode(&in); err != nil {
		return nil, err
	}
	identities := []any{}
	for _, c := range in.Cases {
		arguments, err := proxyArguments(c.Arguments)
		if err != nil {
			return nil, &failure{"AttributeError", err.Error()}
		}
		key, ok := resource.Identify(resource.OperationOf("llm-proxy", c.Tool), c.Tool, arguments)
		if !ok {
			identities = append(identities, nil)
			continue
		}
		identities = append(identities, map[string]any{
			"tool_name": key.Tool, "primary_key": key.Primary, "secondary_keys": append([]string{}, key.Secondary...), "str": keyName(key),
		})
	}
	return map[string]any{"identities": identities}, nil
}

func proxyCategories(v vector) (any, error) {
	var in struct {
		Tools []string `json:"tools"`
	}
	if err := v.decode(&in); err != nil {
		return nil, err
	}
	categories := []string{}
	for _, tool := range in.Tools {
		categories = append(categories, resource.OperationOf("llm-proxy", tool))
	}
	return map[string]any{"categories": categories}, nil
}

func proxyRedaction(v vector) (any, error) {
	var in struct {
		Texts []string `json:"texts"`
	}
	if err := v.decode(&in); err != nil {
		return nil, err
	}
	texts := []string{}
	for _, text := range in.Texts {
		texts = append(texts, resource.Redact(text))
	}
	return map[string]any{"texts": texts}, nil
}

// keyName returns a key as llm-interactive-proxy prints it.
func keyName(k resource.Key) string {
	return strings.Join(append([]string{k.Tool, k.Primary}, k.Secondary...), ":")
}
