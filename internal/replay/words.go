package replay

import (
	"regexp"
	"strings"

	"github.com/varve-dev/varve/internal/wire"
)

// segment is a sentence or line that the user typed.
type segment struct {
	message int
	found   int32
	size    int // bytes
	demand  bool
}

// machine recognises texts in the user's messages that nobody typed: the harness put them there.
var machine = regexp.MustCompile(`(?s)^\s*(<(command|local-command|system|task|environment|user|ide|bash)[-_]|` +
	`Caveat: The messages below|This session is being continued|` +
	`\[Request interrupted|# AGENTS\.md|Base directory for this skill)`)

// maxTyped is how many bytes of a text are the user's words: of more, which is a paste, half of that at both ends.
const maxTyped = 4000

// sentences ends a segment: a line end, or the end of a sentence before white space.
var sentences = regexp.MustCompile(`\n+|[.!?]\s+`)

// demands recognises a sentence that demands something.
var demands = regexp.MustCompile(`(?i)\b(must|never|always|don'?t|do not|should|please|make sure|only|instead|` +
	`need to|have to|want|use|keep|avoid|without|ensure|no longer|required?)\b`)

// readWords adds the user's words in message i to the index.
func (x *indexer) readWords(i int) {
	found := &x.facts[i]
	if found.Role != "user" {
		return
	}
	body := x.session.Messages[i].Body
	for k := range found.Parts {
		p := &found.Parts[k]
		if p.Kind != wire.Text {
			continue
		}
		text := string(wire.ResultText(x.session.Format, body, *p).Text)
		if machine.MatchString(text) {
			continue
		}
		if len(text) > maxTyped {
			text = text[:maxTyped/2] + "\n" + text[len(text)-maxTyped/2:]
		}
		for _, sentence := range sentences.Split(text, -1) {
			x.segment(i, sentence)
		}
	}
}

func (x *indexer) segment(i int, sentence string) {
	text := normalised(strings.TrimSpace(sentence))
	if len(text) < shortest {
		return
	}
	x.words = append(x.words, segment{i, x.pattern(text, false), len(text), demands.MatchString(text)})
}
