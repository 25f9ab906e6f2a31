package session

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
)

// ResultRef names one persisted tool result inside its session: "r17.1-9f3a" is part 1 of message 17, and the
// SHA-256 of its content begins with 9f3a. "u3-9f3a" is the third result that was uploaded, part of no message. The
// check makes a miscopied ref miss instead of hitting another result.
type ResultRef struct {
	Seq   int64  // 0 for an uploaded result
	Part  int    // of the message; the number of an upload
	Check string // first 4 hex digits of the content's SHA-256
}

// MessagesRef names messages of a session: "m17", or "m17-42" for all from 17 to 42.
type MessagesRef struct{ First, Last int64 }

func (r MessagesRef) String() string {
	if r.First == r.Last {
		return fmt.Sprintf("m%d", r.First)
	}
	return fmt.Sprintf("m%d-%d", r.First, r.Last)
}

var messagesPattern = regexp.MustCompile(`^m([1-9][0-9]{0,17})(?:-([1-9][0-9]{0,17}))?$`)

// ParseMessagesRef parses a ref of messages; it reports false if s is not one.
func ParseMessagesRef(s string) (r MessagesRef, ok bool) {
	m := messagesPattern.FindStringSubmatch(s)
	if m == nil {
		return r, false
	}
	r.First, _ = strconv.ParseInt(m[1], 10, 64)
	if r.Last = r.First; m[2] != "" {
		r.Last, _ = strconv.ParseInt(m[2], 10, 64)
	}
	return r, r.First <= r.Last
}

// NewResultRef names part of message seq, whose content has the given SHA-256.
func NewResultRef(seq int64, part int, sum [32]byte) ResultRef {
	return ResultRef{Seq: seq, Part: part, Check: hex.EncodeToString(sum[:2])}
}

// NewUploadRef names the n-th uploaded result of a session, whose content has the given SHA-256.
func NewUploadRef(n int, sum [32]byte) ResultRef { return NewResultRef(0, n, sum) }

// IsUpload reports whether the ref names an uploaded result.
func (r ResultRef) IsUpload() bool { return r.Seq == 0 }

func (r ResultRef) String() string {
	if r.IsUpload() {
		return fmt.Sprintf("u%d-%s", r.Part, r.Check)
	}
	return fmt.Sprintf("r%d.%d-%s", r.Seq, r.Part, r.Check)
}

var (
	refPattern    = regexp.MustCompile(`^r([1-9][0-9]{0,17})\.(0|[1-9][0-9]{0,8})-([0-9a-f]{4})$`)
	uploadPattern = regexp.MustCompile(`^u([1-9][0-9]{0,8})-([0-9a-f]{4})$`)
)

// ParseResultRef parses a ref; ErrNotFound if s is not one, because no result can have it.
func ParseResultRef(s string) (ResultRef, error) {
	if m := uploadPattern.FindStringSubmatch(s); m != nil {
		n, _ := strconv.Atoi(m[1])
		return ResultRef{Part: n, Check: m[2]}, nil
	}
	m := refPattern.FindStringSubmatch(s)
	if m == nil {
		return ResultRef{}, fmt.Errorf("result %q: %w (a ref looks like r17.1-9f3a, of an upload like u3-9f3a; "+
			"messages are m17 or m17-42)", s, ErrNotFound)
	}
	seq, _ := strconv.ParseInt(m[1], 10, 64)
	part, _ := strconv.Atoi(m[2])
	return ResultRef{Seq: seq, Part: part, Check: m[3]}, nil
}
