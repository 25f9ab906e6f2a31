package openai

import (
	"bytes"
	"slices"
	"time"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/readback"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/view"
	"github.com/varve-dev/varve/internal/wire"
)

// roomWait is how long a list waits for a compaction that is to start, if its view does not fit the window.
const roomWait = 5 * time.Second

// listFitted answers with a page of the view as GET /v1/sessions/{id}/context?fit=window has it.
func (s *Server) listFitted(req *request.Request, r itemsRequest) error {
	found, err := req.Store.Session(req.Ctx, r.at)
	if err != nil {
		return err
	}
	if r.after == "" && found.CalibratedTokens() > found.Room() {
		return s.Waiter.WithRoom(req, r.at, roomWait, func() error { return s.answerFitted(req, r) })
	}
	return s.answerFitted(req, r)
}

func (s *Server) answerFitted(req *request.Request, r itemsRequest) error {
	made, err := s.fitted(req, r.at, 1)
	if err != nil {
		return err
	}
	whole, _, err := s.viewItems(req, r.at)
	if err != nil {
		return err
	}
	items := named(r.at, made.Bodies, whole)
	if r.descending {
		slices.Reverse(items)
	}
	if items, err = r.behind(items); err != nil {
		return err
	}
	more := len(items) > r.limit
	err = answerItems(req, items[:min(len(items), r.limit)], more)
	if err == nil && r.after == "" { // the other pages are of the same view
		s.Served(r.at, made.Tokens)
	}
	return err
}

// fitted returns a conversation's view, cut to a share of its window: Bodies has its items.
func (s *Server) fitted(req *request.Request, at session.Address, share float64) (*postgres.View, error) {
	want := view.Request{Format: session.OpenAIResponses, Pending: wire.KeepPending}
	want.Largest = largeView
	want.Admit, want.Heavy = req.Admit, req.Heavy
	var stored postgres.View
	if err := req.Store.ViewInto(req.Ctx, at, postgres.ViewRead{Largest: want.Largest}, &stored); err != nil {
		return nil, err
	}
	if err := want.Fill(req.Ctx, req.Store, at, &stored); err != nil {
		return nil, err
	}
	want.Fit = &view.Fit{Parts: func(seq int64) ([]readback.Part, error) {
		return readback.Parts(req.Ctx, req.Store, at, seq)
	}}
	want.MaxTokens = max(int64(share*float64(stored.Room)), 1)
	var made *postgres.View
	err := req.Heavy(int64(stored.Size)+stored.TailBytes, func() (err error) {
		made, _, err = want.Make(req.Ctx, &stored)
		return err
	})
	if err == nil && made.Bodies == nil {
		made.Bodies, err = view.Split(made.Tail)
	}
	return made, err
}

// named gives the items of a fitted view the ids that they have in the whole one. An item that was cut keeps its id if
// it is a call or an output; one that only the fitted view has, such as a cut message, cannot be read alone or removed.
func named(at session.Address, bodies [][]byte, whole []item) []item {
	items := make([]item, len(bodies))
	next, added := 0, 0
	lastSeq := int64(1)
	for i, body := range bodies {
		same := slices.IndexFunc(whole[next:], func(it item) bool { return isSame(it.body, body) })
		if same < 0 {
			id := itemID(at, lastSeq, firstAdded-added, readFields(body).kind)
			items[i] = item{seq: lastSeq, id: id, body: body}
			added++
			continue
		}
		items[i] = whole[next+same]
		items[i].body = body
		next, lastSeq = next+same+1, items[i].seq
	}
	return items
}

// firstAdded is the part in the id of an item that only a fitted view has, from which such parts count down.
const firstAdded = firstReplacement / 2

// isSame reports whether two items are one item, which may have been cut.
func isSame(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	kind, call := callOf(a)
	otherKind, otherCall := callOf(b)
	return call != "" && kind == otherKind && call == otherCall
}

// callOf returns the type of an item, and the id of the call that it is or answers.
func callOf(body []byte) (kind, call string) {
	for key, value := range rawjson.Members(body, rawjson.Start(body)) {
		switch {
		case rawjson.KeyIs(body, key, "type"):
			kind = textOf(body, value)
		case rawjson.KeyIs(body, key, "call_id"):
			call = textOf(body, value)
		}
	}
	return kind, call
}
