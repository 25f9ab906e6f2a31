package console

import (
	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// checkpointsPage lists the checkpoints of a session, the newest first, and lets two of them be compared.
type checkpointsPage struct {
	sessionHead
	Checkpoints []session.CheckpointRecord
	Next        string
}

func showCheckpoints(v *visit) error {
	if q := v.r.URL.Query(); q.Has("from") && q.Has("to") {
		return v.redirect(pathOf("sessions", v.r.PathValue("id"), "checkpoints", q.Get("from"), "diff", q.Get("to")))
	}
	h, err := v.head("checkpoints")
	if err != nil {
		return err
	}
	page := checkpointsPage{sessionHead: h}
	if page.Checkpoints, page.Next, err = list(v, client.ListCheckpoints, nil, h.Session.ID); err != nil {
		return err
	}
	return v.show("sessions", "Checkpoints of "+h.Session.ID, "checkpoints.html", &page)
}

// checkpointPage is one checkpoint with what left the view at it.
type checkpointPage struct {
	sessionHead
	Checkpoint protocol.CheckpointDetail
	Entries    []lostEntry
	Left       int // entries that are not shown
	Newest     bool
}

// lostEntry is an entry of a manifest with the address that shows what it is about.
type lostEntry struct {
	protocol.ManifestEntry
	Link string
}

// maxEntries is how many entries of a manifest, or changes, a page shows.
const maxEntries = 500

func showCheckpoint(v *visit) error {
	h, err := v.head("checkpoints")
	if err != nil {
		return err
	}
	id := h.Session.ID
	read, err := client.ReadCheckpoint.Call(v.ctx, v.api, id, v.r.PathValue("n"))
	if err != nil {
		return err
	}
	page := checkpointPage{sessionHead: h, Checkpoint: read.Value, Newest: read.Value.N == h.Session.Checkpoint}
	all := read.Value.Manifest.Entries
	page.Left = max(len(all)-maxEntries, 0)
	for _, e := range all[:len(all)-page.Left] {
		page.Entries = append(page.Entries, lostEntry{e, refLink(id, e.Ref, e.Seq)})
	}
	return v.show("sessions", "Checkpoint of "+id, "checkpoint.html", &page)
}

// refLink returns where a ref is read back; what has none is a message of the log.
func refLink(id, ref string, seq int64) string {
	if ref == "" {
		return pathOf("sessions", id, "messages", seq)
	}
	return pathOf("sessions", id, "results", ref)
}

// diffPage compares the views of two checkpoints.
type diffPage struct {
	sessionHead
	Diff    protocol.CheckpointDiff
	Changes []changed
	Left    int
}

// changed is a change with the address that shows what it is about.
type changed struct {
	Seq, LastSeq         int64
	Part                 int
	Tool, Kind, From, To string
	Before, After        int64
	Ref, Link            string
}

func showDiff(v *visit) error {
	h, err := v.head("checkpoints")
	if err != nil {
		return err
	}
	id := h.Session.ID
	q := client.Query{"to": v.r.PathValue("to")}
	read, err := client.DiffCheckpoints.With(v.ctx, v.api, client.Options{Query: q}, id, v.r.PathValue("n"))
	if err != nil {
		return err
	}
	page, all := diffPage{sessionHead: h, Diff: read.Value}, read.Value.Changes
	page.Left = max(len(all)-maxEntries, 0)
	for _, c := range all[:len(all)-page.Left] {
		page.Changes = append(page.Changes, changed{
			Seq: c.Seq, LastSeq: c.LastSeq, Part: c.Part, Tool: c.Tool, Kind: string(c.Kind), From: c.From.Do,
			To: c.To.Do, Before: c.From.Tokens, After: c.To.Tokens, Ref: c.Ref, Link: refLink(id, c.Ref, c.Seq),
		})
	}
	return v.show("sessions", "Checkpoints compared", "diff.html", &page)
}

// restore makes a checkpoint with the rendition of an older one. The page of that one has said what it does.
func restore(v *visit) error {
	id := v.r.PathValue("id")
	_, err := client.RestoreCheckpoint.Call(v.ctx, v.api, id, v.r.PathValue("n"))
	return v.then(err, "sessions", id, "checkpoints")
}
