package session_test

import (
	"crypto/sha256"
	"errors"
	"io"
	"testing"

	"github.com/varve-dev/varve/internal/session"
)

func TestAMessageIsCheckedByItsDigest(t *testing.T) {
	t.Parallel()
	digest := sha256.Sum256([]byte(`{"role":"user"}`))
	if err := session.CheckMessage(17, []byte(`{"role":"user"}`), digest[:]); err != nil {
		t.Error(err)
	}
	if err := session.CheckMessage(17, []byte(`from before`), nil); err != nil {
		t.Error(err)
	}
	err := session.CheckMessage(17, []byte(`{"role":"uzer"}`), digest[:])
	var damaged *session.DamagedError
	if !errors.Is(err, session.ErrDamaged) || !errors.As(err, &damaged) || damaged.What != "message 17" || damaged.Kind() != "message" {
		t.Errorf("another body: %v", err)
	}
}

func TestWhatNoticedDamageIsNotSeenThroughIt(t *testing.T) {
	t.Parallel()
	err := session.DamagedCheckpoint(3, io.ErrUnexpectedEOF)
	if errors.Is(err, io.ErrUnexpectedEOF) || !errors.Is(err, session.ErrDamaged) {
		t.Error(err)
	}
}
