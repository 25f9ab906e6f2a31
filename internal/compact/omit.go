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
	"github.com/varve-dev/varve/internal/tokens"
)

// omittedMember is the member that is added to a call's arguments and says what was omitted of them.
const omittedMember = "_omitted"

// omission is a call's arguments without the large ones.
type omission struct {
	text   []byte // nil if there are none to omit
	tokens int    // of the call then
}

// omission makes the arguments of call i without the large ones: "[omitted]" stands in their place, and a member of its
// own says how large each was, with its SHA-256, and the ref of the whole. Where the arguments are one large text, as
// those of custom tools, a line stands for it. Other arguments that are no object stay.
func (s *runState) omissionOf(i int) omission {
	if made, ok := s.omissions[i]; ok {
		return made
	}
	p, content := &s.parts[i], s.content(i)
	made := omission{tokens: p.tokens}
	ref := s.ref(p, &replacement{sum: sha256.Sum256(content.Stored)}).String()
	switch object := content.Text; {
	case rawjson.Check(object, rawjson.Limits{Depth: session.MaxJSONDepth}) != nil:
		if len(object) > maxArgumentBytes(&s.policy) {
			made.text = fmt.Appendf(nil, "[omitted -- read_result %s returns it: %d bytes, sha256 %x]", ref, len(object), sha256.Sum256(object))
		}
	case object[rawjson.Start(object)] == '{' && !hasMember(object, rawjson.Start(object), omittedMember):
		if rest, omitted := resource.OmitLarge(nil, object, s.isIdentifying(p.tool), maxArgumentBytes(&s.policy)); len(omitted) > 0 {
			made.text = appendOmitted(rest, ref, omitted)
		}
	}
	if made.text != nil {
		made.tokens += tokens.Estimate(made.text) - tokens.Estimate(content.Text)
	}
	s.omissions[i] = made
	return made
}

// omit is what the omission of call i's large arguments leaves.
func (s *runState) draftOmission(i int, made *draft) {
	if s.parts[i].action == Keep {
		made.action = Omit
		left := s.omissionOf(i)
		made.text, made.tokens = left.text, left.tokens
	}
}

// identifies says which arguments of a tool tell what its calls ask for: they stay.
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

// appendOmitted adds what was omitted as the last member of an object.
func appendOmitted(object []byte, ref string, omitted []resource.Omitted) []byte {
	end := len(object) - 1
	for object[end] != '}' {
		end--
	}
	b := append(object[:end:end], `,"`+omittedMember+`":{"ref":`...)
	b = rawjson.Quote(b, []byte(ref))
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

// appendArguments writes arguments the way the call has them: as JSON inside a string, or as they are.
func (s *runState) appendArguments(dst []byte, p *part, object []byte) []byte {
	if p.value.Of(s.body(p.message))[0] == '"' {
		return rawjson.Quote(dst, object)
	}
	return append(dst, object...)
}
