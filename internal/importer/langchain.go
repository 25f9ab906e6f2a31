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
		list = langChainState(s.object)
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

func langChainState(o object) [][]byte {
	if list := parseArray(o["messages"]); list != nil {
		return list
	}
	return parseArray(o.at("values.messages"))
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
			kind = object{"name": path[len(path)-1]}.text("name")
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
		if state := langChainState(value.object); state != nil {
			stream(state)
		} else {
			value.object = langChainElement(value.raw, langChainDepth)
			d.record(value)
		}
	}
	d.finish(id)
	return nil
}
