package api

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// defaultPage is how many entries a page of a list has if the caller does not say.
const defaultPage = 20

// list is one page of a list on its way: which list, how much of it, and after which place.
type list struct {
	x     *exchange
	name  string
	limit int
	after place
	err   error
}

// place is a position in a list: a number to sort by, and what tells equal ones apart.
type place struct {
	order int64
	id    uuid.UUID
}

// listOf reads limit and cursor. The name tells the lists of a tenant apart: a cursor of one is an error in another.
func listOf(x *exchange, name string) *list {
	q := x.query("limit", "cursor")
	l := &list{x: x, name: name, limit: int(q.integer("limit", 1, session.MaxPage, defaultPage))}
	if l.err = q.err(); l.err == nil && q.values.Has("cursor") {
		l.after, l.err = l.parseCursor(q.text("cursor", ""))
	}
	return l
}

// page is the list's page as the store wants it, with one entry more than asked for: it tells whether there are more.
func (l *list) page() (session.Page, error) {
	page := session.Page{ID: l.after.id, Limit: l.limit + 1}
	if l.after.order != 0 {
		page.Time = time.UnixMicro(l.after.order)
	}
	return page, l.err
}

// answerList answers with what was found, which is one entry more than the page has if there are more.
func answerList[T, A any](l *list, found []T, answer func(T) A, placeOf func(T) place) error {
	a := protocol.List[A]{Object: "list", Data: make([]A, 0, len(found))}
	if a.HasMore = len(found) > l.limit; a.HasMore {
		found = found[:l.limit]
		next := l.cursor(placeOf(found[l.limit-1]))
		a.NextCursor = &next
	}
	for _, entry := range found {
		a.Data = append(a.Data, answer(entry))
	}
	return l.x.json(http.StatusOK, a)
}

// A cursor is a place, and 4 bytes of a hash of it and of the list that it belongs to.
const (
	cursorOrder = 8
	cursorPlace = cursorOrder + 16
	cursorBytes = cursorPlace + 4
)

func (l *list) cursor(at place) string {
	b := binary.BigEndian.AppendUint64(nil, uint64(at.order))
	b = append(b, at.id[:]...)
	sum := sha256.Sum256(append(b, l.x.tenant.String()+l.name...))
	return base64.RawURLEncoding.EncodeToString(append(b, sum[:cursorBytes-cursorPlace]...))
}

// parseCursor reads a cursor that is exactly what cursor made: base64 alone would pass over line breaks and spare bits.
func (l *list) parseCursor(text string) (at place, err error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil && len(b) == cursorBytes {
		at = place{int64(binary.BigEndian.Uint64(b)), uuid.UUID(b[cursorOrder:cursorPlace])}
	}
	if text != l.cursor(at) {
		return place{}, fail("invalid_cursor", "this list did not make that cursor: begin without one, and follow next_cursor")
	}
	return at, nil
}
