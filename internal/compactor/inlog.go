package compactor

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/readback"
	"github.com/varve-dev/varve/internal/session"
)

// ownBody is the size up to which a result gets no body of its own: its message in the log has it, and one copy of a
// small result costs less than a row and what it saves there.
const ownBody = 4 << 10

// leaveInLog takes the bytes of foreign results from their messages, and marks the results that need no body: small
// ones and copies that a reader finds in their messages, byte for byte, by the same functions that look for them later.
// All others keep theirs.
func (r *run) leaveInLog(
	ctx context.Context, window []postgres.LogMessage, results []compact.Result, list []persist.NewResult,
) error {
	var wanted []int64
	for i := range list {
		if of := &list[i]; mayStay(of) && (len(wanted) == 0 || wanted[len(wanted)-1] != of.Seq) {
			wanted = append(wanted, of.Seq)
		}
	}
	found, err := r.messages(ctx, window, wanted)
	if err != nil {
		return err
	}
	logged := map[int64]map[string]persist.NewResult{}
	for seq, m := range found {
		if parts, err := readback.ByRef(m); err == nil {
			logged[seq] = parts
		}
	}
	for i := range list {
		of := &list[i]
		in, there := logged[of.Seq][of.Ref]
		there = there && bytes.Equal(in.SHA256, of.SHA256)
		lost := false
		if results[i].Foreign {
			of.MediaType = cmp.Or(in.MediaType, textMediaType)
			of.Lines = in.Lines
			of.Body = in.Body
			lost = !there && sha256.Sum256(nil) != [32]byte(of.SHA256)
		}
		of.InLog = mayStay(of) && there || lost // a reader is told that it is damaged there
	}
	return nil
}

// textMediaType is that of an empty result, which its message does not list.
const textMediaType = "text/plain; charset=utf-8"

// mayStay reports whether a result needs no body if its message has it: a small one, or a copy of one that is stored.
func mayStay(r *persist.NewResult) bool { return r.InLog || len(r.Body) <= ownBody }

// messagesAtOnce bounds how many messages are read at once: one may have several megabytes.
const messagesAtOnce = 16

// messages returns messages of the log by their seqs: those of a window, which is in memory, and others from the
// database.
func (r *run) messages(ctx context.Context, window []postgres.LogMessage, seqs []int64) (
	map[int64]*session.Message, error,
) {
	tail := make(map[int64]*postgres.LogMessage, len(window))
	for i := range window {
		tail[window[i].Seq] = &window[i]
	}
	found := map[int64]*session.Message{}
	var others []int64
	for _, seq := range seqs {
		if m := tail[seq]; m != nil {
			found[seq] = &session.Message{Seq: seq, Format: m.Format, Body: m.Body}
		} else {
			others = append(others, seq)
		}
	}
	for len(others) > 0 {
		n := min(len(others), messagesAtOnce)
		read, err := r.Store.MessagesAt(ctx, r.key, others[:n])
		if err != nil && !errors.Is(err, session.ErrDamaged) { // what is damaged in the log gets a body
			return nil, err
		}
		for i := range read {
			found[read[i].Seq] = &read[i]
		}
		others = others[n:]
	}
	return found, nil
}
