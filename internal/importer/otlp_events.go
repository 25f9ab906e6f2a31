package importer

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/varve-dev/varve/internal/session"
)

// Until version 1.36 of the conventions for generative AI, each message that a model is given, and each choice of its
// answer, is an event: of the span (Azure's SDKs, Strands), in an attribute of it (Pydantic AI), or a log record that
// names the span (OpenTelemetry's own instrumentations)
// (https://github.com/open-telemetry/semantic-conventions/blob/v1.36.0/docs/gen-ai/gen-ai-events.md).

// otlpEvent is an event of a span.
type otlpEvent struct {
	name       string
	at         time.Time
	attributes object
	body       object // what it says
	record     entry  // of a log record
}

const choiceEvent = "gen_ai.choice"

// role returns the role of the message that an event is, "" for any other event.
func (e otlpEvent) role() string {
	name, ok := strings.CutSuffix(strings.TrimPrefix(e.name, "gen_ai."), ".message")
	if e.name == choiceEvent {
		return "assistant"
	}
	if !ok || len(name)+len("gen_ai.")+len(".message") != len(e.name) {
		return ""
	}
	return tracedRoles[name]
}

func spanEvent(o object) otlpEvent {
	a := otlpAttributes(o["attributes"])
	body := a.attribute("gen_ai.event.content")
	return otlpEvent{name: o.text("name"), at: otlpTime(o["timeUnixNano"]), attributes: a, body: eventBody(body, a)}
}

// listedEvents returns the events that a span has in an attribute, flat: the name is a member beside the others.
func listedEvents(a object) (events []otlpEvent) {
	for o := range objects(unfolded(a.attribute("events", "all_messages_events"))) {
		events = append(events, otlpEvent{name: stringValue(o["event.name"]), body: o})
	}
	return events
}

// record adds a log record.
func (l *spanLog) record(e entry) {
	a := otlpAttributes(e.object["attributes"])
	name := stringValue(or(nonEmpty(e.object["eventName"]), string(a.attribute("event.name", "logrecord.event.name"))))
	at := otlpTime(e.object["timeUnixNano"])
	if at.IsZero() {
		at = otlpTime(e.object["observedTimeUnixNano"])
	}
	body := eventBody(otlpValue(parseObject(e.object["body"])), a)
	event := otlpEvent{name: name, at: at, attributes: a, body: body, record: e}
	key := spanKey(e.object)
	switch {
	case event.role() == "" && name != "gen_ai.client.inference.operation.details":
		l.file.count(e, skipped(strings.TrimSpace("log record "+name)))
	case key == "":
		l.file.count(e, skipped("log record "+name+" of no span"))
	default:
		if l.records[key] == nil {
			l.order = append(l.order, key)
		}
		l.records[key] = append(l.records[key], event)
	}
}

// spanKey returns what a span is known by, and a log record of it; "" for a record of no span.
func spanKey(o object) string {
	if o.text("spanId") == "" {
		return ""
	}
	return o.text("traceId") + " " + o.text("spanId")
}

// alone adds the calls of which the file has the log records alone.
func (l *spanLog) alone() {
	for _, key := range l.order {
		if events := l.take(key); events != nil {
			l.called(events[0].record, object{}, events, "of log records")
		}
	}
}

// take returns the log records of a span in the order of their times, nil if there are none.
func (l *spanLog) take(key string) []otlpEvent {
	events := l.records[key]
	delete(l.records, key)
	slices.SortStableFunc(events, func(a, b otlpEvent) int { return a.at.Compare(b.at) })
	return events
}

// eventBody returns what an event says: an object, be it in a string, or a text. Without either its attributes say it.
func eventBody(content []byte, a object) object {
	if o := parseObject(unfolded(content)); o != nil {
		return o
	}
	body := maps.Clone(a)
	if has(content) && a.attribute("content", "message") == nil {
		body["content"] = content
	}
	return body
}

// givenIn returns the messages that a model was given as events tell, nil if they tell none.
func givenIn(events []otlpEvent) []byte {
	var all [][]byte
	for _, e := range events {
		if m := e.message(); e.name != choiceEvent && m != nil {
			all = append(all, m)
		}
	}
	if all == nil {
		return nil
	}
	return list(all)
}

// chosenIn returns the first choice of an answer, nil if the events tell none.
func chosenIn(events []otlpEvent) []byte {
	for _, e := range events {
		if m := e.message(); e.name == choiceEvent && m != nil {
			return list([][]byte{m})
		}
	}
	return nil
}

// message returns the message that an event is, nil if it says nothing: contents are recorded on request alone.
func (e otlpEvent) message() []byte {
	role, body := e.role(), e.body
	if role == "" {
		return nil
	}
	if said := unfolded(body["message"]); e.name == choiceEvent && has(said) {
		inner := parseObject(said)
		if inner == nil {
			inner = object{"content": said}
		}
		body = maps.Clone(body)
		maps.Copy(body, inner)
	}
	if inner := parseObject(body["content"]); inner.has("parts") || inner.has("content") {
		body = inner // of Google's SDKs, and of some that have the whole message there
	}
	if own := tracedRoles[body.text("role")]; own != "" && role != "tool" {
		role = own
	}
	if body.has("parts") {
		return fill(`{"role":%,"parts":%}`, or(nonEmpty(body["role"]), string(quote(role))), body["parts"])
	}
	content := body.first("content.text.value", "content")
	calls := body.first("tool_calls", "content.tool_calls")
	if !has(content) && !parseObject(firstElement(calls)).has("function.name") {
		return nil
	}
	var id []byte
	if role == "tool" {
		id = member("tool_call_id", body.first("tool_call_id", "id"))
	}
	if blocks := unfolded(content); isConverse(blocks) || role != "tool" && hasKinds(blocks) {
		content = withTypes(blocks)
	} else if role == "tool" {
		content = inString(content)
	}
	return fill(`{"role":%,"content":%%%}`, quote(role), or(content, "null"), member("tool_calls", calls), id)
}

// hasKinds reports whether a list has nothing but blocks of a message.
func hasKinds(list []byte) bool {
	known := set("text", "thinking", "reasoning", "tool_use", "tool_result", "image", "image_url", "image-url")
	for o := range objects(list) {
		if !known[stringValue(o.first("type", "kind"))] {
			return false
		}
	}
	return len(parseArray(list)) > 0
}

// withTypes returns a content whose blocks have their type in "kind", as Pydantic AI's do, with types.
func withTypes(content []byte) []byte {
	var blocks [][]byte
	for o := range objects(content) {
		if o.has("type") || !o.has("kind") {
			return content
		}
		kind := map[string]string{"image-url": "image", "thinking": "reasoning"}[o.text("kind")]
		kind = cmp.Or(kind, o.text("kind"))
		blocks = append(blocks, fill(`{"type":%%%}`, quote(kind), member("text", o["text"]), member("url", o["url"])))
	}
	if blocks == nil {
		return content
	}
	return list(blocks)
}

// isConverse reports whether a content is one of Bedrock's Converse API, whose blocks have no type.
func isConverse(content []byte) bool {
	for o := range objects(content) {
		if o == nil || o.has("type") || o.has("kind") || o.has("role") || !isString(o["text"]) &&
			o.first("toolUse.toolUseId", "toolResult.toolUseId", "reasoningContent", "cachePoint") == nil {
			return false
		}
	}
	return len(parseArray(content)) > 0
}

// converse adds a message of Bedrock's Converse API. One of texts alone fits every format.
func (s *side) converse(o object, role string) error {
	var texts [][]byte
	for block := range objects(o["content"]) {
		if isString(block["text"]) {
			texts = append(texts, textBlock(block["text"]))
		}
	}
	if o.has("role") {
		role = tracedRole(o.text("role"))
	}
	if len(texts) == len(parseArray(o["content"])) {
		s.rewritten(object{"content": list(texts), "tool_call_id": o["tool_call_id"]}, role)
		return nil
	}
	if role == "tool" {
		role = "user"
	}
	body, err := converse(s.draft, object{"role": quote(role), "content": o["content"]})
	if err == nil {
		s.said = append(s.said, said{body: body, format: session.Anthropic})
	}
	return err
}
