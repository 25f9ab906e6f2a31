package summary

import (
	"cmp"
	_ "embed"
	"strings"
	"text/template"

	"github.com/varve-dev/varve/internal/compact/text"
)

//go:embed prompts.tmpl
var promptsText string

// prompts has a template for each style.
var prompts = template.Must(template.New("").Funcs(template.FuncMap{
	"after":        func(i int) int { return i + 1 },
	"content":      content,
	"conversation": told,
	"trim":         trim,
}).Parse(promptsText))

// Prompt returns the text that asks for the summary. In the styles Falai and Cortex it contains the conversation; in
// the others it has only the instructions, and the messages (Codelia) or their Transcript (Sections) are sent with it.
func Prompt(r Request) string {
	var b strings.Builder
	if err := prompts.ExecuteTemplate(&b, cmp.Or(string(r.Style), "sections"), r); err != nil {
		panic(err) // the templates are embedded, and writing to a Builder does not fail
	}
	if r.Style.sendsConversation() {
		return b.String()
	}
	return trim(b.String())
}

// sendsConversation reports whether the prompts of a style contain the conversation.
func (s Style) sendsConversation() bool { return s == Falai || s == Cortex }

// texts returns the texts and results of a message, without its calls.
func texts(m Message) string {
	var b strings.Builder
	for _, p := range m.Parts {
		if p.Kind == Text || p.Kind == Result {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// content returns the texts and results of a message, with what else it has described, and none for a message that has
// only calls and reasoning.
func content(m Message, none string) string {
	var b strings.Builder
	for _, p := range m.Parts {
		switch p.Kind {
		case Text, Result:
			none = ""
			b.WriteString(p.Text)
		case Other:
			b.WriteString("[" + described(p) + "]")
		}
	}
	return cmp.Or(b.String(), none)
}

// trim returns a text without JavaScript's white space at its ends.
func trim(t string) string { return string(text.Trim([]byte(t))) }
