package wire

import (
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tokens"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// What goes out is counted: the table of members that lets a member out has its weight, too. The readers count texts,
// arguments, results and media; weighMembers counts every other member of some size, such as signatures, OpenRouter's
// reasoning_details and what a program put beside a text.

// The sizes below which nothing is counted: of one member, such as an id or a state, and of all that a message has
// beside what is counted, for each of its parts.
const (
	lightMember  = 64
	lightMessage = 128
)

// weighMembers adds the tokens of the members that no reader counts: to the part whose value they are in, as they leave
// with it, else to the message.
func (s *scanner) weighMembers(f session.Format) {
	of := provider.Message(f)
	if s.ir != nil || s.err != nil || s.outside(of) < lightMember+lightMessage*(1+len(s.facts.Parts)) {
		return
	}
	w := memberWalk{body: s.body, parts: s.facts.Parts, within: s.within, top: &s.top, weigh: s.weighMember}
	w.object(rawjson.Start(s.body), of)
}

// outside returns how many bytes of the message go out and are in no value that is counted as a text.
func (s *scanner) outside(of *provider.Object) int {
	n := len(s.body)
	for i := range s.top.first[:s.top.n] {
		if f := &s.top.first[i]; of.By == "" && of.Member(f.name) == nil {
			n -= f.value.End - f.value.Start
		}
	}
	for _, text := range s.within {
		n -= text.End - text.Start
	}
	for i := range s.facts.Parts {
		p := &s.facts.Parts[i]
		switch {
		case s.is(p.Value, '"') || p.Kind == Call && p.Value != (Span{}):
			n -= p.Value.End - p.Value.Start
		case p.Kind == Opaque:
			n -= p.Raw.End - p.Raw.Start
		}
	}
	return n
}

func (s *scanner) weighMember(value Span) {
	if value.End-value.Start <= lightMember {
		return
	}
	within := -1
	for i := range s.facts.Parts {
		p := &s.facts.Parts[i]
		switch {
		case p.Value == value || p.Raw == value || p.Kind == Opaque && contains(p.Raw, value):
			return // the reader has counted it
		case contains(p.Value, value):
			within = i
		}
	}
	n := s.weightOf(value)
	s.facts.Tokens += n
	if within >= 0 {
		s.facts.Parts[within].Tokens += n
	}
}

func contains(outer, inner Span) bool { return outer.Start <= inner.Start && inner.End <= outer.End }

// weightOf returns the tokens of a value, whatever it is. A long text in base64 is what only the provider can read.
func (s *scanner) weightOf(value Span) (n int) {
	switch s.body[value.Start] {
	case '{':
		for key, inner := range rawjson.Members(s.body, value.Start) {
			n += s.tokens(key) + s.weightOf(inner)
		}
	case '[':
		for inner := range s.elements(value) {
			n += s.weightOf(inner)
		}
	case '"':
		if text := s.body[value.Start+1 : value.End-1]; len(text) > 4*lightMember && tokens.IsBase64(text) {
			return s.encrypted(value)
		}
		return s.tokens(value)
	default:
		return s.tokens(value)
	}
	return n
}
