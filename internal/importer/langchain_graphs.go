package importer

import (
	"strings"

	"github.com/varve-dev/varve/internal/session"
)

// graphs puts together the messages of a graph and the graphs in it.
type graphs struct {
	file *File
	byID map[string]*graphMessage
	list []*graphMessage
}

// graphMessage is a message, of which a stream has chunks.
type graphMessage struct {
	chatMessage
	graph  string
	line   int
	callID []byte // of a result
	texts  bool   // whether the last of blocks is a text that chunks continue
	blocks [][]byte
	parts  []*callParts
}

// callParts is a call, of which a stream has parts.
type callParts struct {
	index, id, name, arguments []byte
}

func (g *graphs) read(list [][]byte) {
	for i, raw := range list {
		g.add(i+1, raw)
	}
}

// add adds the message or the chunk in an element.
func (g *graphs) add(line int, raw []byte) {
	g.file.Report.Lines++
	o := langChainElement(raw, langChainDepth)
	fields, role := langChainFields(o)
	if role == "" {
		g.file.skip("element without a message")
		return
	}
	graph := graphName(raw)
	m := g.byID[graph+" "+fields.text("id")]
	chunked := fields.has("tool_call_chunks") || strings.HasSuffix(o.text("type"), "Chunk")
	switch {
	case m != nil && fields.has("id") && !chunked:
		g.file.skip(role + " (copy)")
		return
	case m == nil || !fields.has("id"):
		m = &graphMessage{chatMessage: chatMessage{role: role}, graph: graph, line: line}
		g.byID[graph+" "+fields.text("id")] = m
		g.list = append(g.list, m)
	}
	g.file.Report.Imported++
	g.content(m, line, fields)
	m.call(fields)
}

func (g *graphs) content(m *graphMessage, line int, fields object) {
	m.callID = fields["tool_call_id"]
	m.reasoning = said(concat(m.reasoning, parseObject(fields["additional_kwargs"])["reasoning_content"]))
	if isString(fields["content"]) {
		m.say(fields["content"])
		return
	}
	for _, raw := range parseArray(fields["content"]) {
		switch o := parseObject(raw); o.text("type") {
		case "text":
			m.say(o["text"])
		case "reasoning", "thinking":
			m.reasoning = said(concat(m.reasoning, o["reasoning"], o["thinking"]))
		case "image_url":
			m.blocks, m.texts = append(m.blocks, raw), false
		case "tool_use", "input_json_delta", "tool_call", "tool_call_chunk": // repeated in the message's calls
		default:
			if isString(raw) {
				m.say(raw)
				continue
			}
			g.file.note(line, "content of type %q was left out", o.text("type"))
		}
	}
}

// say adds a text to the text of the chunks before.
func (m *graphMessage) say(text []byte) {
	if !filled(text) {
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
	more := parseObject(fields["additional_kwargs"])
	chunks := parseArray(fields["tool_call_chunks"])
	switch {
	case len(chunks) > 0:
		for _, raw := range chunks {
			m.part(parseObject(raw))
		}
	case len(parseArray(fields["tool_calls"])) > 0:
		m.addCalls(fields["tool_calls"], "id", "name", "args")
		m.addCalls(fields["invalid_tool_calls"], "id", "name", "args")
	default:
		m.calls = append(m.calls, parseArray(more["tool_calls"])...)
	}
}

// part adds a part to the call of its index, the first of which has the id and the name.
func (m *graphMessage) part(o object) {
	var to *callParts
	for _, p := range m.parts {
		if string(p.index) == string(o["index"]) && (!filled(o["id"]) || string(p.id) == string(o["id"])) {
			to = p
		}
	}
	if to == nil {
		to = &callParts{index: o["index"], id: o["id"], name: o["name"]}
		m.parts = append(m.parts, to)
	}
	to.arguments = concat(to.arguments, o["args"])
}

// finish writes the messages, those of each graph in the order in which they began.
func (g *graphs) finish(id string) {
	var byGraph branches
	for _, m := range g.list {
		body, ok := m.finished()
		if !ok {
			g.file.note(m.line, "a message of role %s says nothing and was left out", m.role)
			continue
		}
		byGraph.add(m.graph, Message{Body: body, Line: m.line})
	}
	g.file.addBranches(id, session.OpenAIChat, byGraph, byGraph.first(), "-")
}

func (m *graphMessage) finished() (body []byte, ok bool) {
	m.content = blocksOrText(m.blocks)
	if m.role == "tool" {
		if m.content == nil {
			m.content = []byte(`""`)
		}
		return fill(`{"role":"tool","tool_call_id":%,"content":%}`, inString(m.callID), m.content), true
	}
	for _, p := range m.parts {
		m.calls = append(m.calls, chatCall(p.id, p.name, said(p.arguments)))
	}
	return m.body()
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
				path = append(path, object{"step": raw}.text("step"))
			}
		}
	}
	for i, step := range path {
		path[i], _, _ = strings.Cut(step, ":")
	}
	return strings.Join(path, "-")
}
