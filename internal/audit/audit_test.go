package audit_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/audit"
)

func TestAHeadIsReadAsItIsPrinted(t *testing.T) {
	t.Parallel()
	head := audit.Head{N: 42, Hash: audit.Hash{1, 254}}
	var read audit.Head
	if err := read.UnmarshalText([]byte(head.String())); err != nil || read != head {
		t.Errorf("%s is read as %v, %v", head, read, err)
	}
	digits := strings.Repeat("0", 64)
	for _, text := range []string{"", "42", "x:" + digits, "-1:" + digits, "42:" + digits[1:], "42:" + digits + "0", ":" + digits} {
		if err := read.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), "42:9f86") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestAnExportThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": audit.ErrCut.Error(), "no JSON": "line 1 of the audit trail", "{\"n\":1}\n": audit.ErrCut.Error()} {
		_, err := audit.Behind(audit.Head{}).Read(strings.NewReader(text), func(audit.Break) error { return nil })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	full := errors.New("no room")
	_, err := audit.Behind(audit.Head{}).Read(strings.NewReader(`{"n":1}`), func(audit.Break) error { return full })
	if !errors.Is(err, full) {
		t.Errorf("what cannot be told: %v", err)
	}
}
