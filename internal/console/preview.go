package console

import (
	"encoding/json"
	"strings"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/protocol"
)

// previewPage shows what a compaction would do now, under the session's policy or a changed one.
type previewPage struct {
	sessionHead
	Policy  string // changes, as JSON; "" for none
	FromLog bool
	Wrong   string
	Preview *protocol.Preview // nil until it was asked for
	Actions []previewAction
	Left    int
}

// previewAction is an action of a preview as its table shows it.
type previewAction struct {
	Seq, LastSeq                int64
	Do, Tool, Reason, Rule, Ref string
	Before, After               int
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
	all := read.Value.Actions
	page.Left = max(len(all)-maxEntries, 0)
	for i := range all[:len(all)-page.Left] {
		a := &all[i]
		page.Actions = append(page.Actions, previewAction{
			Seq: a.Seq, LastSeq: a.LastSeq, Do: a.Kind.String(), Tool: a.Tool, Reason: a.Reason, Rule: a.Rule,
			Ref: a.Ref, Before: a.TokensBefore, After: a.TokensAfter,
		})
	}
	return v.show("sessions", "Preview of "+h.Session.ID, "preview.html", &page)
}
