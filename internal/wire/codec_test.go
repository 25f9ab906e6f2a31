package wire

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/session"
)

// shownAs writes Messages down: a line for each, with its role, then one for each block.
func shownAs(list []Message) string {
	var b strings.Builder
	roles := []string{"user", "assistant", "tool", "system", "other"}
	for _, n := range list {
		b.WriteString(roles[n.Role])
		for _, word := range [][]byte{n.Name, n.Extra} {
			if word != nil {
				b.WriteString(" " + string(word))
			}
		}
		b.WriteString("\n")
		writePieces(&b, "  ", n.Blocks)
	}
	return b.String()
}

func writePieces(b *strings.Builder, indent string, list []Block) {
	for _, p := range list {
		b.WriteString(indent + p.Kind.String())
		for _, word := range []string{p.CallID, string(p.Name), string(p.Text), string(p.Value), string(p.Signature)} {
			if word != "" {
				b.WriteString(" " + word)
			}
		}
		for _, member := range []struct {
			name  string
			value []byte
		}{{"type", p.Media.Type}, {"data", p.Media.Data}, {"url", p.Media.URL}, {"id", p.Media.ID}, {"name", p.Media.Name}, {"text", p.Media.Text}, {"detail", p.Media.Detail}} {
			if member.value != nil {
				b.WriteString(" " + member.name + "=" + string(member.value))
			}
		}
		if p.IsError {
			b.WriteString(" error")
		}
		if p.Custom {
			b.WriteString(" custom")
		}
		if p.Kind == Opaque {
			b.WriteString(" " + string(p.Raw))
		}
		b.WriteString("\n")
		writePieces(b, indent+"  ", p.Content)
	}
}

type decodeCase struct{ name, body, want string }

func testDecode(t *testing.T, f session.Format, cases []decodeCase) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inspect(t, f, c.body)
			list := Decode(f, []byte(c.body))
			if diff := cmp.Diff(strings.TrimLeft(c.want, "\n"), shownAs(list)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := Encode(f, list); len(got) != 1 || string(got[0]) != c.body {
				t.Errorf("in its own format it is %s", got)
			}
		})
	}
}

// encoded returns the Messages in a format, a line for each message.
func encoded(t *testing.T, to session.Format, list []Message) string {
	t.Helper()
	var lines []string
	for _, body := range Encode(to, list) {
		inspect(t, to, string(body))
		lines = append(lines, string(body))
	}
	return strings.Join(lines, "\n")
}

type encodeCase struct {
	name string
	list []Message
	want string
}

func testEncode(t *testing.T, to session.Format, cases []encodeCase) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(strings.TrimSpace(c.want), encoded(t, to, c.list)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// text is a block as another format has it.
func plainText(s string) Block { return Block{Kind: Text, Text: []byte(`"` + s + `"`)} }

func callOf(id, name, value string) Block {
	return Block{Kind: Call, CallID: id, Name: []byte(`"` + name + `"`), Value: []byte(value)}
}

func resultOf(id, name string, content ...Block) Block {
	return Block{Kind: Result, CallID: id, Name: []byte(`"` + name + `"`), Content: content}
}

func failureOf(id, name string, content ...Block) Block {
	p := resultOf(id, name, content...)
	p.IsError = true
	return p
}

var photo = Block{Kind: Image, Media: Media{Type: []byte(`"image/png"`), Data: []byte(`"AAAA"`), Name: []byte(`"a.png"`)}}
