package importer

import (
	"errors"
	"fmt"
	"strings"

	"github.com/varve-dev/varve/internal/session"
)

// message adds a message of any framework. One that a provider would take stands as it is; others become OpenAI Chat's.
func (s *side) message(raw []byte, o object, role string) error {
	if o == nil {
		return errors.New("not a JSON object")
	}
	fields, kind := langChainFields(o)
	switch {
	case kind != "":
		return s.langChain(fields, kind)
	case o.has("message.role"):
		return s.message(o["message"], parseObject(o["message"]), role)
	case o.has("parts"):
		return s.parts(o)
	case responsesItems[o.text("type")], o.fits("type=message role") && signal(o) != session.Anthropic:
		s.said = append(s.said, said{body: responsesItem(raw, o), format: session.OpenAIResponses})
		return nil
	case o.text("type") == "message":
		s.said = append(s.said, said{body: message(o.text("role"), o["content"]), format: session.Anthropic})
		return nil
	case isConverse(o["content"]):
		return s.converse(o, role)
	}
	return s.chat(raw, o, role)
}

// responsesItem returns an item as it stands, but for arguments that were decoded from their string.
func responsesItem(raw []byte, o object) []byte {
	if o.text("type") != "function_call" || isString(o["arguments"]) {
		return raw
	}
	const call = `{"type":"function_call","call_id":%,"name":%,"arguments":%}`
	return fill(call, inString(o["call_id"]), inString(o["name"]), inString(or(o["arguments"], "{}")))
}

func (s *side) langChain(fields object, role string) error {
	m := &graphMessage{chatMessage: chatMessage{role: role}}
	m.addContent(s.draft, fields)
	m.call(fields)
	for i, raw := range m.calls {
		if call := parseObject(raw); !isString(call.at("function.arguments")) {
			m.calls = append(m.calls[:i], m.calls[i+1:]...)
			m.addCall(call["id"], call.at("function.name"), call.at("function.arguments"))
		}
	}
	s.add(&m.chatMessage)
	return nil
}

// add adds a message of OpenAI Chat that was put together. One that says nothing is noted.
func (s *side) add(m *chatMessage) {
	if m.role == "tool" {
		m.answers = s.answered(m.answers)
		if m.answers == nil {
			m.role = "user"
		}
	}
	for _, raw := range m.calls {
		s.called(parseObject(raw)["id"])
	}
	body := m.body()
	if body == nil {
		s.draft.file.count(entry{}, skipped(m.role+" without content"))
		s.draft.note("a message of role %s in the %s says nothing and was left out", m.role, s.name)
		return
	}
	format := session.Format("")
	if m.answers != nil || m.calls != nil {
		format = session.OpenAIChat
	}
	s.said = append(s.said, said{body: body, format: format})
}

// called remembers a call.
func (s *side) called(id []byte) {
	s.calls = append(s.calls, id)
	s.open[string(id)]++
}

// answered returns the id of the call that a result answers: the oldest open one if the result names none.
func (s *side) answered(id []byte) []byte {
	for nonEmpty(id) == nil && len(s.calls) > 0 {
		if s.open[string(s.calls[0])] > 0 {
			id = s.calls[0]
		}
		s.calls = s.calls[1:]
	}
	if nonEmpty(id) == nil {
		s.draft.note("a result without a call in the %s is a message of the user", s.name)
		return nil
	}
	s.open[string(id)]--
	return id
}

// parts reads a message with parts: Gemini's have no type; those of OpenTelemetry have their text in "content".
func (s *side) parts(o object) error {
	if signal(o) == session.Gemini {
		return s.contents(list([][]byte{fill(`{"role":%,"parts":%}`, or(o["role"], `"user"`), o["parts"])}))
	}
	m := &chatMessage{role: tracedRole(o.text("role"))}
	var results []*chatMessage
	for part := range objects(o["parts"]) {
		switch kind := part.text("type"); kind {
		case "text":
			m.addTexts(part.first("content", "text"))
		case "reasoning", "thinking":
			m.think(part.first("content", "text"))
		case "tool_call":
			m.addCall(singleID(part["id"]), part["name"], part["arguments"])
		case "tool_call_response":
			text := inString(part.first("response", "result", "content"))
			results = append(results, &chatMessage{role: "tool", answers: singleID(part["id"]), content: text})
		case "blob", "uri":
			if part.text("modality") != "image" {
				s.draft.leavePart(kind)
				break
			}
			inside := concat(quote("data:"), part["mime_type"], quote(";base64,"), part["content"])
			m.addImages(or(part["uri"], string(inside)))
		default:
			s.draft.leavePart(kind)
		}
	}
	if results == nil || m.blocks != nil || m.calls != nil {
		if m.role == "tool" {
			m.role = "user"
		}
		s.add(m)
	}
	for _, r := range results {
		s.add(r)
	}
	return nil
}

// singleID returns an id, of a list of them the last one: some frameworks put that of the run before it.
func singleID(raw []byte) []byte {
	if list := parseArray(raw); len(list) > 0 {
		raw = list[len(list)-1]
	}
	return nonEmpty(raw)
}

var tracedRoles = map[string]string{
	"human": "user", "ai": "assistant", "bot": "assistant", "model": "assistant", "function": "tool",
	"user": "user", "assistant": "assistant", "system": "system", "developer": "developer", "tool": "tool",
}

// tracedRole returns a role as OpenAI Chat names it. Some frameworks write the name of a tool in its place.
func tracedRole(name string) string {
	if role := tracedRoles[strings.ToLower(name)]; role != "" {
		return role
	}
	return "tool"
}

// chat adds a message that has a role and a content: as it stands if a provider takes it.
func (s *side) chat(raw []byte, o object, role string) error {
	if o.has("role") {
		role = tracedRole(o.text("role"))
	}
	if isToolDefinition(parseObject(o["content"])) {
		s.draft.leave("definition of a tool")
		return nil
	}
	if calls := calledFunctions(o["content"]); calls != nil {
		raw = fill(`{"role":"assistant","content":null,"tool_calls":%}`, calls)
		o, role = parseObject(raw), "assistant"
	}
	format := signal(o)
	if role == o.text("role") && s.asItIs(o, format) {
		if format == session.OpenAIChat && role == "tool" {
			s.answered(o["tool_call_id"])
		}
		for call := range objects(o["tool_calls"]) {
			s.called(call["id"])
		}
		s.said = append(s.said, said{body: raw, format: format})
		return nil
	}
	s.rewritten(o, role)
	return nil
}

// rewritten adds a message that no provider takes as it stands, and the results in it as messages of their own.
func (s *side) rewritten(o object, role string) {
	m := &chatMessage{role: role, answers: o.first("tool_call_id", "toolCallId")}
	m.think(o["reasoning_content"], o["reasoning"])
	results := s.chatContent(m, o.first("content", "text"))
	for _, name := range []string{"tool_calls", "toolCalls", "additional_kwargs.tool_calls", "function_call"} {
		if calls := o.at(name); has(calls) {
			m.addTracedCalls(calls)
			break
		}
	}
	if role != "tool" {
		m.answers = nil
	} else if results == nil {
		m.content, m.blocks = or(s.draft.resultTexts(m.blocks), `""`), nil
	}
	if results == nil || m.blocks != nil || m.calls != nil {
		s.add(m)
	}
	for _, r := range results {
		s.add(r)
	}
}

// asItIs reports whether a message needs no change: the calls have their arguments in strings, the content is a text or
// blocks that a provider knows.
func (s *side) asItIs(o object, format session.Format) bool {
	if o.first("additional_kwargs.tool_calls", "toolCalls", "toolCallId") != nil && !o.has("tool_calls") {
		return false
	}
	for block := range objects(o["content"]) {
		if ofAISDK(block) {
			return false
		}
	}
	for call := range objects(o["tool_calls"]) {
		if !call.has("custom") && !isString(call.at("function.arguments")) {
			return false
		}
	}
	if o.text("role") == "tool" && nonEmpty(o["tool_call_id"]) == nil || foreign(o) {
		return false
	}
	content := o["content"]
	return isString(content) || !has(content) && has(o["tool_calls"]) ||
		format != session.OpenAIResponses && parseArray(content) != nil
}

// ofAISDK reports whether a block is one of the AI SDK's model messages.
func ofAISDK(block object) bool {
	return block.fits("type=tool-call|tool-result") || block.fits("type=image image") ||
		block.fits("type=reasoning text") || block.fits("type=file data|mediaType")
}

// isToolDefinition reports whether a content is the definition of a tool, which some frameworks log as a message.
func isToolDefinition(o object) bool {
	return o.has("function.parameters") || o.has("function.description")
}

// calledFunctions returns the calls that a content lists, nil if it has anything else. It may be a string of JSON.
func calledFunctions(content []byte) []byte {
	content = unfolded(content)
	for o := range objects(content) {
		if o.text("type") != "function" || !o.has("function.name") {
			return nil
		}
	}
	if len(parseArray(content)) == 0 {
		return nil
	}
	return content
}

// chatContent adds a content of the AI SDK or of another framework to a message, and returns the results in it.
func (s *side) chatContent(m *chatMessage, content []byte) (results []*chatMessage) {
	blocks := parseArray(content)
	if blocks == nil || !typed(content) {
		if has(content) {
			m.addTexts(inString(content))
		}
		return nil
	}
	for _, raw := range blocks {
		o := parseObject(raw)
		kind := o.text("type")
		switch {
		case isString(raw):
			m.addTexts(raw)
		case kind == "text":
			m.addTexts(o.first("text", "value"))
		case kind == "reasoning", kind == "thinking":
			m.think(o.first("text", "thinking", "reasoning"))
		case kind == "image_url":
			m.blocks = append(m.blocks, raw)
		case kind == "image", kind == "file" && linked(o.first("image", "data", "url")):
			m.addImages(o.first("image", "data", "url"))
		case kind == "tool-call":
			m.addCall(o["toolCallId"], o["toolName"], o.first("input", "args"))
		case kind == "tool-result":
			text := inString(o.first("output.value", "output", "result"))
			results = append(results, &chatMessage{role: "tool", answers: o["toolCallId"], content: text})
		default:
			s.draft.leavePart(kind)
		}
	}
	return results
}

// typed reports whether a list has blocks with types or texts, not data of a tool.
func typed(content []byte) bool {
	for _, raw := range parseArray(content) {
		if !isString(raw) && parseObject(raw).text("type") == "" {
			return false
		}
	}
	return true
}

// addTracedCalls adds calls as OpenAI, LangChain or the AI SDK write them.
func (m *chatMessage) addTracedCalls(raw []byte) {
	calls := parseArray(unfolded(raw))
	if calls == nil {
		calls = [][]byte{raw}
	}
	for i, raw := range calls {
		o := parseObject(raw)
		call := o.object("function", "custom")
		name := call.first("name", "toolName")
		id := or(o.first("id", "toolCallId"), string(quote(fmt.Sprintf("call-%d", i+1))))
		m.addCall(id, name, call.first("arguments", "args", "input"))
	}
}
