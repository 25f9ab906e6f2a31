package console

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// contextPage is a session's log and view side by side.
type contextPage struct {
	sessionHead
	AsOf       int64  // 0 for now
	Format     string // of the view's side, with a dialect behind a slash or none; "" for the session's own
	Units      protocol.ViewUnits
	Checkpoint *protocol.CheckpointDetail // nil for none
	Legend     []legendEntry
	Map        []stretch
	Rows       []row
	Repairs    []wire.Repair // of messages that are not on this page
	NotRead    bool          // the view is too large to be read for its repairs
	Earlier    string
	Later      string
}

const (
	contextMessages = 60      // of a page
	largestRepaired = 250_000 // tokens of a view that is read for its repairs, too
)

// listedPart is how much of a part the page of a session shows.
var listedPart = room{lines: 14, chars: 900}

// showContext shows a session, from a seq on and as of a seq.
func showContext(v *visit) error {
	h, err := v.head("context")
	if err != nil {
		return err
	}
	q := v.r.URL.Query()
	page := contextPage{sessionHead: h, Format: q.Get("format")}
	page.AsOf, _ = strconv.ParseInt(q.Get("as_of_seq"), 10, 64)
	largest := h.Session.ContextTokens
	if page.AsOf > 0 { // the view of then may be all of the log
		largest = h.Session.TotalTokens
	}
	page.NotRead = largest > largestRepaired
	format, dialect, _ := strings.Cut(page.Format, "/")
	page.Units, err = v.units(client.Query{
		"from_seq": q.Get("from_seq"), "as_of_seq": q.Get("as_of_seq"), "format": format, "dialect": dialect,
		"repairs": !page.NotRead, "limit": contextMessages,
	})
	if err != nil {
		return err
	}
	var lost []protocol.ManifestEntry
	if n := page.Units.Checkpoint; n > 0 {
		read, err := client.ReadCheckpoint.With(v.ctx, v.api, client.Options{Query: client.Query{"manifest": "all"}},
			h.Session.ID, n)
		if err != nil {
			return err
		}
		page.Checkpoint, lost = &read.Value, read.Value.Manifest.Entries
	}
	if err := v.fillRows(&page, lost); err != nil {
		return err
	}
	page.Legend, page.Map = legendOf(lost), mapOf(lost, page.Units.LastSeq)
	if err := page.addRepairs(); err != nil {
		return err
	}
	page.setLinks(q)
	return v.show("sessions", h.Session.ID, "context.html", &page)
}

// renditions returns what a view can be made for: each format, and each with one of its dialects.
func renditions() (list []string) {
	for _, format := range session.Formats() {
		list = append(list, string(format))
		for _, dialect := range provider.DialectsOf(format) {
			list = append(list, string(format)+"/"+string(dialect))
		}
	}
	return list
}

func (v *visit) units(of client.Query) (protocol.ViewUnits, error) {
	read, err := client.ReadUnits.With(v.ctx, v.api, client.Options{Query: of}, v.r.PathValue("id"))
	return read.Value, err
}

// fillRows reads what the log has beside the units of the page.
func (v *visit) fillRows(page *contextPage, lost []protocol.ManifestEntry) error {
	id := page.Session.ID
	pins, err := client.ListPins.Call(v.ctx, v.api, id)
	if err != nil {
		return err
	}
	a := newAligner(id, lost, pins.Value.Data, page.Units.Through, listedPart)
	var log []protocol.Message
	for _, r := range a.ranges(page.Units.Data) {
		more, err := v.messages(id, r)
		if err != nil {
			return err
		}
		log = append(log, more...)
	}
	page.Rows = a.align(page.Units.Data, log)
	isSummary := func(r row) bool { return r.Kind == "summarise" }
	if i := slices.IndexFunc(page.Rows, isSummary); i >= 0 {
		read, err := client.ListSummaries.With(v.ctx, v.api,
			client.Options{Query: client.Query{"checkpoint": page.Units.Checkpoint}}, id)
		if err != nil {
			return err
		}
		page.Rows[i].Segments = read.Value.Summaries
	}
	return nil
}

// messages reads a range of the log, at most as many as the API sends at once.
func (v *visit) messages(id string, r session.MessagesRef) ([]protocol.Message, error) {
	read, err := client.ListMessages.With(v.ctx, v.api, client.Options{Query: client.Query{
		"from_seq": max(r.First, 1), "to_seq": r.Last, "limit": session.MaxMessagePage,
	}}, id)
	return read.Value.Data, err
}

// addRepairs puts what a read repairs beside its messages.
func (page *contextPage) addRepairs() error {
	if len(page.Units.Repairs) == 0 {
		return nil
	}
	var repairs []wire.Repair
	if err := json.Unmarshal(page.Units.Repairs, &repairs); err != nil {
		return err
	}
	for _, r := range repairs {
		i := slices.IndexFunc(page.Rows, func(to row) bool { return r.Seq > 0 && to.First == r.Seq && to.Log != nil })
		if i < 0 {
			page.Repairs = append(page.Repairs, r)
			continue
		}
		to := &page.Rows[i]
		to.Why = append(to.Why, reason{Do: repaired, Rule: r.Rule, Stage: r.Kind, Reason: r.Detail, Part: -1})
		to.Kind = cmp.Or(map[string]string{kept: repaired}[to.Kind], to.Kind)
	}
	return nil
}

// setLinks sets where the page before this and the one after it are.
func (p *contextPage) setLinks(q url.Values) {
	link := func(seq int64) string {
		to := url.Values{"from_seq": {strconv.FormatInt(seq, 10)}}
		for _, name := range []string{"as_of_seq", "format"} {
			if value := q.Get(name); value != "" {
				to.Set(name, value)
			}
		}
		return "?" + to.Encode()
	}
	if next := p.Units.NextSeq; next != nil {
		p.Later = link(*next)
	}
	if data := p.Units.Data; len(data) > 0 && data[0].First > 1 {
		p.Earlier = link(max(data[0].First-contextMessages, 1))
	}
}
