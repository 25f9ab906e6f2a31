package compact

import (
	"bytes"
	"strconv"

	"github.com/varve-dev/varve/internal/compact/failure"
	"github.com/varve-dev/varve/internal/compact/names"
	"github.com/varve-dev/varve/internal/compact/resource"
	"github.com/varve-dev/varve/internal/compact/text"
	"github.com/varve-dev/varve/internal/wire"
)

// What a line keeps of a result: the outcome of its call and the names in it. Both are found when the result ceases to
// be whole, and never again.

const (
	outcomeChars = 160  // of the line that tells what became of a call
	endsBytes    = 4096 // of a result's beginning, and of its end, in which that line is looked for
)

// namesOf returns the names in a result after a colon, "" if it has none or the policy wants none. A name may look like
// a secret, so it is masked.
func (s *runState) namesOf(content *wire.Content) string {
	found := names.Top(content.Text, !content.OnlyText, s.policy.Rank.NamesChars)
	if len(found) == 0 {
		return ""
	}
	return ": " + resource.Mask(string(found))
}

// outcomeOf returns what became of the call that result i answers: its size, and the line that tells why it failed or,
// of a command, the last one.
func (s *runState) outcomeOf(i int) string {
	p, content := &s.parts[i], s.content(i)
	size := strconv.Itoa(content.Lines()) + " lines, ~" + strconv.Itoa(p.tokens) + " tokens"
	switch {
	case !p.usable:
		return "failed, " + size + quotedLine(failure.Complaint(string(bytesAtEnds(content.Text))))
	case p.does.runs():
		return size + quotedLine(lastLine(content.Text))
	}
	return size
}

// quotedLine returns a line, secrets masked and cut, after a comma; "" for an empty one.
func quotedLine(line string) string {
	if line == "" {
		return ""
	}
	return ", \"" + text.PlainPreview([]byte(resource.Mask(line)), outcomeChars) + "\""
}

// bytesAtEnds returns a text without its middle if that is long.
func bytesAtEnds(t []byte) []byte {
	if len(t) <= 2*endsBytes {
		return t
	}
	return bytes.Join([][]byte{text.First(t, endsBytes), text.Last(t, endsBytes)}, []byte("\n"))
}

// lastLine returns the last line of a text that has a letter or a digit.
func lastLine(t []byte) string {
	t = text.Last(t, endsBytes)
	for len(t) > 0 {
		t = bytes.TrimRight(t, "\n")
		start := bytes.LastIndexByte(t, '\n') + 1
		if line := bytes.TrimSpace(t[start:]); bytes.ContainsFunc(line, isWordRune) {
			return string(line)
		}
		t = t[:start]
	}
	return ""
}

func isWordRune(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r > '~'
}
