package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// Policy is a policy for one request, by flags.
type Policy struct {
	Policy  string `xor:"policy" help:"Changes to the sessions' policies: JSON, or a file of it (- is standard input)."`
	Profile string `xor:"policy" help:"A profile for the policy, as varve policy profiles lists them."`
}

// Document returns the policy that the flags name, nil for none.
func (p *Policy) Document() (json.RawMessage, error) {
	if p.Profile != "" {
		return fmt.Appendf(nil, `{"profile":%q}`, p.Profile), nil
	}
	return ReadPolicy(p.Policy)
}

// ReadPolicy reads the value of --policy: JSON, or the file that it names, - for standard input. It returns nil for "".
func ReadPolicy(text string) (json.RawMessage, error) {
	if text == "" {
		return nil, nil
	}
	raw := []byte(text)
	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		var err error
		if raw, err = ReadFile(text); err != nil {
			return nil, Usage("--policy: " + err.Error())
		}
	}
	if !json.Valid(raw) {
		return nil, Usage("--policy is not JSON")
	}
	return raw, nil
}

// ReadFile reads a file, - for standard input.
func ReadFile(file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(os.Stdin)
	}
	return os.ReadFile(file)
}

// WriteIndented writes a document with one member a line.
func WriteIndented(out io.Writer, document []byte) error {
	var text bytes.Buffer
	if err := json.Indent(&text, document, "", "  "); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, text.String())
	return err
}
