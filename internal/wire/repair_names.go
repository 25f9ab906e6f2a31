package wire

import (
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/units"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// ToolName returns the name that a tool has in a view: its own if the provider takes that, else its PlainToolName.
func ToolName(target session.Format, name string, o Options) string {
	return toolNameFor(o.server(target), name)
}

func toolNameFor(p *provider.Facts, name string) string {
	if p.Tools.Take(name) {
		return name
	}
	return PlainToolName(name)
}

// PlainToolName returns the name that stands for the name of a tool wherever that is refused: one that every provider
// takes. It is the name itself if every provider takes it; else how it begins, and ten digits of its hash. It depends
// on the name alone, not on the provider or on other names, so that a tool has at most two names in all views and logs.
// No two names have the same one, but for the few that are replacements themselves: a model has called a tool by the
// replacement of its name, and both are that tool.
func PlainToolName(name string) string {
	if provider.TakenEverywhere(name) {
		return name
	}
	begin := plainBeginning(name)
	if begin == "" {
		begin = "unknown"
	}
	if c := begin[0]; c == '-' || '0' <= c && c <= '9' {
		begin = "_" + begin
	}
	return units.Alias(begin, name, 0, provider.EverywhereMax)
}

// renameTools gives the tools of calls and results the names that the provider takes.
func (r *repairer) renameTools(list []Message) {
	legacy := map[int]string{} // the ids of function_calls, which are made of their names, by their pairs
	each(list, Call, func(n *Message, p *Block) {
		isLegacy := r.keepsLegacy(n, p)
		if r.renameTool(n, p) && isLegacy && !p.Edited {
			legacy[p.pair] = functionPrefix + p.toolName()
			p.CallID = legacy[p.pair]
		}
	})
	if r.target == session.AISDK {
		each(list, Opaque, r.renameForeignTool)
	}
	each(list, Result, func(n *Message, p *Block) {
		if p.Name != nil || r.target == session.Gemini {
			r.renameTool(n, p)
		}
		if id, ok := legacy[p.pair]; ok {
			p.CallID, n.Edited = id, true
		}
	})
}

// renameForeignTool does for a call that the provider itself runs, which is no Call, what renameTool does.
func (r *repairer) renameForeignTool(n *Message, p *Block) {
	if name, ok := uiToolName(p.Raw); r.own(p) && ok {
		p.Name = rawjson.Quote(nil, []byte(name))
		r.renameTool(n, p)
	}
}

// keepsLegacy reports whether a call will be written as the function_call that it came as.
func (r *repairer) keepsLegacy(n *Message, p *Block) bool {
	return r.target == session.OpenAIChat && r.keepsFormat(n) && n.isLegacy(p)
}

// renameTool gives a call or a result the name that the provider takes, and reports whether that is another one. A
// result of another message than its call's is reported, too.
func (r *repairer) renameTool(n *Message, p *Block) bool {
	was := nameText(p.Name)
	name := toolNameFor(r.provider, was)
	if name == was {
		return false
	}
	if r.toolNames == nil {
		r.toolNames = map[string]string{}
	}
	r.toolNames[was] = name
	if p.Kind != Result || r.keepsFormat(n) && r.target != session.AISDK {
		r.repaired(r.provider.Codes.ToolName, "tool_renamed", n, "the tool %q is named %q", was, name)
	}
	n.Edited = true
	p.Name = rawjson.Quote(nil, []byte(name))
	if !r.own(p) {
		return true
	}
	at, before := nameIn(p.Format, p.Raw, was)
	if at == (Span{}) {
		p.Edited = true
		return true
	}
	p.Raw = Replace(nil, p.Raw, []Edit{{Span: at, With: joined(before, p.Name)}})
	return true
}

// namePaths are where a call or a result has the name of its tool, by its format.
var namePaths = map[session.Format][][]string{
	session.OpenAIChat:      {{"function", "name"}, {"custom", "name"}, {"name"}},
	session.OpenAIResponses: {{"name"}},
	session.Anthropic:       {{"name"}},
	session.Gemini: {
		{"functionCall", "name"}, {"function_call", "name"},
		{"functionResponse", "name"}, {"function_response", "name"},
	},
	session.AISDK: {{"toolName"}},
}

// nameIn returns where a call or a result has this name of its tool, the zero Span for nowhere, and what stands before
// the name in that text.
func nameIn(f session.Format, raw []byte, name string) (at Span, before string) {
	s := scanner{body: raw}
	all := Span{End: len(raw)}
	if kind := stringMember(raw, "type"); f == session.AISDK && strings.HasPrefix(kind, toolPrefix) {
		at, before = s.inner(all, "type"), toolPrefix
	} else {
		paths := namePaths[f]
		i := slices.IndexFunc(paths, func(path []string) bool { return s.is(s.inner(all, path[:len(path)-1]...), '{') })
		if i >= 0 {
			at = s.inner(all, paths[i]...)
		}
	}
	if !s.is(at, '"') || nameText(at.Of(raw)) != before+name {
		return Span{}, ""
	}
	return at, before
}

// nameText returns the text of a name. A name that is no text, because a half of a surrogate pair is in it, is
// returned as it is written: it is not another one's.
func nameText(literal []byte) string {
	if literal == nil {
		return ""
	}
	text, ok := rawjson.Unquote(nil, literal)
	if !ok {
		return string(literal[1 : len(literal)-1])
	}
	return string(text)
}

// dropTwin leaves the function_call of a message out whose name the provider refuses: beside tool_calls, it only
// repeats one of them.
func (r *repairer) dropTwin(n *Message) {
	if n.twin {
		n.Edited = true
		r.repaired("V-C7", "legacy_call", n, "function_call, which repeats a call of tool_calls, is left out")
	}
}

// twinName returns the name of a function_call that is beside tool_calls.
func twinName(message []byte) (name string, ok bool) {
	twin := valueOf(message, "function_call")
	if twin == nil || twin[0] != '{' {
		return "", false
	}
	for range elementsOf(message, "tool_calls") {
		return stringMember(twin, "name"), true
	}
	return "", false
}

// mendSpeaker turns the name of a speaker into a text if the provider refuses it: a text can have any name.
func (r *repairer) mendSpeaker(n *Message) {
	if n.Name == nil || n.Role == Tool || n.Role == Other || r.provider.Speakers.Take(nameText(n.Name)) {
		return
	}
	r.repaired("V-C8", "speaker_as_note", n, "the name of the speaker, %s, is a note", n.Name)
	n.noteSpeaker()
}

// noteSpeaker turns the name of a speaker into a text. An empty one is left out.
func (n *Message) noteSpeaker() {
	name := unquoted(n.Name)
	n.Name, n.Edited = nil, true
	if len(name) > 0 {
		speaker := Block{Kind: Text, Text: note("From %s", name), Edited: true}
		n.Blocks = append([]Block{speaker}, n.Blocks...)
	}
}
