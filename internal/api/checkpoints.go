package api

import (
	"fmt"
	"math"
	"net/http"
	"strconv"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/compact/manifest"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// checkpointOf returns the number of the checkpoint that the path names.
func checkpointOf(req *request.Request) int {
	number, err := strconv.ParseUint(req.Param("n"), 10, 31)
	if err != nil || number == 0 {
		req.Fail(session.ErrNotFound)
	}
	return int(number)
}

// listCheckpoints handles GET /v1/sessions/{id}/checkpoints.
func (s *Server) listCheckpoints(req *request.Request) error {
	at := req.Address()
	find := func(l *request.List) ([]session.CheckpointRecord, error) {
		return req.Store.Checkpoints(req.Ctx, at, int(l.After.Order), l.Limit)
	}
	return request.AnswerList(req, "checkpoints of "+at.ID, find, request.AsIs,
		func(last session.CheckpointRecord) request.Place { return request.Place{Order: int64(last.N)} })
}

// readCheckpoint handles GET /v1/sessions/{id}/checkpoints/{n}.
func (s *Server) readCheckpoint(req *request.Request) error {
	of := req.Query().Choice("manifest", "own", "all")
	if err := req.Err(); err != nil {
		return err
	}
	at := req.Address()
	found, err := lineages(req, checkpointOf(req))
	if err != nil {
		return err
	}
	var lost manifest.Manifest
	err = req.Heavy(manifestBytes(found), func() error {
		lineage, err := manifest.Parse(found[0].Manifests)
		if err != nil {
			return session.DamagedCheckpoint(found[0].N, err)
		}
		if lost = lineage[0]; of == "all" {
			lost = manifest.Merge(lineage)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return req.JSON(http.StatusOK, protocol.CheckpointDetail{
		CheckpointRecord: found[0].CheckpointRecord, Policy: found[0].Policy, Units: found[0].Units,
		OpenCalls: found[0].OpenCalls,
		Manifest: protocol.Manifest{
			Of: of, TokensBefore: found[0].Tokens + lost.Saved(), TokensAfter: found[0].Tokens,
			TokensSaved: lost.Saved(),
			Stages:      lost.Stages(), Entries: lossAnswers(at, lost),
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

// diffCheckpoints handles GET /v1/sessions/{id}/checkpoints/{n}/diff.
func (s *Server) diffCheckpoints(req *request.Request) error {
	const newest = 0
	to := int(req.Query().Integer("to", 1, math.MaxInt32, newest))
	if err := req.Err(); err != nil {
		return err
	}
	found, err := lineages(req, checkpointOf(req), to)
	if err != nil {
		return err
	}
	var answer protocol.CheckpointDiff
	err = req.Heavy(manifestBytes(found[:]), func() (err error) {
		answer, err = diff(&found[0], &found[1])
		return err
	})
	return request.AnswerFound(req, answer, err, request.AsIs)
}

// lineages reads the manifests of checkpoints and of those before them, for which there must be memory.
func lineages(req *request.Request, numbers ...int) ([]session.Lineage, error) {
	if err := req.Admit(min(checkpointMemory, req.Memory.Size())); err != nil {
		return nil, err
	}
	return req.Store.Lineages(req.Ctx, req.Address(), numbers...)
}

func manifestBytes(lineages []session.Lineage) (bytes int64) {
	for i := range lineages {
		for _, m := range lineages[i].Manifests {
			bytes += int64(len(m))
		}
	}
	return bytes
}

func diff(from, to *session.Lineage) (a protocol.CheckpointDiff, err error) {
	var lost [2]manifest.Manifest
	for i, l := range []*session.Lineage{from, to} {
		lineage, err := manifest.Parse(l.Manifests)
		if err != nil {
			return a, session.DamagedCheckpoint(l.N, err)
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

// restoreCheckpoint handles POST /v1/sessions/{id}/checkpoints/{n}/restore.
func (s *Server) restoreCheckpoint(req *request.Request) error {
	at := req.Address()
	made, replayed, err := req.Store.Restore(req.Ctx, at, checkpointOf(req), req.Idempotency())
	if err != nil {
		return err
	}
	req.Replayed(replayed)
	req.W.Header().Set("Location", fmt.Sprintf("/v1/sessions/%s/checkpoints/%d", escapeID(at.ID), made.N))
	return req.JSON(http.StatusCreated, made)
}
