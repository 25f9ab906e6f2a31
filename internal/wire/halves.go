package wire

import (
	"fmt"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// Half of a surrogate pair is an escape sequence that JSON has and UTF-8 has not: providers refuse a request with one
// (anthropics/claude-code#1939), and Python's programs cannot encode it.

// whole returns a message without halves of surrogate pairs, be they in its own texts or in those inside the arguments
// of its calls.
func whole(f session.Format, body []byte) []byte {
	halves := rawjson.FindHalves(body)
	if halves.May {
		body = rawjson.Whole(body)
	}
	if !halves.Inside || !fromOpenAI(f) {
		return body
	}
	facts, err := Inspect(f, body)
	if err != nil {
		return body
	}
	if edits := wholeArguments(f, body, facts.Parts); len(edits) > 0 {
		return Replace(nil, body, edits)
	}
	return body
}

// wholeArguments returns the edits that take the halves out of arguments that are JSON in a text.
func wholeArguments(f session.Format, body []byte, parts []Part) (edits []Edit) {
	for i := range parts {
		p := &parts[i]
		if p.Kind != Call || p.Value == (Span{}) || body[p.Value.Start] != '"' {
			continue
		}
		if _, name := argumentsOf(f, p.Raw.Of(body)); name != "arguments" {
			continue
		}
		s := scanner{body: body}
		object := s.arguments(p.Value)
		if object[0] != '{' {
			continue
		}
		if mended := rawjson.Whole(object); len(mended) != len(object) {
			edits = append(edits, Edit{Span: p.Value, With: rawjson.Quote(nil, mended)})
		}
	}
	return edits
}

// hasHalf reports whether whole has something to do.
func (s *scanner) hasHalf(f session.Format) bool {
	if s.halves == nil {
		found := rawjson.FindHalves(s.body)
		s.halves = &found
	}
	return s.halves.May && len(rawjson.Whole(s.body)) != len(s.body) ||
		s.halves.Inside && fromOpenAI(f) && len(wholeArguments(f, s.body, s.facts.Parts)) > 0
}

// mendHalves returns a message of the view without halves of surrogate pairs.
func (r *repairer) mendHalves(m Stored) Stored {
	mended := whole(m.Format, m.Body)
	if len(mended) != len(m.Body) {
		m.Body = mended
		r.repairs = append(r.repairs, Repair{Rule: "V-T1", Kind: "half_replaced", Seq: m.Seq,
			Detail: fmt.Sprintf("half of a surrogate pair is %q", "\uFFFD")})
	}
	return m
}

// noHalves checks V-T1.
func (c *checker) noHalves() {
	for i, body := range c.bodies {
		if len(whole(c.format, body)) != len(body) {
			c.report(i, "there is half of a surrogate pair in it")
		}
	}
}
