package wire

import (
	"cmp"
	"slices"

	"github.com/varve-dev/varve/internal/session"
)

// places finds what the repairs of one message are about: a repair itself names its message alone.
type places struct {
	format session.Format
	body   []byte
	parts  []Part
	told   map[string]int // how many repairs of a kind there have been
}

// placeMembers are the members that repairs of some kinds are always about.
var placeMembers = map[string]string{
	"unknown_role": "/role", "role_renamed": "/role", "speaker_as_note": "/name", "legacy_call": "/function_call",
	"content_null": "/content", "content_as_text": "/content",
	"item_id_dropped": "/id", "reasoning_dropped": "/id", "call_as_function": "/id",
}

// placeParts say of which parts a repair of a kind is.
var placeParts = map[string]func(at *places, p *Part, raw []byte) bool{
	"arguments_as_text": func(at *places, p *Part, _ []byte) bool { return p.Kind == Call && !at.is(p, '"') },
	"input_as_object":   func(at *places, p *Part, _ []byte) bool { return p.Kind == Call && !at.is(p, '{') },
	"call_typed":        func(_ *places, p *Part, raw []byte) bool { return p.Kind == Call && isMistyped(raw) },
	"call_as_note":      func(_ *places, p *Part, _ []byte) bool { return p.Kind == Call },
	"result_as_text":    func(_ *places, p *Part, _ []byte) bool { return p.Kind == Result },
	"results_first":     func(_ *places, p *Part, _ []byte) bool { return p.Kind == Result && p.Index > 0 },
	"compaction_null":   func(_ *places, _ *Part, raw []byte) bool { return emptyCompaction(raw) },
	"media_as_note":     func(_ *places, p *Part, _ []byte) bool { return p.Kind != Text && p.Kind != Call },
	"reasoning_as_text": func(_ *places, p *Part, raw []byte) bool {
		return p.Kind == Reasoning && !isSigned(valueOf(raw, "signature")) && !isSigned(valueOf(raw, "data"))
	},
	"reasoning_dropped": func(at *places, p *Part, _ []byte) bool {
		return p.Kind == Reasoning && at.format == session.Anthropic
	},
	"signature_dropped": func(_ *places, p *Part, raw []byte) bool {
		return p.Kind == Call && p.Index > 0 && signatureOf(raw) == standIn
	},
	"empty_text": func(at *places, p *Part, _ []byte) bool {
		return p.Kind == Result || p.Kind == Text && blank(p.Value.Of(at.body))
	},
	"part_mended": func(at *places, p *Part, raw []byte) bool {
		if at.format != session.AISDK {
			return at.format != session.Gemini || faultOf(raw) != noFault
		}
		s := scanner{body: at.body, facts: Facts{Role: "assistant"}}
		v := s.object(p.Raw)
		return !s.uiFits(&v)
	},
}

// is reports whether the value of a part is there, and begins with a character.
func (at *places) is(p *Part, c byte) bool { return p.Value != (Span{}) && at.body[p.Value.Start] == c }

// of returns the pointer to what the next repair of a kind changes, "" for the message.
func (at *places) of(kind string) (pointer string) {
	if kind == "half_replaced" {
		return pointerAt(at.body, differsAt(at.body, whole(at.format, at.body)))
	}
	fits := placeParts[kind]
	if fits == nil {
		return placeMembers[kind]
	}
	nth := at.told[kind]
	at.told[kind]++
	for i := range at.parts {
		p := &at.parts[i]
		if p.Raw == (Span{}) || !fits(at, p, p.Raw.Of(at.body)) {
			continue
		}
		pointer = pointerAt(at.body, p.Raw.Start)
		if nth--; nth < 0 {
			break
		}
	}
	return cmp.Or(pointer, placeMembers[kind])
}

// onlyVoid reports whether nothing is wrong with Gemini's parts but that some have no data.
func (at *places) onlyVoid() bool {
	list := member(at.body, "parts")
	return isArray(at.body, list) && !slices.ContainsFunc(at.parts, func(p Part) bool {
		return faultOf(p.Raw.Of(at.body)) > noData
	})
}

// differsAt returns where two texts begin to differ.
func differsAt(a, b []byte) (at int) {
	for at < min(len(a), len(b))-1 && a[at] == b[at] {
		at++
	}
	return at
}

// placesIn returns the places of a message.
func placesIn(f session.Format, body []byte) *places {
	facts, _ := Inspect(f, body) // of one that cannot be read, nothing is known
	return &places{format: f, body: body, parts: slices.Clone(facts.Parts), told: map[string]int{}}
}
