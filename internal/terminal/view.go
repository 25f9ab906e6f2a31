package terminal

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/transcript"
	"github.com/varve-dev/varve/internal/wire"
)

// View writes every message of a view under its role: texts as they are, calls and results marked by arrows.
func View(out io.Writer, v *protocol.View) error {
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, "session %s (%s): %d messages, %d tokens, checkpoint %d through %d of %d\n",
		Printable(v.Session), v.Format, len(v.Messages), v.Tokens, v.Checkpoint, v.Through, v.LastSeq)
	if o := v.Omitted; o != nil {
		fmt.Fprintf(w, "left out: %d units (%d messages, %d tokens)\n", o.Units, o.Messages, o.Tokens)
	}
	for _, c := range v.Cut {
		fmt.Fprintf(w, "cut: %s of message %d from %d to %d tokens (%s)\n", c.Kind, c.Seq, c.TokensBefore,
			c.TokensAfter, c.Ref)
	}
	if v.OverWindow {
		fmt.Fprintf(w, "the view does not fit the window of %d tokens\n", v.Window)
	}
	if len(v.System) > 0 {
		fmt.Fprintf(w, "\n## system\n\n%s", systemText(v.Format, v.System))
	}
	for _, body := range v.Messages {
		fmt.Fprint(w, Message(v.Format, body))
	}
	return w.Flush()
}

// Message returns a message as text, under the heading of its role.
func Message(format session.Format, body []byte) string {
	return Plain(transcript.Message(format, body, 0))
}

// systemText returns a system prompt, which a view has in the form that the provider takes it in.
func systemText(format session.Format, system json.RawMessage) string {
	body := []byte(system)
	if body[0] != '{' { // the content of a message, not a message
		body = fmt.Appendf(nil, `{"role":"user","content":%s}`, system)
	}
	if _, err := wire.Inspect(format, body); err != nil {
		return Plain(string(system)) + "\n"
	}
	var text strings.Builder
	for _, m := range wire.Decode(format, body) {
		text.WriteString(Plain(transcript.Blocks(m.Blocks)))
	}
	return text.String()
}
