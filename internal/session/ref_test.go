package session_test

import (
	"crypto/sha256"
	"errors"
	"testing"

	"github.com/varve-dev/varve/internal/session"
)

func TestARefIsParsedAsItIsWritten(t *testing.T) {
	t.Parallel()
	sum := sha256.Sum256([]byte("content"))
	for _, ref := range []session.ResultRef{
		session.NewResultRef(1, 0, sum), session.NewResultRef(999_999_999_999_999_999, 999_999_999, sum),
		session.NewUploadRef(1, sum), session.NewUploadRef(999_999_999, sum),
	} {
		got, err := session.ParseResultRef(ref.String())
		if err != nil || got != ref {
			t.Errorf("%s was read as %+v, %v", ref, got, err)
		}
	}
	if got := session.NewUploadRef(3, sum); got.String() != "u3-ed70" || !got.IsUpload() {
		t.Errorf("the third upload is %s", got)
	}
	if session.NewResultRef(3, 0, sum).IsUpload() {
		t.Error("a result of a message is an upload")
	}
}

func TestWhatIsNoRefIsNotFound(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"", "u", "u3", "u0-9f3a", "u03-9f3a", "u-3-9f3a", "u3-9f3", "u3-9f3a0", "u3-9F3A", "U3-9f3a", "u3.0-9f3a", " u3-9f3a",
		"u3-9f3a\n", "u3-9f3g", "u1000000000-9f3a", "r0.3-9f3a", "r3-9f3a", "m3", "u3-9f3a/..", "../u3-9f3a", "u3-9f3a\x00",
	} {
		if ref, err := session.ParseResultRef(name); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("%q was read as %+v, %v", name, ref, err)
		}
	}
}

func TestARefWithAnotherCharacterIsAnother(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"u13-9f3a", "r17.1-9f3a"} {
		for at := range name {
			for _, c := range "0123456789abcdefrum.-" {
				other := name[:at] + string(c) + name[at+1:]
				ref, err := session.ParseResultRef(other)
				if err == nil && ref.String() != other {
					t.Errorf("%s was read as %s", other, ref)
				}
			}
		}
	}
}
