package wire_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

func TestAcceptRefusesWhatCannotBeStored(t *testing.T) {
	t.Parallel()
	content := func(text string) string { return `{"role":"user","content":"` + text + `"}` }
	for body, code := range map[string]string{
		content("hi"):       "",
		content("hi") + "x": "invalid_json",
		`[]`:                "invalid_message",
		`{"role":"user","content":` + strings.Repeat("[", 65) + strings.Repeat("]", 65) + `}`: "json_too_complex",
		content(strings.Repeat("x", session.MaxMessageBytes)):                                 "message_too_large",
		strings.Repeat("x", session.MaxMessageBytes+1):                                        "message_too_large",
	} {
		_, err := wire.Accept(session.OpenAIChat, []byte(body))
		got := ""
		var invalid *session.InvalidError
		if errors.As(err, &invalid) {
			got = invalid.Code
		}
		if got != code {
			t.Errorf("%.40s: %q (%v), not %q", body, got, err, code)
		}
	}
}
