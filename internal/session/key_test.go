package session_test

import (
	"crypto/sha256"
	"errors"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/session"
)

func TestAKeyNamesItsTenantAndIsKnownByItsDigest(t *testing.T) {
	t.Parallel()
	tenant := uuid.Must(uuid.NewV7())
	text := session.NewAPIKey(tenant)
	got, digest, err := session.ParseKey(text)
	if err != nil || got != tenant || digest != sha256.Sum256([]byte(text)) {
		t.Errorf("ParseKey(%s) = %s, %x, %v", text, got, digest, err)
	}
	if !regexp.MustCompile(`^` + session.KeyPattern + `$`).MatchString(text) {
		t.Errorf("%s does not match KeyPattern", text)
	}
	if again := session.NewAPIKey(tenant); again == text {
		t.Errorf("two keys are the same: %s", text)
	}
}

func TestAKeyThatWasMiscopiedIsNone(t *testing.T) {
	t.Parallel()
	text := session.NewAPIKey(uuid.Must(uuid.NewV7()))
	for i := range text {
		for _, c := range []byte("0aZ_") {
			if text[i] == c {
				continue
			}
			broken := text[:i] + string(c) + text[i+1:]
			if _, _, err := session.ParseKey(broken); !errors.Is(err, session.ErrUnauthorized) {
				t.Errorf("ParseKey(%s) with another character at %d: %v", broken, i, err)
			}
		}
	}
	for _, broken := range []string{"", "vk_", text[:len(text)-1], text + "0", strings.ToUpper(text), " " + text} {
		if _, _, err := session.ParseKey(broken); !errors.Is(err, session.ErrUnauthorized) {
			t.Errorf("ParseKey(%q): %v", broken, err)
		}
	}
}

func TestRandomTextOfAKeysLengthIsNoKey(t *testing.T) {
	t.Parallel()
	const hexadecimal, base62 = "0123456789abcdef", "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	random := rand.New(rand.NewPCG(1, 2))
	draw := func(n int, from string) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = from[random.IntN(len(from))]
		}
		return string(b)
	}
	for range 10_000 {
		text := "vk_" + draw(32, hexadecimal) + "_" + draw(36, base62)
		if _, _, err := session.ParseKey(text); err == nil {
			t.Errorf("%s passed", text)
		}
	}
}
