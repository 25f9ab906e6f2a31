package postgres

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"

	"github.com/varve-dev/varve/internal/session"
)

// A shape is what was found in a message when it was appended, and the sum of what views show of it: fields, each
// ended by ASCII 31, of which the two before the sum are lists of texts that ASCII 29 separates. wire.ParseShapes reads
// it. It is written with the message, because making it at every read would cost more than all else that a read does
// with a message. A shape from before there were sums has none.
const (
	fieldsOfShape = 6 // with the sum
	fieldEnd      = 0x1f
	betweenIDs    = "\x1d"
	betweenShapes = 0x1e
	behindName    = 0x1c // of a seq and of a number of tokens before a shape
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// shapeOf returns the shape of a message of which views show shown.
func shapeOf(format int16, m *session.NewMessage, shown []byte) string {
	shape := make([]byte, 0, 128)
	shape = append(strconv.AppendInt(shape, int64(format), 10), fieldEnd)
	shape = append(strconv.AppendInt(shape, int64(m.Flags), 10), fieldEnd)
	shape = append(append(shape, Text(m.Role)...), fieldEnd)
	shape = append(appendIDs(shape, m.Calls), fieldEnd)
	shape = append(appendIDs(shape, m.Answers), fieldEnd)
	return string(append(appendSum(shape, shown), fieldEnd))
}

func appendIDs(dst []byte, ids []string) []byte {
	for i, id := range ids {
		if i > 0 {
			dst = append(dst, betweenIDs...)
		}
		dst = append(dst, Text(id)...)
	}
	return dst
}

// idsOfShape returns the ids of the calls that a message makes and of those that it answers, as appendIDs wrote them. A
// message with one call whose id is empty is taken for one without calls.
func idsOfShape(shape string) (calls, answers []string) {
	fields := strings.Split(shape, string(rune(fieldEnd)))
	if len(fields) < fieldsOfShape-1 {
		return nil, nil
	}
	return splitIDs(fields[3]), splitIDs(fields[4])
}

func splitIDs(ids string) []string {
	if ids == "" {
		return nil
	}
	return strings.Split(ids, betweenIDs)
}

// appendSum appends the length of a body and, behind a dot, its CRC-32C, both in hexadecimal digits.
func appendSum(dst, body []byte) []byte {
	dst = append(strconv.AppendInt(dst, int64(len(body)), 16), '.')
	return strconv.AppendUint(dst, uint64(crc32.Checksum(body, castagnoli)), 16)
}

// shapesOf returns the shapes of a batch. views has what views show of messages that were capped; it may be nil.
func shapesOf(format int16, messages []session.NewMessage, views *cappedViews) []string {
	shapes := make([]string, len(messages))
	for i := range messages {
		shown := messages[i].Body
		if views != nil && views.bodies[i] != nil {
			shown = views.bodies[i]
		}
		shapes[i] = shapeOf(format, &messages[i], shown)
	}
	return shapes
}

// sumOf returns the sum in a shape, nil if it has none.
func sumOf(shape []byte) []byte {
	if bytes.Count(shape, []byte{fieldEnd}) != fieldsOfShape {
		return nil
	}
	shape = shape[:len(shape)-1]
	return shape[bytes.LastIndexByte(shape, fieldEnd)+1:]
}

// logged is a piece of a view that has messages of the log: those behind the seq after, through the seq through.
type logged struct {
	joined, shapes []byte // as in View
	after, through int64
}

// check compares every message with the sum in its shape, from the last one on, and returns a *session.DamagedError for
// the first that differs. What is before a message without a sum is not checked: where it ends is not known.
func (l logged) check() error {
	joined, shapes := l.joined, l.shapes
	seq := l.through
	named := false
	for more := len(shapes) > 0; more; seq-- {
		at := bytes.LastIndexByte(shapes, betweenShapes)
		shape := shapes[at+1:]
		if more = at >= 0; more {
			shapes = shapes[:at]
		}
		if name, _, has := bytes.Cut(shape, []byte{behindName}); has {
			named = true
			seq, _ = strconv.ParseInt(string(name), 10, 64)
		}
		sum := sumOf(shape)
		if sum == nil {
			return nil
		}
		rest, err := cutLast(joined, sum, more)
		if err != nil {
			return session.DamagedMessage(seq, err)
		}
		joined = rest
	}
	if missing := seq - l.after; missing != 0 && !named && len(l.shapes) > 0 {
		return missingMessages(l.after, l.through, missing)
	}
	return nil
}

// missingMessages returns the damage of a log in which some of the messages behind the seq after through the seq
// through are missing.
func missingMessages(after, through, missing int64) error {
	return &session.DamagedError{What: fmt.Sprintf("message %d to %d", after+1, through),
		Cause: fmt.Errorf("%d of them are not there", missing)}
}

// cutLast cuts the last message off and returns what is before it. more reports whether a message is there.
func cutLast(joined, sum []byte, more bool) (rest []byte, err error) {
	digits, check, _ := strings.Cut(string(sum), ".")
	size, err := strconv.ParseInt(digits, 16, 32)
	if err != nil {
		return nil, err
	}
	at := len(joined) - int(size)
	if at < 0 || !more && at > 0 || more && (at == 0 || joined[at-1] != ',') {
		return nil, fmt.Errorf("it has not the %d bytes that were stored", size)
	}
	if !sums(joined[at:], check) {
		return nil, errors.New("its bytes are not those that were stored: they have another sum")
	}
	if more {
		at--
	}
	return joined[:at], nil
}

// sums reports whether a body has the CRC-32C or, if that is longer, the SHA-256 that hexadecimal digits say.
func sums(body []byte, digits string) bool {
	if len(digits) == 2*sha256.Size {
		digest := sha256.Sum256(body)
		return hex.EncodeToString(digest[:]) == digits
	}
	want, err := strconv.ParseUint(digits, 16, 32)
	return err == nil && crc32.Checksum(body, castagnoli) == uint32(want)
}
