package console

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/compact/manifest"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
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
	from, _ := strconv.ParseInt(q.Get("from_seq"), 10, 64)
	from = max(from, 1)
	o := client.Options{Body: wanted, Query: client.Query{"units": true, "from_seq": from, "limit": contextMessages}}
	read, err := client.PreviewSession.With(v.ctx, v.api, o, h.Session.ID)
	if err != nil {
		return err
	}
	page.Preview = &read.Value
	if !page.Preview.WouldChange {
		return v.show("sessions", "Preview of "+h.Session.ID, "preview.html", &page)
	}
	return v.showPreviewed(&page, from)
}

// showPreviewed shows a page of the view as it is now beside the view as it would be then, and what would be done.
func (v *visit) showPreviewed(page *previewPage, from int64) error {
	id := page.Session.ID
	would := entriesOf(page.Preview.Actions)
	page.Legend, page.Map = legendOf(would), mapOf(would, page.Session.LastSeq)
	lost := would
	if page.Preview.From == "checkpoint" { // what has left stays out
		earlier, err := v.lost(id, page.Session.Checkpoint)
		if err != nil {
			return err
		}
		lost = slices.Concat(would, earlier)
	}
	a := newAligner(id, lost, nil, page.Preview.Through, listedPart)
	a.now = map[int64]*protocol.ViewMessage{}
	then := page.Preview.Units
	var log []protocol.Message
	for _, r := range a.ranges(then) {
		more, err := v.beside(a, r)
		if err != nil {
			return err
		}
		log = append(log, more...)
	}
	next := from
	if n := len(then); n > 0 {
		next = then[n-1].Last + 1
	}
	if next > page.Preview.Through { // what is behind the view stays as it is
		rest, err := v.beside(a, session.MessagesRef{First: next, Last: next + contextMessages - 1})
		if err != nil {
			return err
		}
		for i := range rest {
			next = rest[i].Seq + 1
			if m := a.now[rest[i].Seq]; m != nil {
				u := protocol.ViewUnit{First: rest[i].Seq, Last: rest[i].Seq, Messages: []protocol.ViewMessage{*m}}
				then = append(then, u)
			}
		}
		log = append(log, rest...)
	}
	page.Rows = a.align(then, log)
	settle(page.Rows, would)
	if next <= page.Session.LastSeq && next > from {
		q := v.r.URL.Query()
		q.Set("from_seq", strconv.FormatInt(next, 10))
		page.Next = "?" + q.Encode()
	}
	return v.show("sessions", "Preview of "+id, "preview.html", page)
}

// beside reads a range of the log, and what the view has of it now, unless an answer for a range before it has that.
func (v *visit) beside(a *aligner, r session.MessagesRef) ([]protocol.Message, error) {
	log, err := v.messages(a.id, r)
	if err != nil || a.known.First <= r.First && r.Last <= a.known.Last {
		return log, err
	}
	a.known = session.MessagesRef{First: r.First, Last: math.MaxInt64}
	// Twice as many messages as a page has: those between its units, which the compaction would take, and those behind.
	units, err := v.units(client.Query{"from_seq": max(r.First, 1), "limit": 2 * contextMessages})
	if units.NextSeq != nil {
		a.known.Last = *units.NextSeq - 1
	}
	maps.Copy(a.now, bySeq(units.Data))
	return log, err
}

// settle says of messages that have left as a whole whether they would leave, or have left before.
func settle(rows []row, would []protocol.ManifestEntry) {
	for i := range rows {
		r := &rows[i]
		isNew := func(e protocol.ManifestEntry) bool {
			return e.Seq == r.First && e.LastSeq == r.Last && e.Do == r.Kind
		}
		if r.Log == nil && !slices.ContainsFunc(would, isNew) {
			r.Kind = kept
		}
	}
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
