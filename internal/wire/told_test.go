package wire_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/units"
	"github.com/varve-dev/varve/internal/wire"
)

// teller writes down what messages say, a line for each text, call, result and picture, in the same words for every
// format: the substitutes that docs/formats.md lists are put back to what they stand for.
type teller struct {
	lines   []string
	open    units.Pairer[int] // calls without a result
	spoke   bool              // the last message is the assistant's
	calls   int
	called  []string // calls of the message: some formats have them behind all that it says
	waiting []string // what results show: some formats have it behind the last of them
}

// told returns what a list of messages of a format tells, as lines.
func told(f session.Format, bodies [][]byte) []string {
	var t teller
	for _, body := range bodies {
		for _, n := range wire.Decode(f, body) {
			if n.Role == wire.Assistant && !(t.spoke && f == session.OpenAIResponses) {
				t.open.Turn()
			}
			t.spoke = n.Role == wire.Assistant
			if n.Role == wire.Tool {
				t.call()
			} else if n.Role != wire.Assistant {
				t.call()
				t.show()
			}
			for i := range n.Blocks {
				t.tell(&n.Blocks[i])
			}
		}
	}
	t.call()
	t.show()
	return t.lines
}

func (t *teller) call() { t.lines, t.called = append(t.lines, t.called...), nil }

func (t *teller) show() { t.lines, t.waiting = append(t.lines, t.waiting...), nil }

func (t *teller) tell(p *wire.Block) {
	switch p.Kind {
	case wire.Text:
		t.text(words(p.Text))
	case wire.Reasoning:
		t.thought(words(p.Text))
	case wire.Call:
		t.calls++
		t.open.Call(p.CallID, words(p.Name), t.calls)
		t.called = append(t.called, fmt.Sprintf("call %d: %s %s", t.calls, words(p.Name), argumentsOf(p.Value)))
	case wire.Result:
		t.result(p)
	case wire.Image, wire.File:
		t.lines = append(t.lines, mediaOf(p)...)
	case wire.Opaque:
		if foundNothing := strings.Contains(string(p.Raw), `"tool_search_output"`) && strings.HasSuffix(string(p.Raw), `"tools":[]}`); !foundNothing {
			t.text(opaque(p))
		}
	default:
		t.text(opaque(p))
	}
}

// The texts that stand with or for what a format cannot say.
var (
	shownNote  = regexp.MustCompile(`^\[(image|file)( of the result of call .*|: it stands behind the results|: 0 bytes in base64| [^:\]]*| [^:\]]*: it is not base64: read_result m\d+)\]$`)
	placeNote  = regexp.MustCompile(`^\[(image|file)[^\]\n]*\][ \n]`)
	speaker    = regexp.MustCompile(`^\[(System|exit)\]( |$)`)
	madeNotes  = []string{"[The conversation begins here.]", "Continue."}
	orphanNote = regexp.MustCompile(`^\[(The result of a tool call that is not in this conversation|Another result of a tool call that has one): `)
	lostNote   = "[The result of this tool call is "
)

func (t *teller) text(text string) {
	text = speaker.ReplaceAllString(text, "")
	thought, isThought := strings.CutPrefix(text, "[Reasoning] ")
	place := placeNote.FindString(text)
	switch {
	case strings.HasPrefix(text, "[Sources: "), strings.HasPrefix(text, `[opaque: {"type":"source-`), strings.TrimSpace(text) == "", shownNote.MatchString(text), slices.Contains(madeNotes, text):
	case orphanNote.MatchString(strings.TrimPrefix(text, "[Error] ")):
		t.orphan(strings.HasPrefix(text, "[Error] "))
	case isThought:
		t.thought(thought)
	case place != "":
		t.lines = append(t.lines, "shown: "+strings.TrimPrefix(text, place))
	default:
		t.lines = append(t.lines, "text: "+text)
	}
}

// orphan tells of a result of no call. What it says is told as texts.
func (t *teller) orphan(failed bool) {
	t.lines = append(t.lines, fmt.Sprintf("orphan, failed: %t", failed))
}

// thought tells one that can be read, a line each: some formats have several in one. Proofs are good for their provider
// alone.
func (t *teller) thought(text string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			t.lines = append(t.lines, "thought: "+line)
		}
	}
}

func (t *teller) result(p *wire.Block) {
	call, ok := t.open.Answer(p.CallID, words(p.Name))
	if !ok {
		t.orphan(p.IsError)
		for i := range p.Content {
			t.tell(&p.Content[i])
		}
		return
	}
	var texts []string
	for i := range p.Content {
		c := &p.Content[i]
		switch text := words(c.Text); {
		case placeNote.MatchString(text):
			t.waiting = append(t.waiting, "shown: "+placeNote.ReplaceAllString(text, ""))
		case c.Kind == wire.Image || c.Kind == wire.File:
			t.waiting = append(t.waiting, mediaOf(c)...)
		case c.Kind == wire.Opaque:
			texts = append(texts, opaque(c))
		case !shownNote.MatchString(text):
			texts = append(texts, text)
		}
	}
	text := strings.TrimRight(strings.Join(texts, "\n"), "\n")
	failed, ok := strings.CutPrefix(text, "[Error]")
	failed = strings.TrimPrefix(failed, " ")
	switch {
	case strings.HasPrefix(failed, lostNote):
		return
	case p.IsError || ok:
		text = "failed: " + failed
	}
	t.lines = append(t.lines, fmt.Sprintf("result of %d: %s", call, text))
}

// opaque returns the text that replaces a block that only its format knows.
func opaque(p *wire.Block) string {
	const limit = 4096
	var block struct{ Type, Content string }
	if json.Unmarshal(p.Raw, &block) == nil && block.Type == "compaction" && block.Content != "" {
		return "[Summary of the conversation so far] " + block.Content
	}
	var tool struct {
		Type            string
		Name            string `json:"tool_name"`
		ProviderOptions struct{ Anthropic struct{ ToolName string } }
	}
	if json.Unmarshal(p.Raw, &tool) == nil && tool.Name+tool.ProviderOptions.Anthropic.ToolName != "" {
		return "[tool " + tool.Name + tool.ProviderOptions.Anthropic.ToolName + "]"
	}
	if len(p.Raw) <= limit {
		return fmt.Sprintf("[opaque: %s]", p.Raw)
	}
	return fmt.Sprintf("[opaque of %d bytes, it begins: %s]", len(p.Raw), p.Raw[:limit])
}

func words(literal []byte) string {
	if literal == nil {
		return ""
	}
	text, _ := rawjson.Unquote(nil, literal)
	return string(text)
}

// argumentsOf puts arguments that are no object into {"input": …}, as the formats that want one do.
func argumentsOf(value []byte) string {
	switch {
	case len(value) == 0, string(value) == `""`:
		return "{}"
	case value[0] != '{':
		return `{"input":` + string(value) + "}"
	}
	return string(value)
}

// mediaOf tells what is shown; nothing, of an image or a file that holds nothing and is nowhere.
func mediaOf(p *wire.Block) []string {
	m := &p.Media
	if m.Text != nil {
		return []string{"shown: " + words(m.Text)}
	}
	at := strings.TrimRight(words(m.Data), "=") + words(m.URL)
	if at == "" || at == "<scrubbed>" { // which is no base64
		at = words(m.ID)
	}
	if at == "" {
		return nil
	}
	return []string{"shown: " + at}
}
