package console

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/compact/manifest"
	"github.com/varve-dev/varve/internal/importer"
	"github.com/varve-dev/varve/internal/protocol"
)

// playgroundPage compacts a conversation that somebody has pasted. Nothing is stored.
type playgroundPage struct {
	Policy, Window string
	Wrong          string // why there is nothing to show
	Made           *compacted
	Source         string // what kind of file it was read as
	Legend         []legendEntry
	Rows           []row
	Left           int // messages that are not shown
}

// compacted is the API's answer to messages without a session, as far as the page shows it.
type compacted struct {
	TokensBefore int64             `json:"tokens_before"`
	TokensAfter  int64             `json:"tokens_after"`
	Changed      bool              `json:"changed"`
	Due          bool              `json:"due"`
	Reason       string            `json:"reason"`
	Actions      []manifest.Entry  `json:"actions"`
	System       json.RawMessage   `json:"system"`
	Messages     []json.RawMessage `json:"messages"`
}

const compactRoute client.Route[compacted] = "POST compact"

const (
	maxPasted    = 16 << 20
	shownRows    = 200
	pastedWindow = "75000"
)

func showPlayground(v *visit) error {
	return v.show("playground", "Playground", "playground.html", &playgroundPage{Window: pastedWindow})
}

// play compacts what a form has.
func play(v *visit) error {
	page := playgroundPage{}
	text, err := pasted(v.r)
	page.Policy, page.Window = strings.TrimSpace(v.r.FormValue("policy")), v.r.FormValue("window")
	if err == nil {
		err = v.compactPasted(&page, text)
	}
	if refused := new(client.Error); err != nil && !(errors.As(err, &refused) && refused.Status != 422) {
		page.Wrong = err.Error()
		err = nil
	}
	if err != nil {
		return err
	}
	return v.show("playground", "Playground", "playground.html", &page)
}

// pasted returns the conversation of a form: its file or, without one, its text.
func pasted(r *http.Request) ([]byte, error) {
	file, _, err := r.FormFile("file")
	if errors.Is(err, http.ErrMissingFile) || errors.Is(err, http.ErrNotMultipart) {
		return []byte(r.FormValue("text")), nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(file)
}

func (v *visit) compactPasted(page *playgroundPage, text []byte) error {
	conv, source, err := firstOf(v.ctx, text)
	if err != nil {
		return err
	}
	page.Source = source
	log := make([]json.RawMessage, len(conv.Messages))
	for i := range conv.Messages {
		log[i] = conv.Messages[i].Body
	}
	body := map[string]any{"format": conv.Format, "messages": log}
	if page.Policy != "" {
		if !json.Valid([]byte(page.Policy)) {
			return errors.New("the policy is not JSON")
		}
		body["policy"] = json.RawMessage(page.Policy)
	}
	if window, err := strconv.Atoi(page.Window); err == nil {
		body["window_tokens"] = window
	}
	made, err := compactRoute.With(v.ctx, v.api, client.Options{Body: body})
	if err != nil {
		return err
	}
	page.Made = &made.Value
	page.Rows, page.Legend = rowsOf(conv, &made.Value)
	page.Left = max(len(page.Rows)-shownRows, 0)
	page.Rows = page.Rows[:len(page.Rows)-page.Left]
	return nil
}

// firstOf returns the first conversation of a file of any kind that can be imported.
func firstOf(ctx context.Context, text []byte) (c importer.Conversation, source string, err error) {
	read, err := importer.Read(ctx, "playground", text, importer.Auto)
	if err != nil {
		return c, "", err
	}
	for _, c := range read.Conversations {
		if len(c.Messages) > 0 {
			return c, string(read.Source), nil
		}
	}
	return c, "", errors.New("there is no conversation in it")
}

// rowsOf puts messages and what was made of them side by side. What an action took as a whole has one message there,
// all else one for one; a separate system prompt is the same on both sides.
func rowsOf(conv importer.Conversation, made *compacted) ([]row, []legendEntry) {
	entries := make([]protocol.ManifestEntry, len(made.Actions))
	for i, e := range made.Actions {
		e.Ref = "" // it names nothing that is stored
		entries[i] = protocol.ManifestEntry{Entry: e}
	}
	last := int64(len(conv.Messages))
	a := newAligner("", entries, nil, last, listedPart)
	log := make([]protocol.Message, len(conv.Messages))
	for i, m := range conv.Messages {
		log[i] = protocol.Message{Seq: int64(i + 1), Format: conv.Format, Message: m.Body}
	}
	var units []protocol.ViewUnit
	next, leading := made.Messages, true
	for i := 0; i < len(log); i++ {
		seq := log[i].Seq
		u := protocol.ViewUnit{First: seq, Last: seq}
		whole := a.wholeAt(seq)
		leading = leading && whole == nil && isSystem(&log[i])
		switch {
		case leading && len(made.System) > 0:
			u.Messages = []protocol.ViewMessage{{Seq: &seq, Format: conv.Format, Message: log[i].Message}}
		case len(next) > 0:
			u.Messages = []protocol.ViewMessage{{Seq: &seq, Format: conv.Format, Message: next[0]}}
			next = next[1:]
		}
		if whole != nil {
			u.Last = whole.LastSeq
			i += int(u.Last - u.First)
		}
		units = append(units, u)
	}
	rows := a.align(units, log)
	for i := range rows {
		rows[i].Message = nil // it has no page
	}
	return rows, legendOf(entries)
}

func isSystem(m *protocol.Message) bool {
	role := read(m.Format, m.Message).Role
	return role == "system" || role == "developer"
}

// wholeAt returns the entry of messages as a whole that begins with a message, nil for none.
func (a *aligner) wholeAt(seq int64) *manifest.Entry {
	for i := range a.wholes {
		if a.wholes[i].Seq == seq {
			return &a.wholes[i]
		}
	}
	return nil
}
