package openai

import (
	"slices"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/view"
)

// listCompacted answers with a page of the compacted view. A view is as large as a context, so it is read whole.
func (s *Server) listCompacted(req *request.Request, r itemsRequest) error {
	stored, err := s.Store.ViewWithSources(req.Ctx, r.at)
	if err != nil {
		return err
	}
	items, err := viewItems(r.at, &stored)
	if err != nil {
		return err
	}
	if r.descending {
		slices.Reverse(items)
	}
	if r.after != "" {
		begin, err := r.behind(items)
		if err != nil {
			return err
		}
		items = items[begin:]
	}
	more := len(items) > r.limit
	return answerItems(req, items[:min(len(items), r.limit)], more)
}

// behind returns where a list continues behind the item that after names. That item may have left the view since the
// last page: then the list continues with what stood behind it.
func (r *itemsRequest) behind(items []item) (int, error) {
	if i := slices.IndexFunc(items, func(it item) bool { return it.id == r.after }); i >= 0 {
		return i + 1, nil
	}
	seq, _, ok := itemPlace(r.at, r.after)
	if !ok {
		return 0, noAfter(r.after)
	}
	i := slices.IndexFunc(items, func(it item) bool { return r.descending == (it.seq < seq) && it.seq != seq })
	if i < 0 {
		i = len(items)
	}
	return i, nil
}

// viewItems returns the items of a view: those of the checkpoint, and then the log from RawFrom on as it was appended,
// whether or not the checkpoint covers it. A caller that takes the newest items back finds them as it sent them.
func viewItems(at session.Address, v *postgres.ViewWithSources) (items []item, err error) {
	covered, err := view.CheckpointMessages(v)
	if err != nil {
		return nil, err
	}
	for i := range covered {
		m := &covered[i]
		if m.Seq >= v.RawFrom {
			continue
		}
		of := itemsOf(at, &m.Message)
		if m.Replaces {
			renumber(at, of)
		}
		items = append(items, of...)
	}
	for i := range v.Messages {
		if m := &v.Messages[i]; m.Body != nil {
			items = append(items, itemsOf(at, m)...)
		}
	}
	return items, nil
}

// firstReplacement is the part in the id of an item that replaces messages, from which such parts count down: no
// message has as many items.
const firstReplacement = 1<<16 - 1

// renumber gives the items ids that no message has.
func renumber(at session.Address, of []item) {
	for i := range of {
		of[i].id = itemID(at, of[i].seq, firstReplacement-i, readFields(of[i].body).kind)
	}
}
