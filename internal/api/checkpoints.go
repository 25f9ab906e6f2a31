package api

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"

	"github.com/varve-dev/varve/internal/compact/manifest"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

var errNoCheckpoint = errors.New("no such checkpoint")

// noCheckpoint says of what was not found that it is the checkpoint.
func noCheckpoint(err error) error {
	if errors.Is(err, session.ErrNotFound) {
		return errNoCheckpoint
	}
	return err
}

// checkpoint is the session and the number of the checkpoint that the path names.
func (x *exchange) checkpoint() (at session.Address, n int, err error) {
	if at, err = x.address(); err != nil {
		return at, 0, err
	}
	number, err := strconv.ParseUint(x.param("n"), 10, 31)
	if err != nil || number == 0 {
		return at, 0, errNoCheckpoint
	}
	return at, int(number), nil
}

func recordAnswer(r session.CheckpointRecord) protocol.Checkpoint {
	r.CreatedAt = r.CreatedAt.UTC()
	return protocol.Checkpoint(r)
}

// listCheckpoints is GET /v1/sessions/{id}/checkpoints.
func (s *Server) listCheckpoints(x *exchange) error {
	at, err := x.address()
	if err != nil {
		return err
	}
	list := listOf(x, "checkpoints of "+at.ID)
	if list.err != nil {
		return list.err
	}
	found, err := s.Store.Checkpoints(x.ctx, at, int(list.after.order), list.limit+1)
	if err != nil {
		return err
	}
	return answerList(list, found, recordAnswer, func(last session.CheckpointRecord) place { return place{order: int64(last.N)} })
}

// readCheckpoint is GET /v1/sessions/{id}/checkpoints/{n}.
func (s *Server) readCheckpoint(x *exchange) error {
	q := x.query("manifest")
	of := q.choice("manifest", "own", "all")
	if err := q.err(); err != nil {
		return err
	}
	at, n, err := x.checkpoint()
	if err != nil {
		return err
	}
	found, err := s.Store.Lineages(x.ctx, at, n)
	if err != nil {
		return noCheckpoint(err)
	}
	lineage, err := manifest.Parse(found[0].Manifests)
	if err != nil {
		return err
	}
	lost := lineage[0]
	if of == "all" {
		lost = manifest.Merge(lineage)
	}
	return x.json(http.StatusOK, protocol.CheckpointDetail{
		Checkpoint: recordAnswer(found[0].CheckpointRecord), Policy: found[0].Policy, Units: found[0].Units, OpenCalls: found[0].OpenCalls,
		Manifest: protocol.Manifest{
			Of: of, TokensBefore: found[0].Tokens + lost.Saved(), TokensAfter: found[0].Tokens, TokensSaved: lost.Saved(),
			Stages: lost.Stages(), Entries: lossAnswers(at, lost),
		},
	})
}

func lossAnswers(at session.Address, lost manifest.Manifest) []protocol.ManifestEntry {
	path := "/v1/sessions/" + escapeID(at.ID)
	answers := make([]protocol.ManifestEntry, len(lost))
	for i, e := range lost {
		answers[i] = protocol.ManifestEntry{Entry: e, ReadBack: path + "/results/" + e.Ref}
		if e.Ref == "" {
			answers[i].ReadBack = fmt.Sprintf("%s/messages?from_seq=%d&to_seq=%d", path, e.Seq, e.LastSeq)
		}
	}
	return answers
}

// readCheckpointContext is GET /v1/sessions/{id}/checkpoints/{n}/context: the view as it was when the checkpoint was made.
func (s *Server) readCheckpointContext(x *exchange) error {
	q := x.query()
	if err := q.err(); err != nil {
		return err
	}
	at, n, err := x.checkpoint()
	if err != nil {
		return err
	}
	view, err := s.Store.CheckpointView(x.ctx, at, n)
	if err != nil {
		return noCheckpoint(err)
	}
	request := viewRequest{at: at, pending: wire.KeepPending, bare: true, zstd: acceptsZstd(x.r.Header["Accept-Encoding"])}
	request.tags, request.any = parseTags(x.r.Header["If-None-Match"])
	tag := request.tagOf(view.Version, view.Format, view.Model)
	if request.has(tag) {
		return x.notModified(tag)
	}
	if wire.ResumeFastValidator(view.Format, view.Walk, nil).Valid(view.Model) {
		return x.view(request, tag, &view, viewNotes{})
	}
	rendered, notes, err := s.render(x.ctx, request, n)
	if err != nil {
		return err
	}
	view.System, view.Body, view.Size, view.Tail = rendered.System, nil, 0, rendered.Tail
	return x.view(request, tag, &view, notes)
}

// diffCheckpoints is GET /v1/sessions/{id}/checkpoints/{n}/diff.
func (s *Server) diffCheckpoints(x *exchange) error {
	const newest = 0
	q := x.query("to")
	to := int(q.integer("to", 1, math.MaxInt32, newest))
	if err := q.err(); err != nil {
		return err
	}
	at, n, err := x.checkpoint()
	if err != nil {
		return err
	}
	found, err := s.Store.Lineages(x.ctx, at, n, to)
	if err != nil {
		return noCheckpoint(err)
	}
	answer, err := diff(&found[0], &found[1])
	if err != nil {
		return err
	}
	return x.json(http.StatusOK, answer)
}

func diff(from, to *session.Lineage) (a protocol.CheckpointDiff, err error) {
	var lost [2]manifest.Manifest
	for i, l := range []*session.Lineage{from, to} {
		lineage, err := manifest.Parse(l.Manifests)
		if err != nil {
			return a, err
		}
		lost[i] = manifest.Merge(lineage)
	}
	a.From = protocol.CheckpointSide{N: from.N, Through: from.Through, Tokens: from.Tokens}
	a.To = protocol.CheckpointSide{N: to.N, Through: to.Through, Tokens: to.Tokens}
	a.Changes = manifest.Compare(lost[0], lost[1])
	for i := range a.Changes {
		a.TokensChanged += a.Changes[i].Tokens()
	}
	a.TokensCovered = to.Tokens - from.Tokens - a.TokensChanged
	return a, nil
}

// restoreCheckpoint is POST /v1/sessions/{id}/checkpoints/{n}/restore.
func (s *Server) restoreCheckpoint(x *exchange) error {
	if err := x.query().err(); err != nil {
		return err
	}
	at, n, err := x.checkpoint()
	if err != nil {
		return err
	}
	id, err := x.emptyBody()
	if err != nil {
		return err
	}
	made, replayed, err := s.Store.Restore(x.ctx, at, n, id)
	if err != nil {
		return noCheckpoint(err)
	}
	x.replayed(id, replayed)
	x.w.Header().Set("Location", fmt.Sprintf("/v1/sessions/%s/checkpoints/%d", escapeID(at.ID), made.N))
	return x.json(http.StatusCreated, recordAnswer(made))
}
