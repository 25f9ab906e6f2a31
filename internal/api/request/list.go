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

// DefaultPage is how many entries a page of a list has unless the caller sets a limit.
const DefaultPage = 20

// List is one page of a list: which list, how many entries, and after which place.
type List struct {
	Limit int
	After Place
	req   *Request
	name  string
}

// Place is a position in a list: a number to sort by, and an id that tells equal numbers apart.
type Place struct {
	Order int64
	ID    uuid.UUID
}

// List reads limit and cursor. The name tells the lists of a tenant apart: a cursor of one is an error in another. Its
// errors are kept for Err.
func (req *Request) List(name string) *List {
	q := req.Query("limit", "cursor")
	l := &List{req: req, name: name, Limit: int(q.Integer("limit", 1, session.MaxPage, DefaultPage))}
	if q.Err() == nil && q.Values.Has("cursor") {
		l.readCursor(q.Text("cursor", ""))
	}
	return l
}

// Page returns the page as the store takes it, with one entry more than asked for: it shows whether there are more.
func (l *List) Page() session.Page {
	page := session.Page{ID: l.After.ID, Limit: l.Limit + 1}
	if l.After.Order != 0 {
		page.Time = time.UnixMicro(l.After.Order)
	}
	return page
}

// AnswerList answers with what was found, which is one entry more than the page has if there are more, or returns the
// error of the search.
func AnswerList[T, A any](l *List, found []T, err error, answer func(T) A, placeOf func(T) Place) error {
	if err != nil {
		return err
	}
	a := protocol.List[A]{Object: "list", Data: make([]A, 0, len(found)), HasMore: len(found) > l.Limit}
	if a.HasMore {
		found = found[:l.Limit]
		next := l.cursor(placeOf(found[l.Limit-1]))
		a.NextCursor = &next
	}
	for _, entry := range found {
		a.Data = append(a.Data, answer(entry))
	}
	return l.req.JSON(http.StatusOK, a)
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
func (l *List) readCursor(text string) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil && len(b) == cursorBytes {
		l.After = Place{int64(binary.BigEndian.Uint64(b)), uuid.UUID(b[cursorOrder:cursorPlace])}
	}
	if text != l.cursor(l.After) {
		l.req.Fail(Fail("invalid_cursor", "the cursor is not one of this list: begin without a cursor, and follow "+
			"next_cursor"))
	}
}
