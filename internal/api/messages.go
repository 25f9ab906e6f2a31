package api

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/view"
)

// defaultMessages is how many messages a page of the log has unless the caller sets a limit.
const defaultMessages = 100

// listMessages handles GET /v1/sessions/{id}/messages.
func (s *Server) listMessages(req *request.Request) error {
	q := req.Query()
	limit := int(q.Integer("limit", 1, session.MaxMessagePage, defaultMessages))
	r := readRange(q)
	r.Limit = limit + 1
	r.Bytes, r.Removed = maxMessagePageBytes, true
	seq := readMinSeq(q)
	if err := req.Err(); err != nil {
		return err
	}
	if err := s.checkSeq(req, seq); err != nil {
		return err
	}
	found, err := req.Page(r, func(r postgres.Range) ([]session.Message, error) {
		_, found, err := req.Store.Messages(req.Ctx, req.Address(), r)
		return found, err
	})
	if err != nil {
		return err
	}
	page := pageOf(found, limit, maxMessagePageBytes)
	body := req.Buffer()
	err = req.Heavy(request.Bytes(page), func() (err error) {
		body.B, err = appendMessagePage(body.B, page, len(page) < len(found), r.Descending)
		return err
	})
	if err != nil {
		return err
	}
	return req.Bytes(http.StatusOK, request.JSONType, body.B)
}

// readRange reads which messages are wanted, and in which order.
func readRange(q *request.Query) (r postgres.Range) {
	after, before := readBound(q, "from_seq", -1, "after_seq"), readBound(q, "to_seq", 1, "before_seq")
	if q.Choice("order", "asc", "desc") == "desc" {
		return postgres.Range{Descending: true, After: before, To: after + 1}
	}
	r.After = after
	if before > 0 {
		r.To = cmp.Or(before-1, -1)
	}
	return r
}

// readBound reads the seq beyond which the wanted messages lie, 0 for none: one parameter names it, another the message
// that is a step away from it.
func readBound(q *request.Query, message string, step int64, bound string) int64 {
	if !q.Values.Has(message) {
		return q.Integer(bound, 0, session.MaxSessionMessages+1, 0)
	}
	if q.Values.Has(bound) {
		q.Wrong(bound, request.InvalidRequest, "%s is the same bound: leave one of the two out", message)
	}
	return q.Integer(message, 1, session.MaxSessionMessages+1, 0) + step
}

// pageOf returns the beginning of found that makes a page: at least one message, then as many as limit and bytes allow.
// A remainder shows that there are more.
func pageOf(found []session.Message, limit, bytes int) []session.Message {
	size := 0
	for i := range found {
		if size += len(found[i].Body); i == limit || i > 0 && size > bytes {
			return found[:i]
		}
	}
	return found
}

// maxMessagePageBytes ends a page of large messages before its limit.
const maxMessagePageBytes = 16 << 20

// messageMembers is about how many bytes a message of a page has beside its body.
const messageMembers = 160

// appendMessagePage writes messages as the parts of a protocol.MessagePage.
func appendMessagePage(dst []byte, found []session.Message, more, descending bool) ([]byte, error) {
	dst = slices.Grow(dst, int(request.Bytes(found))+len(found)*messageMembers)
	dst = append(dst, `{"data":[`...)
	var next *int64
	for i := range found {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendMessage(dst, &found[i]); err != nil {
			return nil, err
		}
	}
	switch {
	case more && descending:
		next = new(found[len(found)-1].Seq - 1)
	case more:
		next = new(found[len(found)-1].Seq + 1)
	}
	dst = view.AppendMember(append(dst, ']'), "has_more", more)
	return append(view.AppendMember(dst, "next_seq", next), '}'), nil
}

// appendMessage puts the message's bytes behind the other members by hand: encoding/json would rewrite them.
func appendMessage(dst []byte, m *session.Message) ([]byte, error) {
	a := protocol.Message{
		Seq: m.Seq, Role: m.Role, Format: m.Format, Tokens: m.Tokens, CreatedAt: m.CreatedAt, RemovedAt: m.RemovedAt,
	}
	if m.ClientID != "" {
		a.ClientID = &m.ClientID
	}
	if m.SupersededBy > 0 {
		a.SupersededBy = &m.SupersededBy
	}
	members, err := json.Marshal(a)
	dst = append(dst, bytes.TrimSuffix(members, []byte("null}"))...)
	return append(append(dst, m.Body...), '}'), err
}
