package summary

import (
	"fmt"
	"strconv"
	"strings"
)

// fence begins the lines around a transcript; no summary may contain it.
const fence = "=== transcript "

// Transcript returns the conversation as one text for a model that summarises it. Each line of the conversation begins
// with a bar, and the whole is between two lines with the delimiter. The caller makes up a delimiter for each request,
// so that no message can forge the end of the transcript, another message, or the tags of an answer. Reasoning is
// omitted; parts that are not text are described.
func Transcript(r Request, delimiter string) string {
	t := transcript{delimiter: delimiter}
	fmt.Fprintf(&t, "%s%s begins: messages %d to %d ===\n", fence, delimiter, r.First, r.Last)
	for _, text := range r.Earlier {
		t.before("recorded already, and kept beside the answer", text)
	}
	t.before("facts retained before", r.Retained)
	t.before("summary of what came before", r.Previous)
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			t.part(m, p)
		}
	}
	t.WriteString(fence + delimiter + " ends ===\n")
	return t.String()
}

type transcript struct {
	strings.Builder
	delimiter string
}

func (t *transcript) before(heading, text string) {
	if text != "" {
		t.WriteString("--- " + heading + "\n")
		t.quote(text)
	}
}

func (t *transcript) part(m Message, p Part) {
	if p.Kind == Reasoning {
		return
	}
	t.WriteString("--- " + strconv.FormatInt(m.Seq, 10) + " ")
	if m.Summary {
		t.WriteString("summary by ")
	}
	t.WriteString(label(m.Role))
	switch p.Kind {
	case Call:
		t.WriteString(" calls " + label(p.Tool) + " (" + label(p.CallID) + ")")
	case Result:
		t.WriteString(" answers " + label(p.Tool) + " (" + label(p.CallID) + ")")
		if p.Ref != "" {
			t.WriteString(", " + label(p.Ref))
		}
		if p.Failed {
			t.WriteString(", failed")
		}
	case Other:
		t.WriteString(" sends " + described(p))
	}
	t.WriteString("\n")
	if p.Kind != Other {
		t.quote(p.Text)
	}
}

// quote writes a text with a bar before each line.
func (t *transcript) quote(text string) {
	text = Harmless(text)
	if t.delimiter != "" {
		text = strings.ReplaceAll(text, t.delimiter, "…")
	}
	for line := range strings.Lines(text) {
		t.WriteString("| ")
		t.WriteString(strings.TrimSuffix(line, "\n"))
		t.WriteString("\n")
	}
}

const labelBytes = 64

// label returns a foreign name as safe text for a line of the summary.
func label(name string) string {
	if name == "" {
		return "unknown"
	}
	safe := strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' || strings.ContainsRune(`"\<>`, r) {
			return '_'
		}
		return r
	}, name[:min(len(name), 4*labelBytes)])
	return safe[:min(len(safe), labelBytes)]
}
