package console

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/compact/manifest"
	"github.com/varve-dev/varve/internal/protocol"
)

// previewPage shows what a compaction would do now, under the session's policy or a changed one.
type previewPage struct {
	sessionHead
	Policy  string // changes, as JSON; "" for none
	FromLog bool
	Wrong   string
	Preview *protocol.Preview // nil until it was asked for
	Legend  []legendEntry
	Map     []stretch
	Rows    []row
	Next    string
}

func showPreview(v *visit) error {
	h, err := v.head("preview")
	if err != nil {
		return err
	}
	q := v.r.URL.Query()
	page := previewPage{sessionHead: h, Policy: strings.TrimSpace(q.Get("policy")), FromLog: q.Has("log")}
	if !q.Has("plan") {
		return v.show("sessions", "Preview of "+h.Session.ID, "preview.html", &page)
	}
	wanted := protocol.PreviewRequest{}
	if page.Policy != "" {
		wanted.Policy = json.RawMessage(page.Policy)
	}
	if page.FromLog {
		wanted.From = "log"
	}
	if page.Policy != "" && !json.Valid(wanted.Policy) {
		page.Wrong = "The policy is not JSON."
		return v.show("sessions", "Preview of "+h.Session.ID, "preview.html", &page)
	}
	read, err := client.PreviewSession.With(v.ctx, v.api, client.Options{Body: wanted}, h.Session.ID)
	if err != nil {
		return err
	}
	page.Preview = &read.Value
	return v.showPreviewed(&page)
}

// showPreviewed shows a page of the log, what would be done to each of its messages, and what the view has of it now.
func (v *visit) showPreviewed(page *previewPage) error {
	id, q := page.Session.ID, v.r.URL.Query()
	lost := entriesOf(page.Preview.Actions)
	page.Legend, page.Map = legendOf(lost), mapOf(lost, page.Session.LastSeq)
	from := q.Get("from_seq")
	if from == "" && len(lost) > 0 {
		from = strconv.FormatInt(max(lost[0].Seq, 1), 10)
	}
	log, err := client.ListMessages.With(v.ctx, v.api, client.Options{Query: client.Query{
		"from_seq": from, "limit": contextMessages,
	}}, id)
	if err != nil {
		return err
	}
	units, err := v.units(client.Query{"from_seq": from})
	if err != nil {
		return err
	}
	a, now := newAligner(id, lost, nil, 0, listedPart), bySeq(units.Data)
	for i := range log.Value.Data {
		m := &log.Value.Data[i]
		r := a.logged(m)
		if shown := now[m.Seq]; shown != nil {
			r.View = sideOf(shown.Format, shown.Message, a.room)
			r.View.Same = bytes.Equal(shown.Message, m.Message)
		}
		page.Rows = append(page.Rows, r)
	}
	if next := log.Value.NextSeq; next != nil {
		q.Set("from_seq", strconv.FormatInt(*next, 10))
		page.Next = "?" + q.Encode()
	}
	return v.show("sessions", "Preview of "+id, "preview.html", page)
}

// entriesOf returns actions as a manifest would have them.
func entriesOf(actions []compact.Action) []protocol.ManifestEntry {
	list := make([]protocol.ManifestEntry, len(actions))
	for i := range actions {
		a := &actions[i]
		list[i].Entry = manifest.Entry{
			Seq: a.Seq, LastSeq: a.LastSeq, Part: a.Part, Do: a.Kind.String(), Stage: a.Stage, Rule: a.Rule,
			Reason: a.Reason, Tool: a.Tool, TokensBefore: int64(a.TokensBefore), TokensAfter: int64(a.TokensAfter),
		}
	}
	return list
}

// bySeq returns the messages of a view that stand for one of the log.
func bySeq(units []protocol.ViewUnit) map[int64]*protocol.ViewMessage {
	all := map[int64]*protocol.ViewMessage{}
	for i := range units {
		for k := range units[i].Messages {
			if m := &units[i].Messages[k]; m.Seq != nil {
				all[*m.Seq] = m
			}
		}
	}
	return all
}
