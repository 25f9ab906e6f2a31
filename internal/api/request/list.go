package request

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

// PlaceIn returns a place in a list by time.
func PlaceIn(at time.Time, id uuid.UUID) Place { return Place{Order: at.UnixMicro(), ID: id} }

// DefaultPage is how many entries a page of a list has unless the caller sets a limit.
const DefaultPage = 20

// List is the page of a list that a request asks for.
type List struct {
	Limit int   // of entries, one more than the page has: it shows whether there are more
	After Place // in the list

	// Beyond is where a search continues that has looked at as many entries as it may, without finding Limit of them.
	Beyond *Place

	req  *Request
	name string
}

// Place is a position in a list: a number to sort by, and an id that tells equal numbers apart.
type Place struct {
	Order int64
	ID    uuid.UUID
}

// ListQuery are the parameters of every list.
var ListQuery = []string{"limit", "cursor"}

// Page returns the page in the form of lists by time.
func (l *List) Page() session.Page {
	page := session.Page{ID: l.After.ID, Limit: l.Limit}
	if l.After.Order != 0 {
		page.Time = time.UnixMicro(l.After.Order)
	}
	return page
}

// AnswerList answers with a page of a list. The name tells the lists of a tenant apart: a cursor of one is an error in
// another.
func AnswerList[T, A any](
	req *Request, name string, find func(*List) ([]T, error), answer func(T) A, placeOf func(T) Place,
) error {
	page, err := PageOf(req, name, find, answer, placeOf)
	if err != nil {
		return err
	}
	return req.JSON(http.StatusOK, page)
}

// PageOf returns the page of a list that AnswerList answers with.
func PageOf[T, A any](
	req *Request, name string, find func(*List) ([]T, error), answer func(T) A, placeOf func(T) Place,
) (a protocol.List[A], err error) {
	limit := int(req.Query().Integer("limit", 1, session.MaxPage, DefaultPage))
	l := &List{req: req, name: name, Limit: limit + 1}
	l.readCursor()
	if err := req.Err(); err != nil {
		return a, err
	}
	found, err := find(l)
	if err != nil {
		return a, err
	}
	a = protocol.List[A]{Object: "list", Data: make([]A, 0, len(found)), HasMore: len(found) > limit}
	switch {
	case a.HasMore:
		found = found[:limit]
		a.NextCursor = new(l.cursor(placeOf(found[limit-1])))
	case l.Beyond != nil:
		a.HasMore = true
		a.NextCursor = new(l.cursor(*l.Beyond))
	}
	for _, entry := range found {
		a.Data = append(a.Data, answer(entry))
	}
	return a, nil
}

// A cursor is a place, and 4 bytes of a hash of the place and the list that it belongs to.
const (
	cursorOrder = 8
	cursorPlace = cursorOrder + 16
	cursorBytes = cursorPlace + 4
)

func (l *List) cursor(at Place) string {
	b := binary.BigEndian.AppendUint64(nil, uint64(at.Order))
	b = append(b, at.ID[:]...)
	sum := sha256.Sum256(append(b, l.req.Tenant.String()+l.name...))
	return base64.RawURLEncoding.EncodeToString(append(b, sum[:cursorBytes-cursorPlace]...))
}

// readCursor accepts only what cursor returns, byte for byte: base64 alone would ignore line breaks and spare bits.
func (l *List) readCursor() {
	if !l.req.query.Values.Has("cursor") {
		return
	}
	text := l.req.query.Text("cursor", "")
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil && len(b) == cursorBytes {
		l.After = Place{int64(binary.BigEndian.Uint64(b)), uuid.UUID(b[cursorOrder:cursorPlace])}
	}
	if text != l.cursor(l.After) {
		l.req.Fail(Fail("invalid_cursor", "the cursor is not one of this list: begin without a cursor, and follow "+
			"next_cursor"))
	}
}
