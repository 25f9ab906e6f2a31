package summary

import (
	"strings"
	"unicode/utf8"

	"github.com/varve-dev/varve/internal/rawjson"
)

// support finds out which claims occur in what an answer covers. It reads that once: what it looks for is in a table.
type support struct {
	found  map[uint64]bool // by hash; what is not looked for is not in it
	filter [1 << 10]uint64 // a bit for each hash that is looked for
}

// want looks for what a claim needs.
func (s *support) want(c claim) {
	for _, alternative := range c {
		for _, h := range alternative {
			s.found[h] = false
			s.filter[h>>6%uint64(len(s.filter))] |= 1 << (h & 63)
		}
	}
}

func (s *support) see(h uint64) {
	if s.filter[h>>6%uint64(len(s.filter))]&(1<<(h&63)) == 0 {
		return
	}
	if _, wanted := s.found[h]; wanted {
		s.found[h] = true
	}
}

// supports reports whether a claim occurs in what was read.
func (s *support) supports(c claim) bool {
	for _, alternative := range c {
		all := true
		for _, h := range alternative {
			all = all && s.found[h]
		}
		if all {
			return true
		}
	}
	return false
}

// request reads all that the writer of an answer saw.
func (s *support) request(r Request) {
	for _, messages := range [][]Message{r.Lead, r.Messages, r.Tail} {
		for _, m := range messages {
			for _, p := range m.Parts {
				s.part(p)
			}
		}
	}
	for _, text := range append([]string{r.Previous, r.Retained, r.Prompt, r.RetainPrompt}, r.Earlier...) {
		s.text(text)
	}
	for _, text := range append(r.Directives[:len(r.Directives):len(r.Directives)], r.RetainDirectives...) {
		s.text(text)
	}
}

func (s *support) part(p Part) {
	if p.Kind == Reasoning {
		return // no model is sent it
	}
	for _, text := range []string{p.Text, p.Tool, p.CallID, p.Ref} {
		s.text(text)
	}
	if p.Kind == Other {
		s.text(described(p))
	}
}

// text reads a text. One with backslashes is read a second time without the escapes of JSON.
func (s *support) text(text string) {
	eachRun(text, s.run)
	if strings.IndexByte(text, '\\') >= 0 {
		eachRun(unescaped(text), s.run)
	}
}

// unescaped returns a text without the escapes of JSON strings.
func unescaped(text string) string {
	out := make([]byte, 0, len(text))
	for {
		i := strings.IndexByte(text, '\\')
		if i < 0 || i+1 == len(text) {
			return string(append(out, text...))
		}
		out = append(out, text[:i]...)
		if strings.IndexByte(`"\/bfnrtu`, text[i+1]) < 0 {
			out, text = append(out, '\\'), text[i+1:]
			continue
		}
		if text[i+1] == 'u' && len(text) < i+len(`\u0000`) {
			return string(append(out, text[i:]...))
		}
		r, size := rawjson.Unescape([]byte(text[i:min(i+12, len(text))]))
		out, text = utf8.AppendRune(out, r), text[i+size:]
	}
}

// run reads a run: all pieces of up to mostAtoms atoms, also without the letters before the digits of the first or
// after those of the last.
func (s *support) run(u *run) {
	for i := range u.atoms {
		a := &u.atoms[i]
		s.see(a.hash)
		s.from(u.atoms, i, a.hash)
		if a.lead != 0 {
			s.see(a.lead)
		}
		if a.tail != 0 {
			s.see(a.tail)
			s.from(u.atoms, i, a.tail)
		}
		if a.digits > 0 {
			s.numbers(u, i)
		}
	}
}

// from reads the pieces that begin with atom i, whose hash is h.
func (s *support) from(atoms []atom, i int, h uint64) {
	for j := i + 1; j < min(i+mostAtoms, len(atoms)); j++ {
		a := &atoms[j]
		if a.lead != 0 {
			s.see(follow(h, a.sign, a.lead))
		}
		h = follow(h, a.sign, a.hash)
		s.see(h)
	}
}

// numbers reads what can be written in other ways: a number in groups of digits, the first digits of a hash and of a
// decimal.
func (s *support) numbers(u *run, i int) {
	a := &u.atoms[i]
	if a.hex && a.length > shortestHash {
		h := hashBasis
		for n, r := range []byte(strings.ToLower(u.word(i)[:min(longestHash, a.end-a.begin)])) {
			if h = mix(h, uint64(r)); n+1 >= shortestHash {
				s.see(h)
			}
		}
	}
	if groups, _ := digitGroups(u.text, a); len(groups) > 0 {
		s.see(hashOf(leadingDigits(u.word(i)) + strings.Join(groups, "")))
	}
	if i+1 >= len(u.atoms) || !decimal(u.atoms[i:i+2]) {
		return
	}
	const mostPlaces = 12
	fraction := leadingDigits(u.word(i + 1))
	if len(fraction) == groupDigits {
		s.see(hashOf(leadingDigits(u.word(i)) + fraction))
	}
	for n := 1; n <= min(len(fraction), mostPlaces); n++ {
		s.see(decimalHash(a, fraction[:n]))
	}
}
