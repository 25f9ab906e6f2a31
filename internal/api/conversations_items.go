package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// createItems is POST /v1/conversations/{id}/items.
func (s *Server) createItems(x *exchange) error {
	at, err := x.conversation()
	if err != nil {
		return err
	}
	body, err := readBody(x)
	if err != nil {
		return err
	}
	defer body.free()
	a := session.Append{Session: at, Format: session.OpenAIResponses}
	if a.Idempotency, err = x.idempotency(body.b); err != nil {
		return err
	}
	d := conversationBody{most: session.MaxBatchMessages}
	d.data = body.b
	if err := d.read("items"); err != nil {
		return err
	}
	a.Messages = d.items
	if err := s.countExactly(x, &a); err != nil {
		return err
	}
	done, replayed, err := s.Store.Append(x.ctx, a)
	if err != nil {
		return err
	}
	x.replayed(a.Idempotency, replayed)
	var items []item
	for i := range a.Messages {
		m := session.Message{Seq: done.FirstSeq + int64(i), Format: a.Format, Body: a.Messages[i].Body}
		items = append(items, itemsOf(at, &m)...)
	}
	return x.items(items, false)
}

// items answers with a page of items.
func (x *exchange) items(items []item, more bool) error {
	out := newBuffer()
	defer out.free()
	out.b = appendItemList(out.b, items, more)
	return x.bytes(http.StatusOK, jsonType, out.b)
}

// itemsRequest is what a reader of a list of items asks for.
type itemsRequest struct {
	at         session.Address
	after      string
	limit      int
	descending bool
	view       string // compacted, full, or "" for what the conversation's metadata says
}

// listItems is GET /v1/conversations/{id}/items.
func (s *Server) listItems(x *exchange) error {
	r, err := itemsRequestOf(x)
	if err != nil {
		return err
	}
	if r.view == compactedView {
		return s.listCompacted(x, r)
	}
	found, items, more, err := s.readItems(x, r)
	switch {
	case err != nil:
		return err
	case r.view == "" && viewOf(found) == compactedView:
		return s.listCompacted(x, r)
	}
	return x.items(items, more)
}

// readItems reads a page of the log. A message of another format may be no item at all, so it reads on until it has one.
func (s *Server) readItems(x *exchange, r itemsRequest) (found session.Session, items []item, more bool, err error) {
	slice, err := r.slice()
	for more = err == nil; more && len(items) == 0; {
		var messages []session.Message
		if found, messages, err = s.Store.Slice(x.ctx, r.at, slice); err != nil {
			return found, nil, false, err
		}
		more = mayGoOn(slice, messages)
		for i := range messages {
			items = append(items, r.left(&messages[i])...)
			slice.After = messages[i].Seq
		}
	}
	if len(items) > r.limit {
		items, more = items[:r.limit], true
	}
	return found, items, more, err
}

// slice is the piece of the log that a page is read from: one message more than the page has, which tells whether there
// are more, and in front of it the message that after names, of which more items may follow.
func (r *itemsRequest) slice() (postgres.Slice, error) {
	slice := postgres.Slice{Descending: r.descending, Limit: r.limit + 1, Bytes: maxMessagePageBytes}
	if r.after == "" {
		return slice, nil
	}
	seq, _, ok := itemPlace(r.at, r.after)
	if !ok {
		return slice, noAfter(r.after)
	}
	slice.Limit++
	if slice.After = seq - 1; r.descending {
		slice.After = seq + 1
	}
	return slice, nil
}

// mayGoOn reports whether the log may go on behind a slice: it is full, or ends early because its messages are large.
func mayGoOn(slice postgres.Slice, messages []session.Message) bool {
	size := int64(0)
	for i := range messages {
		size += int64(len(messages[i].Body))
	}
	return len(messages) == slice.Limit || size > slice.Bytes
}

// left are the items of a message that stand behind the one that after names, in the order of the list.
func (r *itemsRequest) left(m *session.Message) []item {
	items := itemsOf(r.at, m)
	seq, part, ok := itemPlace(r.at, r.after)
	switch of := ok && seq == m.Seq; {
	case of && r.descending:
		items = items[:min(part, len(items))]
	case of:
		items = items[min(part+1, len(items)):]
	}
	if r.descending {
		slices.Reverse(items)
	}
	return items
}

func noAfter(id string) error {
	return session.Invalid("/after", invalidRequest, "%q is no item of this conversation: begin without after, and follow last_id", shorten(id))
}

// The views of a conversation, in the query and in its metadata.
const (
	compactedView = "compacted"
	fullView      = "full"
)

// viewOf is the view that a conversation's metadata asks for.
func viewOf(s session.Session) string {
	var metadata struct{ View string }
	if json.Unmarshal(s.Metadata, &metadata) == nil && metadata.View == compactedView {
		return compactedView
	}
	return fullView
}

func itemsRequestOf(x *exchange) (r itemsRequest, err error) {
	q := x.openAIQuery("after", "limit", "order")
	r.after = q.text("after", "")
	r.limit = int(q.integer("limit", 1, 1<<31, defaultPage))
	r.limit = min(r.limit, session.MaxPage)
	r.descending = q.choice("order", "desc", "asc") == "desc"
	if q.values.Has("view") {
		r.view = q.choice("view", compactedView, fullView)
	}
	if err := q.err(); err != nil {
		return r, err
	}
	r.at, err = x.address()
	return r, err
}

// readItem is GET /v1/conversations/{id}/items/{item}.
func (s *Server) readItem(x *exchange) error {
	at, err := x.conversation()
	if err != nil {
		return err
	}
	_, found, err := s.findItem(x, at)
	if err != nil {
		return err
	}
	out := newBuffer()
	defer out.free()
	out.b = appendItem(out.b, &found)
	return x.bytes(http.StatusOK, jsonType, out.b)
}

// deleteItem is DELETE /v1/conversations/{id}/items/{item}.
func (s *Server) deleteItem(x *exchange) error {
	at, err := x.conversation()
	if err != nil {
		return err
	}
	id, err := x.emptyBody()
	if err != nil {
		return err
	}
	seq, err := s.seqOfItem(x, at, id)
	if err != nil {
		return err
	}
	left, replayed, err := s.Store.Remove(x.ctx, at, seq, id)
	if errors.Is(err, session.ErrNotFound) {
		err = errNoItem
	}
	if err != nil {
		return err
	}
	x.replayed(id, replayed)
	return x.json(http.StatusOK, conversationOf(left))
}

// seqOfItem is the message that the item is of. One of our ids says it; a request that is repeated names an item that is
// not there any more.
func (s *Server) seqOfItem(x *exchange, at session.Address, id *session.Idempotency) (int64, error) {
	name, err := url.PathUnescape(x.param("item"))
	if err != nil {
		return 0, errNoItem
	}
	if seq, part, ok := itemPlace(at, name); ok && part == 0 {
		return seq, nil
	}
	m, found, err := s.findItem(x, at)
	switch {
	case errors.Is(err, errNoItem) && id != nil:
		return session.MaxSessionMessages, nil // there is no such message, but the key may know the answer
	case err != nil:
		return 0, err
	}
	if of := itemsOf(at, &m); len(of) > 1 {
		return 0, session.Invalid("/item_id", invalidRequest, "%q is one of %d items of one message, whose format is %s: they go together, delete %q",
			found.id, len(of), m.Format, of[0].id)
	}
	return m.Seq, nil
}

// findItem finds the item that the path names, by our id or by the provider's id that an answer kept.
func (s *Server) findItem(x *exchange, at session.Address) (m session.Message, found item, err error) {
	name, err := url.PathUnescape(x.param("item"))
	if err != nil {
		return m, found, errNoItem
	}
	var candidates []session.Message
	seq, _, ours := itemPlace(at, name)
	if ours {
		_, candidates, err = s.Store.Slice(x.ctx, at, postgres.Slice{After: seq - 1, Limit: 1})
	} else {
		candidates, err = s.Store.Containing(x.ctx, at, rawjson.Quote(nil, []byte(name)))
	}
	if err != nil {
		return m, found, err
	}
	for i := range candidates {
		for _, it := range itemsOf(at, &candidates[i]) {
			if ours && it.id == name || !ours && it.shownID() == name {
				return candidates[i], it, nil
			}
		}
	}
	return m, found, errNoItem
}
