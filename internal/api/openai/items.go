package openai

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/spelling"
	"github.com/varve-dev/varve/internal/view"
)

// createItems handles POST /v1/conversations/{id}/items.
func (s *Server) createItems(req *request.Request) error {
	b := conversationBody{limit: session.MaxBatchMessages}
	if err := b.read(req, "items"); err != nil {
		return err
	}
	at := req.Address()
	a := session.Append{Session: at, Format: session.OpenAIResponses, Messages: b.items, Idempotency: req.Idempotency()}
	if err := s.Counter.Count(req.Ctx, &a); err != nil {
		return err
	}
	done, replayed, err := req.Store.Append(req.Ctx, a)
	if err != nil {
		return err
	}
	req.Replayed(replayed)
	var items []item
	for i := range a.Messages {
		m := session.Message{Seq: done.FirstSeq + int64(i), Format: a.Format, Body: a.Messages[i].Body}
		items = append(items, itemsOf(at, &m)...)
	}
	return answerItems(req, items, false)
}

// itemsRequest is a request for a list of items.
type itemsRequest struct {
	at         session.Address
	after      string
	limit      int
	descending bool
	view       string // compacted, full, or "" for the view that the conversation's metadata requests
	fit        bool   // the compacted view must fit the session's window
}

// listItems handles GET /v1/conversations/{id}/items.
func (s *Server) listItems(req *request.Request) error {
	r, err := itemsRequestOf(req)
	if err != nil {
		return err
	}
	switch {
	case r.fit:
		return s.listFitted(req, r)
	case r.view == compactedView:
		return s.listCompacted(req, r)
	}
	found, items, more, err := s.readItems(req, r)
	switch {
	case err != nil:
		return err
	case r.view == "" && viewOf(found) == compactedView:
		return s.listCompacted(req, r)
	}
	return answerItems(req, items, more)
}

// readItems reads a page of the log. A message of another format may contain no item, so it continues until it has one.
func (s *Server) readItems(req *request.Request, r itemsRequest) (found session.Session, items []item, more bool,
	err error) {
	slice, err := r.slice()
	for more = err == nil; more && len(items) == 0; {
		messages, err := req.Page(slice, func(slice postgres.Range) (messages []session.Message, err error) {
			found, messages, err = req.Store.Messages(req.Ctx, r.at, slice)
			return messages, err
		})
		if err != nil {
			return found, nil, false, err
		}
		more = mayContinue(slice, messages)
		if items, err = r.add(req, items, messages); err != nil {
			return found, nil, false, err
		}
		if len(messages) > 0 {
			slice.After = messages[len(messages)-1].Seq
		}
		if items, err = r.behind(items); err != nil {
			return found, nil, false, err
		}
	}
	if len(items) > r.limit {
		items, more = items[:r.limit], true
	}
	return found, items, more, err
}

// add appends the items of messages, with a share of the processors.
func (r *itemsRequest) add(req *request.Request, items []item, messages []session.Message) ([]item, error) {
	err := req.Heavy(request.Bytes(messages), func() error {
		for i := range messages {
			of := itemsOf(r.at, &messages[i])
			if r.descending {
				slices.Reverse(of)
			}
			items = append(items, of...)
		}
		return nil
	})
	return items, err
}

// slice returns the range of the log that a page is read from: one message more than the page has, which shows whether
// there are more, and before it the message that after names, which may have more items.
func (r *itemsRequest) slice() (postgres.Range, error) {
	slice := postgres.Range{Descending: r.descending, Limit: r.limit + 1, Bytes: maxPageBytes}
	if r.after == "" {
		return slice, nil
	}
	seq, _, ok := itemPlace(r.at, r.after)
	if !ok {
		return slice, r.noAfter()
	}
	slice.Limit++
	if slice.After = seq - 1; r.descending {
		slice.After = seq + 1
	}
	return slice, nil
}

// mayContinue reports whether the log may continue after a slice: it is full, or ended early by large messages.
func mayContinue(slice postgres.Range, messages []session.Message) bool {
	return len(messages) == slice.Limit || request.Bytes(messages) > slice.Bytes
}

func (r *itemsRequest) noAfter() error {
	return session.Invalid("/after", request.InvalidRequest, "%q is not an item of this conversation: begin without "+
		"after, and follow last_id", spelling.Shorten(r.after))
}

// The views of a conversation, in the query and in its metadata.
const (
	compactedView = "compacted"
	fullView      = "full"
)

// viewOf returns the view that a conversation's metadata requests.
func viewOf(s session.Session) string {
	var metadata struct{ View string }
	if json.Unmarshal(s.Metadata, &metadata) == nil && metadata.View == compactedView {
		return compactedView
	}
	return fullView
}

func itemsRequestOf(req *request.Request) (r itemsRequest, err error) {
	q := req.Query()
	r.after = q.Text("after", "")
	r.limit = int(q.Integer("limit", 1, 1<<31, request.DefaultPage))
	r.limit = min(r.limit, session.MaxPage)
	r.descending = q.Choice("order", "desc", "asc") == "desc"
	if q.Values.Has("view") {
		r.view = q.Choice("view", compactedView, fullView)
	}
	r.fit = q.Values.Has("fit") && q.Choice("fit", "window") == "window"
	if r.fit && r.view == fullView {
		q.Wrong("fit", request.InvalidRequest, "view=full is the whole log: leave fit or view=full out")
	}
	r.at = req.Address()
	return r, req.Err()
}

// readItem handles GET /v1/conversations/{id}/items/{item}.
func (s *Server) readItem(req *request.Request) error {
	_, found, err := s.findItem(req)
	if err != nil {
		return err
	}
	out := req.Buffer()
	out.B = appendItem(out.B, &found)
	return req.Bytes(http.StatusOK, request.JSONType, out.B)
}

// deleteItem handles DELETE /v1/conversations/{id}/items/{item}.
func (s *Server) deleteItem(req *request.Request) error {
	seq, err := s.seqOfItem(req)
	if err != nil {
		return err
	}
	left, replayed, err := req.Store.Remove(req.Ctx, req.Address(), seq, req.Idempotency())
	if errors.Is(err, session.ErrNotFound) {
		err = errNoItem
	}
	return request.AnswerChanged(req, left, replayed, err, conversationOf)
}

// seqOfItem returns the seq of the item's message. One of our ids contains it: a repeated request names an item that
// does not exist any more.
func (s *Server) seqOfItem(req *request.Request) (int64, error) {
	at := req.Address()
	if seq, part, ok := itemPlace(at, itemName(req)); ok && part == 0 {
		return seq, nil
	}
	m, found, err := s.findItem(req)
	switch {
	case errors.Is(err, errNoItem) && req.Idempotency() != nil:
		return session.MaxSessionMessages, nil // no such message, but the key may have the answer
	case err != nil:
		return 0, err
	}
	if of := itemsOf(at, &m); len(of) > 1 {
		return 0, session.Invalid("/item_id", request.InvalidRequest,
			"%q is one of %d items of one message, whose format is %s: they are removed together, delete %q",
			found.id, len(of), m.Format, of[0].id)
	}
	return m.Seq, nil
}

// itemName returns the id of an item in a path, "" if it is damaged.
func itemName(req *request.Request) string {
	name, _ := url.PathUnescape(req.Param("item"))
	return name
}

// findItem finds the item that the path names, by our id or by the provider's id that an answer kept.
func (s *Server) findItem(req *request.Request) (m session.Message, found item, err error) {
	at, name := req.Address(), itemName(req)
	var candidates []session.Message
	seq, _, ours := itemPlace(at, name)
	if ours {
		_, candidates, err = req.Store.Messages(req.Ctx, at, postgres.Range{After: seq - 1, Limit: 1})
	} else {
		candidates, err = req.Store.WithItemID(req.Ctx, at, name)
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

// listCompacted answers with a page of the compacted view. It reads the checkpoint whole, because that is no larger
// than a context, and a page of the log after it.
func (s *Server) listCompacted(req *request.Request, r itemsRequest) error {
	stored, err := s.sources(req, r.at)
	if err != nil {
		return err
	}
	seq, _, ok := itemPlace(r.at, r.after)
	if r.after != "" && !ok {
		return r.noAfter()
	}
	inLog := ok && seq >= stored.From()
	var items []item
	if !r.descending && !inLog {
		if items, err = r.checkpointItems(req, &stored); err != nil {
			return err
		}
	}
	if beginsInLog := !r.descending || inLog || r.after == ""; beginsInLog && len(items) <= r.limit {
		behind, err := s.sourceItems(req, r, &stored, r.limit+1-len(items))
		if err != nil {
			return err
		}
		items = append(items, behind...)
	}
	if r.descending && len(items) <= r.limit {
		before, err := r.checkpointItems(req, &stored)
		if err != nil {
			return err
		}
		items = append(items, before...)
	}
	more := len(items) > r.limit
	return answerItems(req, items[:min(len(items), r.limit)], more)
}

// sources reads a view after the memory for its checkpoint was admitted.
func (s *Server) sources(req *request.Request, at session.Address) (v postgres.ViewWithSources, err error) {
	v, err = req.Store.ViewWithSources(req.Ctx, at)
	if err == nil && v.Size > largeView {
		err = req.Admit(min(itemCopies*(int64(v.Size)+maxPageBytes), req.Memory.Size()))
	}
	return v, err
}

// itemCopies is how much memory messages take that are listed as items, by their bytes.
const itemCopies = 4

// checkpointItems returns the items of the checkpoint behind the one that after names, in the list's order.
func (r *itemsRequest) checkpointItems(req *request.Request, v *postgres.ViewWithSources) (items []item, err error) {
	err = req.Heavy(int64(v.Size), func() (err error) {
		items, err = coveredItems(r.at, v)
		return err
	})
	if err != nil {
		return nil, err
	}
	if r.descending {
		slices.Reverse(items)
	}
	if seq, _, ok := itemPlace(r.at, r.after); ok && seq >= v.From() {
		return items, nil // after is in the log
	}
	return r.behind(items)
}

// sourceItems returns items of the log behind a view's checkpoint, in the list's order: those behind the one that after
// names, if it is there. It returns at least the number wanted, unless the log ends.
func (s *Server) sourceItems(
	req *request.Request, r itemsRequest, v *postgres.ViewWithSources, wanted int,
) (items []item, err error) {
	slice := postgres.Range{Descending: r.descending, Limit: wanted + 1, Bytes: maxPageBytes}
	seq, _, ok := itemPlace(r.at, r.after)
	isBehind := ok && seq >= v.From()
	if isBehind {
		if slice.After = seq - 1; r.descending {
			slice.After = seq + 1
		}
	}
	for more := true; more && len(items) < wanted; {
		messages, err := req.Page(slice, func(slice postgres.Range) ([]session.Message, error) {
			return req.Store.SourcePage(req.Ctx, r.at.Tenant, v, slice)
		})
		if err != nil {
			return nil, err
		}
		more = mayContinue(slice, messages)
		if items, err = r.add(req, items, messages); err != nil {
			return nil, err
		}
		if len(messages) > 0 {
			slice.After = messages[len(messages)-1].Seq
		}
		if isBehind {
			if items, err = r.behind(items); err != nil {
				return nil, err
			}
			isBehind = false
		}
	}
	return items, nil
}

// behind returns the items behind the one that after names. That item may have left the view since the last page: then
// the list continues with what stood behind it.
func (r *itemsRequest) behind(items []item) ([]item, error) {
	if r.after == "" {
		return items, nil
	}
	if i := slices.IndexFunc(items, func(it item) bool { return it.id == r.after }); i >= 0 {
		return items[i+1:], nil
	}
	seq, _, ok := itemPlace(r.at, r.after)
	if !ok {
		return nil, r.noAfter()
	}
	i := slices.IndexFunc(items, func(it item) bool { return r.descending == (it.seq < seq) && it.seq != seq })
	if i < 0 {
		return nil, nil
	}
	return items[i:], nil
}

// coveredItems returns the items of a view's checkpoint, as far as the log does not have them as they were appended. A
// caller that takes the newest items back finds them as it sent them.
func coveredItems(at session.Address, v *postgres.ViewWithSources) (items []item, err error) {
	covered, err := view.CheckpointMessages(v)
	if err != nil {
		return nil, err
	}
	replacements := map[int64]int{} // by seq
	for i := range covered {
		m := &covered[i]
		if m.Seq >= v.RawFrom {
			continue
		}
		of := itemsOf(at, &m.Message)
		if m.Replaces {
			renumber(at, of, replacements[m.Seq])
			replacements[m.Seq] += len(of)
		}
		items = append(items, of...)
	}
	return items, nil
}

// viewItems returns all items of a view, first those of the checkpoint and then those of the log. It waits until the
// process has the memory for them.
func (s *Server) viewItems(req *request.Request, at session.Address) (items []item, room int64, err error) {
	stored, err := s.sources(req, at)
	if err != nil {
		return nil, 0, err
	}
	weight, err := req.Store.Weight(req.Ctx, session.Key{Tenant: at.Tenant, Key: stored.Key})
	if err == nil && weight.Tail > largeView {
		err = req.Admit(itemCopies * weight.Tail)
	}
	if err != nil {
		return nil, 0, err
	}
	if items, err = coveredItems(at, &stored); err != nil {
		return nil, 0, err
	}
	behind, err := s.sourceItems(req, itemsRequest{at: at}, &stored, int(stored.LastSeq)+1)
	return append(items, behind...), stored.Room(), err
}

// firstReplacement is the part in the id of an item that replaces messages, from which such parts count down: no
// message has as many items.
const firstReplacement = 1<<16 - 1

// renumber gives the items ids that no message has, and no item of those before that replace messages of their seq.
func renumber(at session.Address, of []item, before int) {
	for i := range of {
		of[i].id = itemID(at, of[i].seq, firstReplacement-before-i, readFields(of[i].body).kind)
	}
}
