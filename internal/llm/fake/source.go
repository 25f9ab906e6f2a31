package fake

import (
	"regexp"
	"strconv"
	"strings"
)

// source is what a request asks for, and of what.
type source struct {
	instructions string
	lines        []line // of the conversation, oldest first
	size         int    // bytes of the conversation
	limit        int    // tokens of the answer; 0 for no limit
}

// line is a line of the conversation.
type line struct {
	role string
	text string
}

// The forms in which a request has a conversation.
var (
	fence   = regexp.MustCompile(`(?ms)^=== transcript \S+ begins[^\n]*\n(.*?)^=== transcript \S+ ends`)
	heading = regexp.MustCompile(`^--- (?:\d+ )?(\S+)`)
	cortex  = regexp.MustCompile(`^\[Turn \d+\] (\S+):$`)
	falai   = regexp.MustCompile(`^\[(\w+)\]: (.*)$`)
	codelia = "You are summarizing the conversation for context compaction."
	turns0  = "Here are the conversation turns to summarize:"
	allowed = regexp.MustCompile(`(?i)at most (\d+) tokens`)
)

// sourceOf tells the instructions of a request from the conversation in it.
func sourceOf(r *Request) source {
	s := source{instructions: r.System, limit: r.MaxTokens}
	for i, m := range r.Messages {
		for _, p := range m.Parts {
			s.part(p.Text, m.Role, p.Kind == Text && i == len(r.Messages)-1)
		}
	}
	if found := allowed.FindStringSubmatch(s.instructions); found != nil {
		if n, err := strconv.Atoi(found[1]); err == nil && (s.limit == 0 || n < s.limit) {
			s.limit = n
		}
	}
	for _, l := range s.lines {
		s.size += len(l.text) + 1
	}
	return s
}

// part adds a text: a transcript between fences, a conversation in another system's form, instructions that end a
// conversation, or a message of it.
func (s *source) part(text, role string, last bool) {
	found := fence.FindStringSubmatchIndex(text)
	switch {
	case found != nil:
		s.instructions += text[:found[0]] + text[found[1]:]
		s.transcript(text[found[2]:found[3]])
	case strings.HasPrefix(text, turns0):
		s.marked(text, cortex)
	case last && strings.HasPrefix(text, codelia):
		s.instructions += text
	case last && len(s.lines) == 0 && strings.Contains(text, "\n["):
		s.marked(text, falai)
	default:
		s.add(role, text)
	}
}

// transcript adds lines with bars before them, below headings that name who speaks.
func (s *source) transcript(text string) {
	role := ""
	for l := range strings.Lines(text) {
		l = strings.TrimSuffix(l, "\n")
		if quoted, ok := strings.CutPrefix(l, "| "); ok {
			s.add(role, quoted)
		} else if found := heading.FindStringSubmatch(l); found != nil {
			role = found[1]
		}
	}
}

// marked adds a conversation in which a mark begins each message; what stands before the first is instructions.
func (s *source) marked(text string, mark *regexp.Regexp) {
	role := ""
	for l := range strings.Lines(text) {
		l = strings.TrimSuffix(l, "\n")
		found := mark.FindStringSubmatch(l)
		if found != nil {
			role = found[1]
			if l = ""; len(found) > 2 {
				l = found[2]
			}
		}
		if role == "" {
			s.instructions += l + "\n"
		} else if l != "---" {
			s.add(role, l)
		}
	}
}

func (s *source) add(role, text string) {
	for l := range strings.Lines(text) {
		if l = strings.TrimSpace(l); l != "" {
			s.lines = append(s.lines, line{role, l})
		}
	}
}

// conversation returns the lines as one text.
func (s *source) conversation() string {
	var b strings.Builder
	for _, l := range s.lines {
		b.WriteString(l.text)
		b.WriteByte('\n')
	}
	return b.String()
}

// wants reports whether the instructions ask for a tag.
func (s *source) wants(tag string) bool { return strings.Contains(s.instructions, "<"+tag+">") }
