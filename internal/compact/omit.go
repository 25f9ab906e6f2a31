package compact

import (
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/varve-dev/varve/internal/compact/resource"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/tokens"
)

// omittedMember is the member that is added to a call's arguments and says what was omitted of them.
const omittedMember = "_omitted"

// omit makes the arguments of call i without the large ones: "[omitted]" stands in their place, and a member of its own
// says how large each was, with its SHA-256, and the ref of the whole. Arguments that are no object stay.
func (s *scene) omit(i int, made *replacement) {
	p := &s.parts[i]
	if p.do != Keep {
		return
	}
	object := s.content(i).Text
	at := rawjson.Start(object)
	if at == len(object) || object[at] != '{' || rawjson.Check(object, rawjson.Limits{Depth: 1 << 20}) != nil || hasMember(object, at, omittedMember) {
		return
	}
	rest, omitted := resource.OmitLarge(nil, object, s.identifies(p.tool), s.policy.omitOver())
	if len(omitted) == 0 {
		return
	}
	made.do = Omit
	made.text = appendOmitted(rest, s.ref(p, &made.left).String(), omitted)
	made.tokens = p.tokens - tokens.Estimate(object) + tokens.Estimate(made.text)
}

// identifies says which arguments of a tool tell what its calls ask for: they stay.
func (s *scene) identifies(tool string) func(field string) bool {
	limits := &s.policy.Dedupe
	return func(field string) bool {
		return limits.Enabled && limits.Identity == ByFields && slices.Contains(limits.Fields[tool], field)
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
func (s *scene) appendArguments(dst []byte, p *part, object []byte) []byte {
	if p.value.Of(s.body(p.message))[0] == '"' {
		return rawjson.Quote(dst, object)
	}
	return append(dst, object...)
}
