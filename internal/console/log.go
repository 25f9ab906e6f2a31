package console

import (
	"net/url"
	"strconv"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/compact/manifest"
	"github.com/varve-dev/varve/internal/protocol"
)

// logPage is a piece of the log: messages that a summary or a notice stands for, in most cases.
type logPage struct {
	sessionHead
	Rows    []row
	Through int64 // where the piece that was asked for ends, 0 for the end of the log
	Next    string
}

// showLog shows the messages of the log from a seq to another.
func showLog(v *visit) error {
	h, err := v.head("context")
	if err != nil {
		return err
	}
	q := v.r.URL.Query()
	read, err := client.ListMessages.With(v.ctx, v.api, client.Options{Query: client.Query{
		"from_seq": q.Get("from_seq"), "to_seq": q.Get("to_seq"), "limit": contextMessages,
	}}, h.Session.ID)
	if err != nil {
		return err
	}
	lost, err := v.lost(h.Session.ID, h.Session.Checkpoint)
	if err != nil {
		return err
	}
	page := logPage{sessionHead: h}
	page.Through, _ = strconv.ParseInt(q.Get("to_seq"), 10, 64)
	a := newAligner(h.Session.ID, lost, nil, 0, listedPart)
	for i := range read.Value.Data {
		page.Rows = append(page.Rows, a.logged(&read.Value.Data[i]))
	}
	if next := read.Value.NextSeq; next != nil {
		to := url.Values{"from_seq": {strconv.FormatInt(*next, 10)}}
		if page.Through > 0 {
			to.Set("to_seq", q.Get("to_seq"))
		}
		page.Next = "?" + to.Encode()
	}
	return v.show("sessions", h.Session.ID, "log.html", &page)
}

// logged returns the row of a message without the view, with what became of it.
func (a *aligner) logged(m *protocol.Message) row {
	r := row{
		First: m.Seq, Last: m.Seq, Kind: kept, Message: m, Log: sideOf(m.Format, m.Message, a.room),
		Before: int64(m.Tokens), After: int64(m.Tokens),
	}
	holds := func(e manifest.Entry) bool { return e.Seq <= m.Seq && m.Seq <= e.LastSeq }
	for i := range a.wholes {
		if e := &a.wholes[i]; holds(*e) {
			r.Kind, r.After = e.Do, 0
			r.Why = []reason{{Do: e.Do, Stage: e.Stage, Rule: e.Rule, Reason: e.Reason, Part: -1}}
			return r
		}
	}
	for _, e := range a.parts[m.Seq] {
		r.take(&e, a.reasonOf(&e))
	}
	return r
}
