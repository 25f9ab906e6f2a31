package api

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/zframe"
)

// listCompacted answers with a page of the compacted view. A view is as large as a context, so it is read whole.
func (s *Server) listCompacted(req *request.Request, r itemsRequest) error {
	traced, err := s.Store.Traced(req.Ctx, r.at)
	if err != nil {
		return err
	}
	items, err := viewItems(r.at, &traced)
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

// behind finds where a list goes on behind the item that after names. That one may have left the view since the page
// before: then it goes on with what stood behind it.
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

// viewItems are the items of a view: those of the checkpoint, and then the log from RawFrom on as it was appended,
// whether or not the checkpoint covers it. Who takes the newest items back finds them as he sent them.
func viewItems(at session.Address, t *postgres.Traced) (items []item, err error) {
	covered, err := checkpointItems(at, t)
	if err != nil {
		return nil, fmt.Errorf("checkpoint %d: %w", t.Checkpoint, err)
	}
	for _, it := range covered {
		if it.seq < t.RawFrom {
			items = append(items, it)
		}
	}
	for i := range t.Messages {
		if m := &t.Messages[i]; m.Body != nil {
			items = append(items, itemsOf(at, m)...)
		}
	}
	return items, nil
}

// standInPart numbers an item that stands for messages that have left the view: no message has as many items.
const standInPart = 1<<16 - 1

// checkpointItems are the items of a checkpoint, each with the message that it renders. A unit that has as many messages
// as the log has there renders them one by one; any other stands for them.
func checkpointItems(at session.Address, t *postgres.Traced) (items []item, err error) {
	if t.Size == 0 {
		return nil, nil
	}
	var units []compact.Unit
	if err := json.Unmarshal(t.Units, &units); err != nil {
		return nil, err
	}
	body, err := zframe.Decompress(nil, t.Body, t.Size)
	if err != nil {
		return nil, err
	}
	for i, u := range units {
		end, last := len(body), t.Through
		if i+1 < len(units) {
			end, last = units[i+1].Offset-1, units[i+1].FirstSeq-1 // without the comma
		}
		if u.Offset > end {
			return nil, fmt.Errorf("its unit %d lies outside of its body", i)
		}
		bodies, seqs := split(body[u.Offset:end]), seqsOf(t.Messages, u.FirstSeq, last)
		for b, body := range bodies {
			m := session.Message{Seq: u.FirstSeq, Format: t.Format, Body: body}
			if len(seqs) == len(bodies) {
				m.Seq = seqs[b]
			}
			of := itemsOf(at, &m)
			if len(seqs) != len(bodies) {
				standIn(at, of)
			}
			items = append(items, of...)
		}
	}
	return items, nil
}

// standIn gives items ids that no message has.
func standIn(at session.Address, of []item) {
	for i := range of {
		of[i].id = itemID(at, of[i].seq, standInPart-i, readFields(of[i].body).kind)
	}
}

// seqsOf are the seqs of the messages from first to last.
func seqsOf(messages []session.Message, first, last int64) (seqs []int64) {
	for i := range messages {
		if seq := messages[i].Seq; first <= seq && seq <= last {
			seqs = append(seqs, seq)
		}
	}
	return seqs
}
