package importer

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Spans of OpenTelemetry in OTLP's JSON, alone or as lines, and log records that belong to them. A span of a model's
// call has the messages so far and the answer in its attributes, or in its events (otlp_events.go): by the conventions
// for generative AI (https://opentelemetry.io/docs/specs/semconv/gen-ai/), those of OpenLLMetry and OpenInference,
// which number the messages, those of the AI SDK, and those of Google's ADK. Other spans are counted by their
// operation.
var otlp = source{
	name:  OTLP,
	title: "OpenTelemetry spans and events of models' calls (OTLP JSON)",
	detect: marked("resourceSpans[]", "resource_spans[]", "0.resourceSpans[]", "resourceLogs[]", "resource_logs[]",
		"0.resourceLogs[]"),
	read: readOTLP,
}

// spanLog is what OTLP's records are read from. Log records may come before the spans that they belong to.
type spanLog struct {
	*traceLog
	spans   []entry
	records map[string][]otlpEvent // of models' calls, by the keys of their spans
	order   []string               // of these keys
}

func readOTLP(f *File, id string, data []byte) error {
	l := &spanLog{traceLog: &traceLog{file: f}, records: map[string][]otlpEvent{}}
	line := 0
	for e := range f.records(data) {
		for resource := range objects(e.first("resourceSpans", "resource_spans")) {
			for scope := range objects(resource.first("scopeSpans", "scope_spans", "instrumentationLibrarySpans")) {
				for span := range f.elements(parseArray(scope["spans"])) {
					line++
					span.line = line
					l.spans = append(l.spans, span)
				}
			}
		}
		for resource := range objects(e.first("resourceLogs", "resource_logs")) {
			for scope := range objects(resource.first("scopeLogs", "scope_logs", "instrumentationLibraryLogs")) {
				for record := range f.elements(parseArray(scope.first("logRecords", "log_records"))) {
					line++
					record.line = line
					l.record(record)
				}
			}
		}
	}
	for _, span := range l.spans {
		l.span(span)
	}
	l.alone()
	l.finish(id)
	return nil
}

// span adds a span, with what log records say of it.
func (l *spanLog) span(e entry) {
	a := otlpAttributes(e.object["attributes"])
	events := listedEvents(a)
	for event := range objects(e.object["events"]) {
		events = append(events, spanEvent(event))
	}
	events = append(events, l.take(spanKey(e.object))...)
	operation := stringValue(a.attribute("gen_ai.operation.name"))
	if operation == "" {
		operation = e.text("name")
	}
	l.called(e, a, events, operation)
}

// called adds a call of a model, or what a program as a whole did.
func (l *spanLog) called(e entry, a object, events []otlpEvent, operation string) {
	for _, event := range events {
		for name, value := range event.attributes {
			if a[name] == nil {
				a[name] = value
			}
		}
	}
	x := exchange{
		entry: e, trace: e.text("traceId"), kind: "span " + operation, at: otlpTime(e.object["startTimeUnixNano"]),
		input: otlpInput(a, events), output: otlpOutput(a, events),
	}
	if x.at.IsZero() && len(events) > 0 {
		x.at = events[0].at
	}
	switch {
	case !has(x.input) && !has(x.output):
		l.file.count(e, skipped(x.kind))
	case slices.Contains([]string{"invoke_agent", "create_agent", "execute_tool", "invoke_workflow"}, operation):
		l.roots = append(l.roots, x)
	default:
		l.calls = append(l.calls, x)
	}
}

// otlpAttributes returns attributes by their whole names, as JSON.
func otlpAttributes(raw []byte) object {
	all := object{}
	for o := range objects(raw) {
		all[o.text("key")] = otlpValue(parseObject(o["value"]))
	}
	return all
}

// otlpValue returns a value as JSON (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding).
func otlpValue(o object) []byte {
	switch {
	case parseObject(o["arrayValue"]) != nil:
		var all [][]byte
		for inner := range objects(o.at("arrayValue.values")) {
			all = append(all, or(otlpValue(inner), "null"))
		}
		return list(all)
	case parseObject(o["kvlistValue"]) != nil:
		var members [][]byte
		for inner := range objects(o.at("kvlistValue.values")) {
			value := or(otlpValue(parseObject(inner["value"])), "null")
			members = append(members, fill(`%:%`, quote(inner.text("key")), value))
		}
		return inBraces(members)
	}
	if n := stringValue(o["intValue"]); n != "" && validText([]byte(n)) { // OTLP writes 64 bits as a string
		return []byte(n)
	}
	return o.first("stringValue", "intValue", "doubleValue", "boolValue")
}

// otlpInput returns what a model was given: a request, or messages.
func otlpInput(a object, events []otlpEvent) []byte {
	messages := a.attribute("gen_ai.input.messages", "ai.prompt.messages", "gen_ai.prompt", "gen_ai.content.prompt",
		"gcp.vertex.agent.llm_request", "input.value")
	if messages == nil {
		messages = numbered(a, "gen_ai.prompt.", "llm.input_messages.")
	}
	if messages == nil {
		messages = givenIn(events)
	}
	system := a.attribute("gen_ai.system_instructions")
	if system == nil {
		return messages
	}
	all := parseArray(unfolded(messages))
	first := fill(`{"role":"system","parts":%}`, unfolded(system))
	return list(append([][]byte{first}, all...))
}

// otlpOutput returns what a model answered.
func otlpOutput(a object, events []otlpEvent) []byte {
	found := a.attribute("gen_ai.output.messages", "gen_ai.completion", "gen_ai.content.completion",
		"gcp.vertex.agent.llm_response")
	if found != nil {
		return firstChoice(found)
	}
	if found := numbered(a, "gen_ai.completion.", "llm.output_messages."); found != nil {
		return found
	}
	if found := chosenIn(events); found != nil {
		return found
	}
	if calls := a.attribute("ai.response.toolCalls"); calls != nil {
		m := &chatMessage{role: "assistant", content: nonEmpty(a["ai.response.text"])}
		m.addTracedCalls(calls)
		return list([][]byte{m.body()})
	}
	return a.attribute("ai.response.text", "output.value")
}

// firstChoice returns what a model answered without its other choices, each of which has a reason why it ended.
func firstChoice(messages []byte) []byte {
	all := parseArray(unfolded(messages))
	for _, raw := range all {
		if !parseObject(raw).has("finish_reason") {
			return messages
		}
	}
	if len(all) < 2 {
		return messages
	}
	return list(all[:1])
}

// attribute returns the first attribute that is there. Their names have dots, which are no path.
func (o object) attribute(names ...string) []byte {
	for _, name := range names {
		if has(o[name]) {
			return o[name]
		}
	}
	return nil
}

// numbered returns the messages whose members are attributes of their own, such as gen_ai.prompt.0.role.
func numbered(a object, prefixes ...string) []byte {
	for _, prefix := range prefixes {
		var all [][]byte
		for i := 0; ; i++ {
			m := beneath(a, prefix+strconv.Itoa(i)+".")
			if len(m) == 0 {
				break
			}
			all = append(all, numberedMessage(m))
		}
		if all != nil {
			return list(all)
		}
	}
	return nil
}

// beneath returns the attributes that begin with a prefix, without it and without the word that OpenInference puts
// before each.
func beneath(a object, prefix string) object {
	m := object{}
	for name, value := range a {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			m[strings.TrimPrefix(strings.TrimPrefix(rest, "message."), "tool_call.")] = value
		}
	}
	return m
}

func numberedMessage(m object) []byte {
	said := &chatMessage{role: tracedRole(stringValue(or(m["role"], `"assistant"`)))}
	said.addTexts(m["content"])
	for i := 0; ; i++ {
		part := beneath(m, "contents."+strconv.Itoa(i)+".message_content.")
		if len(part) == 0 {
			break
		}
		if kind := part["type"]; part["text"] == nil && part["image.image.url"] == nil {
			said.blocks = append(said.blocks, fill(`{"type":%}`, or(kind, `""`)))
		}
		said.addTexts(part["text"])
		if url := part["image.image.url"]; has(url) {
			said.addImages(url)
		}
	}
	for i := 0; ; i++ {
		call := beneath(m, "tool_calls."+strconv.Itoa(i)+".")
		if len(call) == 0 {
			break
		}
		name := call.attribute("name", "function.name")
		said.addCall(call["id"], name, call.attribute("arguments", "function.arguments"))
	}
	if said.role == "tool" {
		said.answers = or(m["tool_call_id"], `""`)
	}
	return or(said.body(), `{"role":"assistant","content":""}`)
}

// otlpTime reads nanoseconds since 1970, which OTLP writes as a string.
func otlpTime(raw []byte) time.Time {
	text := stringValue(raw)
	if text == "" {
		text = string(raw)
	}
	ns, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ns <= 0 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC().Truncate(time.Microsecond)
}
