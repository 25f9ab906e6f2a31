package session

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
)

// ErrDamaged reports that stored bytes are not those that were written. It is what every *DamagedError is.
var ErrDamaged = errors.New("stored bytes are damaged")

// DamagedError is returned if what is stored is not what was written: it must not be served. What names it: "message
// 17", "result r17.1-9f3a", "checkpoint 3". Cause, if any, says how that was noticed; errors.Is and errors.As do not
// see it, because a decoder's io.ErrUnexpectedEOF must not be taken for a lost connection.
type DamagedError struct {
	What  string
	Cause error
}

func (e *DamagedError) Error() string {
	if e.Cause == nil {
		return e.What + " is damaged"
	}
	return fmt.Sprintf("%s is damaged: %v", e.What, e.Cause)
}

// Unwrap returns ErrDamaged.
func (e *DamagedError) Unwrap() error { return ErrDamaged }

// Kind returns what kind of thing is damaged, the first word of What: message, result, chunk, checkpoint, state, …
func (e *DamagedError) Kind() string {
	kind, _, _ := strings.Cut(e.What, " ")
	return kind
}

// DamagedMessage returns the error for a message of the log.
func DamagedMessage(seq int64, cause error) error {
	return &DamagedError{What: fmt.Sprintf("message %d", seq), Cause: cause}
}

// DamagedCheckpoint returns the error for a checkpoint.
func DamagedCheckpoint(n int, cause error) error {
	return &DamagedError{What: fmt.Sprintf("checkpoint %d", n), Cause: cause}
}

// DamagedState returns the error for what a checkpoint keeps for the next compaction.
func DamagedState(n int, cause error) error {
	return &DamagedError{What: fmt.Sprintf("state of checkpoint %d", n), Cause: cause}
}

var errDigest = errors.New("its bytes are not those that were stored: they have another digest")

// CheckDigest returns an error unless digest is the SHA-256 of body. A digest of nil is one from before there were
// digests: it is not checked.
func CheckDigest(body, digest []byte) error {
	if digest == nil {
		return nil
	}
	if sum := sha256.Sum256(body); string(sum[:]) != string(digest) {
		return errDigest
	}
	return nil
}

// CheckMessage returns a *DamagedError unless body is what was appended as message seq, whose digest the log has.
// A digest of nil is not checked.
func CheckMessage(seq int64, body, digest []byte) error {
	if err := CheckDigest(body, digest); err != nil {
		return DamagedMessage(seq, err)
	}
	return nil
}
