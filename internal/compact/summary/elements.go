package summary

import "strings"

// requested returns the contents of the elements that have the user's words, if a text has such an element, else the
// whole text.
func requested(t string) string {
	var words []string
	for _, name := range harness.requests {
		if !strings.Contains(t, "<"+name+">") {
			continue
		}
		for rest, more := t, true; more; {
			var said string
			if _, rest, more = strings.Cut(rest, "<"+name+">"); more {
				said, rest, _ = strings.Cut(rest, "</"+name+">")
				words = append(words, strings.TrimSpace(said))
			}
		}
		return strings.Join(words, "\n\n")
	}
	return t
}

// withoutElements returns a text without the elements that are a harness's, and without the tags around what is the
// user's.
func withoutElements(t string) string {
	s := stripper{rest: t, atStart: true}
	for {
		i := strings.IndexByte(s.rest, '<')
		if i < 0 {
			s.write(s.rest)
			return s.kept.String()
		}
		s.write(s.rest[:i])
		s.rest = s.rest[i:]
		s.tag()
	}
}

// stripper copies a text without a harness's elements.
type stripper struct {
	kept    strings.Builder
	rest    string // begins with what was not copied yet
	atStart bool   // nothing was kept yet, so that wrappers are recognised
	last    byte   // the last byte kept
	unended map[string]bool
}

func (s *stripper) write(text string) {
	if text == "" {
		return
	}
	s.kept.WriteString(text)
	s.last = text[len(text)-1]
	s.atStart = s.atStart && strings.TrimSpace(text) == ""
}

// tag handles the less-than sign with which the rest begins.
func (s *stripper) tag() {
	name := tagName(s.rest)
	quoted := s.last == '`'
	switch {
	case name == "" || quoted:
	case harness.elements[name] && s.drop(name):
		return
	case name == "command-name" && s.command():
		return
	case harness.wrappers[name] && (s.atStart || name == "command-args"):
		s.unwrap(name)
		return
	}
	s.write("<")
	s.rest = s.rest[1:]
}

// drop drops the element with which the rest begins, and reports whether it did. An element without an end reaches to
// the end of the text if it begins a line; else it is not a harness's.
func (s *stripper) drop(name string) bool {
	if _, after, ok := s.cut(name); ok {
		s.rest = after
		return true
	}
	if s.last != 0 && s.last != '\n' {
		return false
	}
	s.rest = ""
	return true
}

// cut returns what is in the element with which the rest begins, and what follows it. Each name whose end is missing is
// searched once.
func (s *stripper) cut(name string) (inside, after string, ok bool) {
	if s.unended[name] {
		return "", "", false
	}
	_, inside, _ = strings.Cut(s.rest, ">")
	if inside, after, ok = strings.Cut(inside, "</"+name+">"); !ok {
		if s.unended == nil {
			s.unended = map[string]bool{}
		}
		s.unended[name] = true
	}
	return inside, after, ok
}

// command keeps the name of a command unless it only concerns the screen.
func (s *stripper) command() bool {
	name, after, ok := s.cut("command-name")
	if !ok {
		return false
	}
	s.rest = after
	if name = strings.TrimSpace(name); !harness.screens[name] {
		s.write(name + " ")
		s.rest = strings.TrimLeft(after, " \n")
	}
	return true
}

// unwrap keeps what is in an element.
func (s *stripper) unwrap(name string) {
	inside, after, ok := s.cut(name)
	if !ok {
		_, s.rest, _ = strings.Cut(s.rest, ">")
		return
	}
	s.write(strings.TrimSpace(inside))
	s.rest = after
}

// tagName returns the name of the opening tag with which a text begins, "" for none.
func tagName(t string) string {
	const longest = 40
	for i := 1; i < min(len(t), longest); i++ {
		c := t[i]
		switch {
		case c == '>' || c == ' ' && i > 1:
			return t[1:i]
		case c != '-' && c != '_' && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z'):
			return ""
		}
	}
	return ""
}
