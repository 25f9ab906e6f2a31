package session

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// ErrTooManyPins reports that a session has as many pins as it may.
var ErrTooManyPins = errors.New("the session has as many pins as it may")

// MaxPins is how many pins of callers a session may have.
const MaxPins = 200

// WholeMessage is the part of a pin that names a whole message.
const WholeMessage = -1

// Pin is a text that every checkpoint of a session has verbatim.
type Pin struct {
	Ref       string    `json:"ref"`
	Seq       int64     `json:"seq"`
	Part      *int      `json:"part"` // null for a whole message
	Text      string    `json:"text"` // what every checkpoint has word for word
	Tokens    int       `json:"tokens"`
	Note      string    `json:"note"`
	CreatedAt time.Time `json:"created_at"`
}

// PinRef names what is pinned: a message ("m17"), a part of one ("m17.2"), or a result ("r17.2-9f3a").
type PinRef struct {
	Text  string
	Seq   int64
	Part  int    // WholeMessage for all
	Check string // of a result, see ResultRef
}

var partPattern = regexp.MustCompile(`^m([1-9][0-9]{0,17})\.(0|[1-9][0-9]{0,8})$`)

// ParsePinRef parses the ref of a pin. Its error wraps ErrNotFound and says what a ref looks like.
func ParsePinRef(s string) (PinRef, error) {
	if m := partPattern.FindStringSubmatch(s); m != nil {
		seq, _ := strconv.ParseInt(m[1], 10, 64)
		part, _ := strconv.Atoi(m[2])
		return PinRef{Text: s, Seq: seq, Part: part}, nil
	}
	if r, ok := ParseMessagesRef(s); ok && r.First == r.Last {
		return PinRef{Text: r.String(), Seq: r.First, Part: WholeMessage}, nil
	}
	r, err := ParseResultRef(s)
	if err != nil || r.IsUpload() {
		return PinRef{}, fmt.Errorf("pin %q: %w (pin a message, m17, a part of one, m17.2, or a result, r17.2-9f3a)",
			s, ErrNotFound)
	}
	return PinRef{Text: s, Seq: r.Seq, Part: r.Part, Check: r.Check}, nil
}
