package llm

import (
	"encoding/json"
	"strings"
)

// Key is a secret of the operator, such as the key of a provider. It is never shown: every way to print, log or marshal
// it says only whether it is set.
type Key struct {
	text *string // behind a pointer: even a dump of the memory of a value that has a Key shows an address
}

// NewKey returns a key. Space around it, such as the end of a file's line, is not part of it.
func NewKey(text string) Key {
	if text = strings.TrimSpace(text); text == "" {
		return Key{}
	}
	return Key{&text}
}

// Set reports whether there is a key.
func (k Key) Set() bool { return k.text != nil }

// reveal returns the key itself, for the header of a request.
func (k Key) reveal() string {
	if k.text == nil {
		return ""
	}
	return *k.text
}

// String returns "set" or "not set".
func (k Key) String() string {
	if k.Set() {
		return "set"
	}
	return "not set"
}

// GoString returns what String returns.
func (k Key) GoString() string { return k.String() }

// MarshalJSON returns what String returns as a JSON string.
func (k Key) MarshalJSON() ([]byte, error) { return json.Marshal(k.String()) }

// UnmarshalJSON reads the key itself.
func (k *Key) UnmarshalJSON(document []byte) error {
	var text string
	if err := json.Unmarshal(document, &text); err != nil {
		return errKey // not err, which may quote the document
	}
	*k = NewKey(text)
	return nil
}
