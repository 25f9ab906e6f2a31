package console

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// messagePage is one message, whole, beside what the view has of it.
type messagePage struct {
	sessionHead
	Row    row
	Raw    clipped // the message as JSON
	Pinned bool    // as a whole
	PinRef string
	Pins   []session.Pin
	Before int64 // the seqs beside it, 0 for none
	After  int64
}

// wholePart is how much of a part the page of a message shows; the rest is read back by its ref.
var wholePart = room{lines: 4000, chars: 200_000}

// showMessage shows one message.
func showMessage(v *visit) error {
	seq, err := strconv.ParseInt(v.r.PathValue("seq"), 10, 64)
	if err != nil || seq < 1 {
		return showNothing(v)
	}
	h, err := v.head("context")
	if err != nil {
		return err
	}
	id := h.Session.ID
	log, err := v.messages(id, session.MessagesRef{First: seq, Last: seq})
	if err != nil {
		return err
	}
	if len(log) == 0 {
		v.showError(http.StatusNotFound, protocol.Problem{Detail: "The log has no message with this seq."})
		return nil
	}
	units, err := v.units(client.Query{"from_seq": seq, "limit": 1})
	if err != nil {
		return err
	}
	pins, err := client.ListPins.Call(v.ctx, v.api, id)
	if err != nil {
		return err
	}
	lost, err := v.lost(id, units.Checkpoint)
	if err != nil {
		return err
	}
	a := newAligner(id, lost, pins.Value.Data, units.Through, wholePart)
	page := messagePage{sessionHead: h, Row: rowOf(a, units.Data, log), PinRef: "m" + strconv.FormatInt(seq, 10)}
	page.Raw = clip(indented(log[0].Message), 2000, 100_000)
	for _, p := range a.pins[seq] {
		page.Pins = append(page.Pins, p)
		page.Pinned = page.Pinned || p.Part == nil
	}
	page.Before = seq - 1
	if seq < h.Session.LastSeq {
		page.After = seq + 1
	}
	return v.show("sessions", "Message "+strconv.FormatInt(seq, 10), "message.html", &page)
}

// lost returns what left the view of a checkpoint; nothing for checkpoint 0.
func (v *visit) lost(id string, checkpoint int) ([]protocol.ManifestEntry, error) {
	if checkpoint == 0 {
		return nil, nil
	}
	read, err := client.ReadCheckpoint.With(v.ctx, v.api, client.Options{Query: client.Query{"manifest": "all"}}, id,
		checkpoint)
	return read.Value.Manifest.Entries, err
}

// rowOf returns the row of the only message of a log. One that a summary replaces has that beside it.
func rowOf(a *aligner, units []protocol.ViewUnit, log []protocol.Message) row {
	for _, r := range a.align(units, log) {
		if r.Message != nil {
			return r
		}
		if r.First <= log[0].Seq && log[0].Seq <= r.Last {
			r.Message = &log[0]
			r.Log = sideOf(log[0].Format, log[0].Message, a.room)
			return r
		}
	}
	a.rows = nil
	a.add(&log[0], nil)
	return a.rows[0]
}

// indented returns JSON as a person reads it.
func indented(value json.RawMessage) string {
	var text bytes.Buffer
	if json.Indent(&text, value, "", "  ") != nil {
		return string(value)
	}
	return text.String()
}
