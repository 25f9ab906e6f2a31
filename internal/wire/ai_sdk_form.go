package wire

import (
	"bytes"
	"slices"
	"strings"
)

// uiStrings are the members that a part must have as strings, by its type. The library takes parts of these types, of
// tools and of data, and no others: vercel/ai, validate-ui-messages.ts.
var uiStrings = map[string][]string{
	"text":             {"text"},
	"reasoning":        {"text"},
	"custom":           {"kind"},
	"file":             {"mediaType", "url"},
	"reasoning-file":   {"mediaType", "url"},
	"source-url":       {"sourceId", "url"},
	"source-document":  {"sourceId", "mediaType", "title"},
	"steering-message": {"id"},
	stepStart:          nil,
}

// uiState is what a tool part of a state must have. It must not have the others of these members.
type uiState struct {
	input, output, errorText bool
	approval                 string // what approvalOf may return for it
}

var uiStates = map[string]uiState{
	"input-streaming":    {approval: "-"},
	"input-available":    {input: true, approval: "-"},
	"approval-requested": {input: true, approval: "?"},
	"approval-responded": {input: true, approval: "tf"},
	outputAvailable:      {input: true, output: true, approval: "-t"},
	outputError:          {errorText: true, approval: "-t"},
	outputDenied:         {input: true, approval: "f"},
}

// uiFits reports whether the library takes a part as it is, if it is of a type that the library knows.
func (s *scanner) uiFits(v *object) bool {
	at := v.at("type")
	if !s.is(at, '"') {
		return false
	}
	kind := s.plain(at)
	if names, ok := uiStrings[string(kind)]; ok {
		return !slices.ContainsFunc(names, func(name string) bool { return !s.is(v.at(name), '"') })
	}
	switch {
	case bytes.HasPrefix(kind, []byte("data-")):
		return v.at("data") != Span{}
	case bytes.HasPrefix(kind, []byte(toolPrefix)), string(kind) == dynamicTool:
		return s.uiToolFits(v)
	}
	return true
}

func (s *scanner) uiToolFits(v *object) bool {
	if !s.isTool(v) || !s.is(v.at("toolCallId"), '"') || !s.is(v.at("state"), '"') {
		return false
	}
	if s.equals(v.at("type"), dynamicTool) && !s.is(v.at("toolName"), '"') {
		return false
	}
	of, known := uiStates[string(s.plain(v.at("state")))]
	has := func(name string) bool { return v.at(name) != Span{} }
	switch {
	case !known || of.input && !has("input"):
		return false
	case has("output") != of.output, has("errorText") != of.errorText, of.errorText && !s.is(v.at("errorText"), '"'):
		return false
	}
	return strings.Contains(of.approval, s.approvalOf(v))
}

// approvalOf returns what the user said of a call: "t" or "f", "?" for nothing yet, "-" if nobody asked, "!" for what
// the library does not take.
func (s *scanner) approvalOf(v *object) string {
	at := v.at("approval")
	if at == (Span{}) {
		return "-"
	}
	approval := s.object(at)
	said := approval.at("approved")
	switch {
	case !s.is(approval.at("id"), '"'):
	case said == Span{}:
		return "?"
	case s.is(said, 't'):
		return "t"
	case s.is(said, 'f'):
		return "f"
	}
	return "!"
}

// mendUI marks what was read of the message since a part as to be written anew.
func (s *scanner) mendUI(before int) {
	s.loose = true
	if s.ir == nil {
		return
	}
	for _, blocks := range [][]Block{s.ir.message().Blocks, s.ir.results} {
		for i := range blocks {
			blocks[i].Edited = blocks[i].Edited || blocks[i].number > before
		}
	}
}

// numbered returns how many parts of the message the intermediate representation has so far.
func (s *scanner) numbered() int {
	if s.ir == nil {
		return 0
	}
	return s.ir.numbers
}

// fitsUI reports whether the library takes a tool part that has no result in it.
func fitsUI(part []byte) bool {
	s := scanner{body: part}
	v := s.object(Span{Start: 0, End: len(part)})
	return s.uiToolFits(&v)
}

// uiForms checks V-U9.
func (c *checker) uiForms() {
	for i, body := range c.bodies {
		if id := member(body, "id"); id == (Span{}) || body[id.Start] != '"' {
			c.report(i, "the message has no id")
		}
		list := member(body, "parts")
		if list == (Span{}) || body[list.Start] != '[' {
			c.report(i, "the message has no parts")
			continue
		}
		s := scanner{body: body, facts: Facts{Role: c.messages[i].Role}}
		empty := true
		for part := range s.elements(list) {
			empty = false
			if v := s.object(part); !s.uiFits(&v) {
				c.report(i, "the library does not take the part %.60s", part.Of(body))
			}
		}
		if empty {
			c.report(i, "the message has no parts")
		}
	}
}

// hasUIID reports whether the members of a message have its id.
func hasUIID(members []byte) bool {
	at := member(wrap(nil, "{", members, "}"), "id")
	return at != (Span{}) && members[at.Start-1] == '"'
}
