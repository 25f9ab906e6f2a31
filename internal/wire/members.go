package wire

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// intruder is something in a message that its provider does not take: a member, or a block of a type that it does not
// know.
type intruder struct {
	name string           // of the member, or the type of the block
	at   Span             // what is to be cut, or replaced
	of   *provider.Object // for a block: what it should have been; nil for a member

	answered bool // the provider says it itself: leaving it out takes nothing away
}

// memberWalk goes over a message once and finds the intruders.
type memberWalk struct {
	body   []byte
	parts  []Part  // of the message, if they are known: values that nobody looks into are not read again
	part   int     // the first of parts that may be ahead
	within []Span  // texts in results, if they are known, without those that are passed
	top    *object // the members of the message, if they are known
	seek   bool    // one intruder is enough, and nobody asks for its name
	has    bool
	found  []intruder
	weigh  func(value Span) // is told of each value that goes out and that no reader counts; nil for nobody
}

// hasIntruders reports whether there are any in the message that was read.
func (s *scanner) hasIntruders(f session.Format) bool {
	w := memberWalk{body: s.body, parts: s.facts.Parts, within: s.within, top: &s.top, seek: true}
	w.object(rawjson.Start(s.body), provider.Message(f))
	return w.has
}

// intrudersIn returns all that is in a message and that its provider does not take.
func intrudersIn(f session.Format, body []byte) []intruder {
	w := memberWalk{body: body}
	w.object(rawjson.Start(body), provider.Message(f))
	return w.found
}

// value looks at an object, or at the objects in an array, and returns where the value ends. Rules about other values,
// and about a block that is in no array, are elsewhere.
func (w *memberWalk) value(at int, of *provider.Object) (end int) {
	switch {
	case w.body[at] == '{' && of.By == "":
		return w.object(at, of)
	case w.body[at] == '[':
		i := rawjson.Inside(w.body, at)
		for w.body[i] != ']' {
			if w.body[i] == '{' {
				end = w.object(i, of)
			} else {
				end = w.skip(i)
			}
			if w.ended() {
				return end
			}
			i = rawjson.Next(w.body, end)
		}
		return i + 1
	}
	return w.skip(at)
}

// ended reports whether nothing more is asked for.
func (w *memberWalk) ended() bool { return w.seek && w.has }

// skip returns where a value ends.
func (w *memberWalk) skip(at int) (end int) {
	for w.part < len(w.parts) && w.parts[w.part].Raw.End <= at {
		w.part++
	}
	if w.part < len(w.parts) {
		p := &w.parts[w.part]
		switch at {
		case p.Value.Start:
			return p.Value.End
		case p.Raw.Start:
			return p.Raw.End
		}
	}
	for len(w.within) > 0 && w.within[0].End <= at {
		w.within = w.within[1:]
	}
	if len(w.within) > 0 && w.within[0].Start == at {
		return w.within[0].End
	}
	if w.top != nil {
		if end := w.top.endOf(at); end > 0 {
			return end
		}
	}
	return rawjson.Skip(w.body, at)
}

func (w *memberWalk) object(at int, of *provider.Object) (end int) {
	for of.By != "" {
		kind, name := w.kind(at, of)
		if kind == nil {
			w.has = true
			if w.ended() {
				return at
			}
			end = w.skip(at)
			w.found = append(w.found, intruder{name: name, at: Span{Start: at, End: end}, of: of})
			return end
		}
		of = kind
	}
	if of.Open || of.Whole && w.weigh != nil {
		return w.skip(at)
	}
	return w.members(at, of)
}

// kind returns what an object may be by the member that tells that, and that member's value.
func (w *memberWalk) kind(at int, of *provider.Object) (kind *provider.Object, name string) {
	part, within := w.part, w.within
	defer func() { w.part, w.within = part, within }()
	for i := rawjson.Inside(w.body, at); w.body[i] != '}'; {
		key, value := rawjson.MemberAt(w.body, i)
		end := w.skip(value)
		if rawjson.KeyIs(w.body, key, of.By) && w.body[value] == '"' {
			if kind = of.Kind(w.body[value+1 : end-1]); kind == nil {
				name = string(unquoted(w.body[value:end]))
				kind = of.Kind([]byte(name))
			}
			return kind, name
		}
		i = rawjson.Next(w.body, end)
	}
	return of.Other, ""
}

// members finds the members that an object must not have, and where they are to be cut: with the comma before them, or
// behind them if the object keeps nothing before them.
func (w *memberWalk) members(at int, of *provider.Object) (end int) {
	before, kept := len(w.found), false
	last := at // the end of the member before
	i := rawjson.Inside(w.body, at)
	for w.body[i] != '}' {
		key, value := rawjson.MemberAt(w.body, i)
		member := w.member(key, of)
		taken := w.takes(member, value)
		w.has = w.has || !taken
		switch {
		case w.ended():
			return value
		case taken && member.In != nil:
			end = w.value(value, member.In)
		case taken && w.weigh != nil && !member.Free:
			end = w.skip(value)
			w.weigh(Span{Start: value, End: end})
		default:
			end = w.skip(value)
		}
		if w.ended() {
			return end
		}
		i = rawjson.Next(w.body, end)
		switch {
		case w.weigh != nil:
		case taken:
			kept = true
		case kept:
			w.cut(of, key, Span{Start: last, End: end})
		case w.body[i] == '}':
			w.cut(of, key, Span{Start: key.Start, End: end})
		default:
			w.cut(of, key, Span{Start: key.Start, End: i})
		}
		last = end
	}
	end = i + 1
	if !kept && len(w.found) > before && of.Note != "" {
		whole := intruder{name: w.found[before].name, at: Span{Start: at, End: end}, of: of}
		w.found = append(w.found[:before], whole)
	}
	return end
}

// member returns the member that a key names, nil if the object may have none of that name.
func (w *memberWalk) member(key Span, of *provider.Object) *provider.Member {
	name := w.body[key.Start+1 : key.End-1]
	if m := of.Member(name); m != nil || bytes.IndexByte(name, '\\') < 0 {
		return m
	}
	return of.Member(unquoted(key.Of(w.body)))
}

// takes reports whether a member may have a value.
func (w *memberWalk) takes(m *provider.Member, value int) bool {
	switch {
	case m == nil, m.System && !isSystemRole(stringMember(w.body, "role")):
		return false
	case m.NotNull && w.body[value] == 'n', m.Null && w.body[value] != 'n':
		return false
	case m.NotVoid:
		return w.body[value] == '[' && w.body[rawjson.Inside(w.body, value)] != ']'
	case m.Named:
		return w.body[value] != '{' || !callsNothing(w.body[value:rawjson.Skip(w.body, value)])
	}
	return true
}

func (w *memberWalk) cut(from *provider.Object, key, at Span) {
	name := string(unquoted(key.Of(w.body)))
	w.found = append(w.found, intruder{name: name, at: at, answered: from.IsAnswered(name)})
}

// purge returns a message of the target's own format without what the provider does not take: members are left out,
// blocks become texts. It lists both as repairs.
func (r *repairer) purge(m Stored) []byte {
	if start := rawjson.Start(m.Body); m.Format != r.target || start == len(m.Body) || m.Body[start] != '{' {
		return m.Body
	}
	return r.expel(m)
}

// expel returns a message without its intruders.
func (r *repairer) expel(m Stored) []byte {
	var renamed bool
	if m.Body, renamed = renamedCompaction(m.Format, m.Body); renamed {
		r.repairs = append(r.repairs, Repair{Rule: "V-R5", Kind: "part_mended", Seq: m.Seq,
			Detail: "the type " + olderCompaction + " is compaction"})
	}
	found := intrudersIn(m.Format, m.Body)
	r.uncited = slices.ContainsFunc(found, func(in intruder) bool { return in.of == nil && in.name == "annotations" })
	if len(found) == 0 {
		return m.Body
	}
	var edits []Edit
	var members, blocks []string
	for _, in := range found {
		edit := Edit{Span: in.at}
		if in.of == nil {
			members = append(members, in.name)
		} else {
			blocks = append(blocks, in.name)
			edit.With = in.asText(m.Format, m.Body)
		}
		edits = append(edits, edit)
	}
	r.purged(m, "member_dropped", members, "the API does not take these members: %s")
	r.purged(m, "block_as_note", blocks, "the API has no blocks of these types: they are texts: %s")
	return Replace(nil, m.Body, edits)
}

func (r *repairer) purged(m Stored, kind string, names []string, format string) {
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	list := strings.Join(slices.Compact(names), ", ")
	r.repairs = append(r.repairs, Repair{
		Rule: r.provider.Codes.Members, Kind: kind, Seq: m.Seq, Detail: fmt.Sprintf(format, list),
	})
}

// asText returns the text that takes the place of a block: its own, if it has one, else a note that shows the block, be
// it one that only other messages may have.
func (in *intruder) asText(f session.Format, body []byte) []byte {
	raw := in.at.Of(body)
	text := valueOf(raw, "text")
	if text == nil || text[0] != '"' {
		block := Block{Kind: Opaque, Raw: raw}
		if f == session.OpenAIResponses && in.of.Other == nil {
			block = Decode(f, wrap(nil, `{"role":"user","content":[`, raw, "]}"))[0].Blocks[0]
		}
		text = substitute(&block)
	}
	before := in.of.Note
	if isMessageRole := in.of.Other != nil && stringMember(raw, "role") == "user"; isMessageRole {
		before = strings.Replace(before, assistantRole, userRole, 1)
	}
	return wrap([]byte(before), "", text, in.of.NoteEnd)
}

// knownMembers checks V-C6, V-R5, V-A13, V-G5 and V-U2.
func (c *checker) knownMembers() {
	for i, body := range c.bodies {
		for _, in := range intrudersIn(c.format, body) {
			what := "member"
			if in.of != nil {
				what = "block of type"
			}
			c.report(i, "there is no %s %q", what, in.name)
		}
	}
}
