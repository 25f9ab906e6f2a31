package importer

import (
	"encoding/json"
	"slices"
	"strings"
)

// Messages are written in three ways: as constructors ("lc": 1), as {"type": …, "data": …}, and flat, alone or in a
// state. A stream is an array of them, each beside where it came from; the chunks of one message have one id. They
// become OpenAI Chat's. In a stream of nested graphs each graph is another conversation: it has its own messages,
// and sees the others' only where they are handed to it.
var langChain = source{
	name:        LangChain,
	title:       "LangChain's messages and streams",
	detect:      recogniseLangChain,
	into:        OpenAIChat,
	infix:       "-",
	firstIsMain: true,
	read:        readLangChain,
	open:        func(*draft) record { return (&graphs{byID: map[string]*graphMessage{}}).element },
}

// recogniseLangChain looks at the first three messages.
func recogniseLangChain(s sample) bool {
	if langChainOnly(s.object) {
		return true
	}
	list := s.messages
	if list == nil {
		list = parseArray(s.object.at("values.messages"))
	}
	return slices.ContainsFunc(list[:min(len(list), 3)], func(raw []byte) bool {
		return langChainOnly(langChainElement(raw, langChainDepth))
	})
}

// langChainOnly recognises a message that nobody else writes: others have lines of type system and tool.
func langChainOnly(o object) bool {
	_, role := langChainFields(o)
	return role != "" && (o.has("lc") || o.has("data") || role == "user" || role == "assistant")
}

// langChainDepth is how deep in arrays a stream's message may stand: behind its namespace, beside its metadata.
const langChainDepth = 3

// langChainElement finds the message in an element of a stream: itself, or the first in an array.
func langChainElement(raw []byte, depth int) object {
	if o := parseObject(raw); o != nil {
		if _, role := langChainFields(o); role == "" {
			return nil
		}
		return o
	}
	if depth == 0 {
		return nil
	}
	for _, inner := range parseArray(raw) {
		if found := langChainElement(inner, depth-1); found != nil {
			return found
		}
	}
	return nil
}

// langChainFields returns the members of a message and its role as Chat Completions names it, "" if it is no message.
func langChainFields(o object) (fields object, role string) {
	fields = o
	kind := o.text("type")
	data := parseObject(o["data"])
	switch {
	case o.has("lc") && o.has("kwargs"):
		fields = parseObject(o["kwargs"])
		if path := parseArray(o["id"]); len(path) > 0 {
			kind = stringValue(path[len(path)-1])
		}
	case data.has("content"):
		fields = data
	case o.has("role"), !o.has("content"):
		return nil, ""
	}
	kind = strings.TrimSuffix(strings.TrimSuffix(kind, "Chunk"), "Message")
	return fields, langChainRoles[strings.ToLower(kind)]
}

var langChainRoles = map[string]string{"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}

// readLangChain reads the messages of a stream, of states, or one by one.
func readLangChain(f *File, id string, data []byte) error {
	d := f.newDraft(nil)
	stream := func(list [][]byte) {
		for i, raw := range list {
			d.record(entry{object: langChainElement(raw, langChainDepth), raw: raw, line: i + 1})
		}
	}
	if json.Valid(data) && parseArray(data) != nil {
		stream(parseArray(data))
		d.finish(id)
		return nil
	}
	for value := range f.records(data) {
		if state := parseArray(value.first("messages", "values.messages")); state != nil {
			stream(state)
		} else {
			value.object = langChainElement(value.raw, langChainDepth)
			d.record(value)
		}
	}
	d.finish(id)
	return nil
}

// graphs puts together the messages of a graph and the graphs in it, each of which is a branch.
type graphs struct{ byID map[string]*graphMessage }

// graphMessage is a message, of which a stream has chunks.
type graphMessage struct {
	chatMessage
	texts bool     // whether the last of blocks is a text that chunks continue
	parts []object // calls that are put together from parts
}

// element adds a message, or a chunk to the message of its id.
func (g *graphs) element(d *draft, e entry) error {
	fields, role := langChainFields(e.object)
	if role == "" {
		return skipped("element without a message")
	}
	d.branch = graphName(e.raw)
	key := d.branch + " " + fields.text("id")
	m := g.byID[key]
	chunked := fields.has("tool_call_chunks") || strings.HasSuffix(e.text("type"), "Chunk")
	switch {
	case m != nil && fields.has("id") && !chunked:
		return skipped(role + " (copy)")
	case m == nil || !fields.has("id"):
		m = &graphMessage{chatMessage: chatMessage{role: role}}
		g.byID[key] = m
		d.place(func() []byte { return m.whole(d.file, e.line) })
	}
	m.addContent(d, fields)
	m.call(fields)
	return nil
}

func (m *graphMessage) addContent(d *draft, fields object) {
	if m.role == "tool" {
		m.answers = inString(fields["tool_call_id"])
	}
	m.think(fields.at("additional_kwargs.reasoning_content"))
	if isString(fields["content"]) {
		m.continueText(fields["content"])
		return
	}
	for _, raw := range parseArray(fields["content"]) {
		switch o := parseObject(raw); o.text("type") {
		case "text":
			m.continueText(o["text"])
		case "reasoning", "thinking":
			m.think(o["reasoning"], o["thinking"])
		case "image_url":
			m.blocks, m.texts = append(m.blocks, raw), false
		case "tool_use", "input_json_delta", "tool_call", "tool_call_chunk": // repeated in the message's calls
		default:
			if isString(raw) {
				m.continueText(raw)
				continue
			}
			d.leavePart(o.text("type"))
		}
	}
}

// continueText adds a text to the text of the chunks before.
func (m *graphMessage) continueText(text []byte) {
	if nonEmpty(text) == nil {
		return
	}
	if last := len(m.blocks) - 1; m.texts {
		m.blocks[last] = textBlock(concat(parseObject(m.blocks[last])["text"], text))
		return
	}
	m.blocks, m.texts = append(m.blocks, textBlock(text)), true
}

// call adds calls or, in a stream, parts of them.
func (m *graphMessage) call(fields object) {
	switch {
	case len(parseArray(fields["tool_call_chunks"])) > 0:
		for o := range objects(fields["tool_call_chunks"]) {
			m.addPart(o)
		}
	case len(parseArray(fields["tool_calls"]))+len(parseArray(fields["invalid_tool_calls"])) > 0:
		m.addCalls(fields["tool_calls"], "id", "name", "args")
		m.addCalls(fields["invalid_tool_calls"], "id", "name", "args")
	default:
		m.calls = append(m.calls, parseArray(fields.at("additional_kwargs.tool_calls"))...)
	}
}

// addPart adds a call, or the arguments in a part to those of its call.
func (m *graphMessage) addPart(o object) {
	for _, call := range slices.Backward(m.parts) {
		sameID := nonEmpty(o["id"]) == nil || string(call["id"]) == string(o["id"])
		if sameID && string(call["index"]) == string(o["index"]) {
			call["args"] = concat(call["args"], o["args"])
			return
		}
	}
	m.parts = append(m.parts, o)
}

// whole returns the message, of which no more chunks come.
func (m *graphMessage) whole(f *File, line int) []byte {
	for _, call := range m.parts {
		m.addCall(call["id"], call["name"], nonEmpty(call["args"]))
	}
	body := m.body()
	if body == nil {
		f.count(entry{}, skipped(m.role+" without content"))
		f.note(line, "a message of role %s says nothing and was left out", m.role)
	}
	return body
}

// graphName names the graph that an element of a stream is of, without the ids of its runs: "" is the outermost. The
// metadata's path ends in the node, which is no graph; the namespace beside the message is all that old streams have.
func graphName(element []byte) string {
	var path []string
	for _, inner := range parseArray(element) {
		for _, raw := range append(parseArray(inner), inner) {
			if nodes := parseObject(raw).text("langgraph_checkpoint_ns"); nodes != "" {
				path = strings.Split(nodes, "|")
				path = path[:len(path)-1]
			} else if isString(raw) {
				path = append(path, stringValue(raw))
			}
		}
	}
	for i, step := range path {
		path[i], _, _ = strings.Cut(step, ":")
	}
	return strings.Join(path, "-")
}
