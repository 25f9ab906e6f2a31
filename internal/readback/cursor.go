package readback

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/varve-dev/varve/internal/session"
)

// A cursor is the ref and the place to go on with, and a check of both and of the call that it belongs to: short, so
// that a model can copy it.

var cursorPattern = regexp.MustCompile(`^([a-z0-9.-]{1,60})~([0-9]{1,18})~([0-9]{1,18})~([0-9]{1,18})~([0-9a-f]{8})$`)

var errCursor = session.Invalid("cursor", "invalid_cursor", "the cursor is not one of this call: begin without a "+
	"cursor, and follow next_cursor with the other arguments as they were")

// markOf returns the mark of a call's cursors.
func markOf(arguments ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(arguments, "\x00")))
	return string(sum[:])
}

func cursorAt(ref string, p place, mark string) string {
	text := fmt.Sprintf("%s~%d~%d~%d", ref, p.at, p.line, p.char)
	sum := sha256.Sum256([]byte(text + mark))
	return text + "~" + hex.EncodeToString(sum[:4])
}

// readCursor accepts only what cursorAt returns.
func readCursor(text, mark string) (ref string, p place, ok bool) {
	m := cursorPattern.FindStringSubmatch(text)
	if m == nil {
		return "", p, false
	}
	p.at, _ = strconv.ParseInt(m[2], 10, 64)
	p.line, _ = strconv.ParseInt(m[3], 10, 64)
	p.char, _ = strconv.ParseInt(m[4], 10, 64)
	return m[1], p, cursorAt(m[1], p, mark) == text
}
