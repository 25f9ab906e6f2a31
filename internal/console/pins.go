package console

import (
	"strconv"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/protocol"
)

// showPins lists what stays word for word in a session.
func showPins(v *visit) error {
	h, err := v.head("pins")
	if err != nil {
		return err
	}
	id := h.Session.ID
	pins, err := client.ListPins.Call(v.ctx, v.api, id)
	if err != nil {
		return err
	}
	t := table{Of: &h, Title: "Pins", Says: "No compaction changes a pinned text. A message is pinned on its page.",
		Empty: "Nothing is pinned here.", Head: heads("Ref", "#Message", "#Tokens", "Text", "Note", "Pinned", "")}
	for _, p := range pins.Value.Data {
		seq := number(p.Seq)
		seq.Link = pathOf("sessions", id, "messages", p.Seq)
		unpin := form{To: pathOf("sessions", id, "pins", p.Ref, "unpin"), Word: "Unpin",
			Does:   "The next compaction may take it out of the view.",
			Inputs: []input{{Name: "seq", Value: strconv.FormatInt(p.Seq, 10)}}}
		t.Rows = append(t.Rows, []cell{{Text: p.Ref, ID: true}, seq, number(int64(p.Tokens)),
			text(clip(p.Text, 4, 300).Text), text(p.Note), when(&p.CreatedAt), doing(unpin)})
	}
	return v.show("sessions", id, "table.html", &t)
}

// pin keeps a message word for word.
func pin(v *visit) error {
	id, ref := v.r.PathValue("id"), v.r.PathValue("ref")
	o := client.Options{Body: protocol.PinRequest{Note: v.r.PostFormValue("note")}}
	_, err := client.PutPin.With(v.ctx, v.api, o, id, ref)
	return v.then(err, "sessions", id, "messages", v.r.PostFormValue("seq"))
}

func unpin(v *visit) error {
	id := v.r.PathValue("id")
	err := client.DeletePin.Call(v.ctx, v.api, id, v.r.PathValue("ref"))
	return v.then(err, "sessions", id, "messages", v.r.PostFormValue("seq"))
}
