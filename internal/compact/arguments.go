package compact

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"

	"github.com/varve-dev/varve/internal/compact/resource"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// omitArguments omits the large arguments of old calls: what was written to a file is in the file.
func omitArguments(s *runState) {
	limits := &s.policy.Arguments
	after := min(float64(limits.AfterTokens), s.target/2)
	for i := range s.parts {
		p := &s.parts[i]
		listed := slices.Contains(limits.Operations, p.does.operation()) || slices.Contains(limits.Tools, p.tool)
		if p.kind != arguments || !listed {
			continue
		}
		if since := s.reached(p.message, after); since < len(s.messages) {
			s.proposeOmission(i, max(since, s.release[p.message]), 0)
		}
	}
}

// proposeOmission proposes to omit the large arguments of call i from message since on.
func (s *runState) proposeOmission(i, since int, newer int64) {
	p := &s.parts[i]
	if !s.free[i] || s.protected(p.message) {
		return
	}
	left := p.now
	if p.action == Keep {
		made := s.omissionOf(i)
		if made.text == nil {
			return
		}
		left = made.tokens
	}
	s.propose(i, since, proposal{action: Omit, newer: newer, distance: s.distance(p.message)}, left)
}

// omittedMember is the member that lists what was omitted of a call's arguments.
const omittedMember = "_omitted"

// omission is a call's arguments without the large ones.
type omission struct {
	text   []byte // nil if nothing is omitted
	tokens int    // of the call with these arguments
}

// omissionOf returns the arguments of call i without the large ones: "[omitted]" replaces each, and an added member has
// their sizes, their SHA-256 and the ref of the whole. One line replaces arguments that are one large text, like those
// of custom tools. Other arguments that are not an object are kept.
func (s *runState) omissionOf(i int) omission {
	made, ok := s.omissions[i]
	if ok {
		return made
	}
	p, content := &s.parts[i], s.content(i)
	made = omission{text: s.withoutLarge(p, content), tokens: p.tokens}
	if made.text != nil {
		made.tokens = max(made.tokens+s.count.text(made.text)-s.count.text(content.Text), 0)
	}
	s.omissions[i] = made
	return made
}

func (s *runState) withoutLarge(p *part, content *wire.Content) []byte {
	object, limit := content.Text, maxArgumentBytes(&s.policy)
	sum := sha256.Sum256(content.Stored)
	ref := s.ref(p, &replacement{sum: sum}).String()
	if rawjson.Check(object, rawjson.Limits{Depth: session.MaxJSONDepth}) != nil {
		if len(object) <= limit {
			return nil
		}
		const line = "[omitted -- read_result %s: %d bytes, sha256 %x]"
		return fmt.Appendf(nil, line, ref, len(object), sha256.Sum256(object))
	}
	start := rawjson.Start(object)
	if object[start] != '{' || hasMember(object, start, omittedMember) {
		return nil
	}
	rest, omitted := resource.OmitLarge(nil, object, s.isIdentifying(p.tool), limit, s.policy.OnlySmaller)
	if len(omitted) == 0 {
		return nil
	}
	return appendOmitted(rest, "read_result", ref, omitted)
}

// withoutLargeMembers returns a result that is an object without its large members, and with a line about them; nil if
// no member is large.
func (s *runState) withoutLargeMembers(object, line []byte) []byte {
	limits := &s.policy.Dedupe
	rest, omitted := resource.OmitLarge(nil, object, nil, limits.MinBytes-1, s.policy.OnlySmaller)
	if len(omitted) == 0 {
		return nil
	}
	return appendOmitted(rest, "note", string(line), omitted)
}

// isIdentifying returns a function that reports whether an argument identifies what a tool's calls ask for: it is kept.
func (s *runState) isIdentifying(tool string) func(field string) bool {
	limits := &s.policy.Dedupe
	return func(field string) bool {
		return limits.Enabled && limits.Identity == policy.ByFields && slices.Contains(limits.Fields[tool], field)
	}
}

func hasMember(object []byte, at int, name string) bool {
	for key := range rawjson.Members(object, at) {
		if rawjson.KeyIs(object, key, name) {
			return true
		}
	}
	return false
}

// appendOmitted adds what was omitted as the last member of an object. handle is the first of that member's own: how to
// get the whole.
func appendOmitted(object []byte, name, handle string, omitted []resource.Omitted) []byte {
	end := len(object) - 1
	for object[end] != '}' {
		end--
	}
	b := append(object[:end:end], `,"`+omittedMember+`":{"`+name+`":`...)
	b = rawjson.Quote(b, []byte(handle))
	for _, field := range omitted {
		b = append(b, ',')
		b = rawjson.Quote(b, []byte(field.Field))
		b = append(b, `:{"bytes":`...)
		b = strconv.AppendInt(b, int64(field.Bytes), 10)
		b = append(b, `,"sha256":"`...)
		b = hex.AppendEncode(b, field.SHA256[:])
		b = append(b, `"}`...)
	}
	return append(b, "}}"...)
}

// appendArguments appends arguments in the form of the call's old value: as JSON inside a string, or as an object.
func appendArguments(dst, old, object []byte) []byte {
	if old[0] == '"' {
		return rawjson.Quote(dst, object)
	}
	return append(dst, object...)
}
