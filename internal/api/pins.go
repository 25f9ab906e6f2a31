package api

import (
	"errors"
	"fmt"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/compact/pin"
	"github.com/varve-dev/varve/internal/compact/summary"
	"github.com/varve-dev/varve/internal/ingest"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tokens"
	"github.com/varve-dev/varve/internal/wire"
)

var errNothingToPin = request.Fail(request.NotFound, "there is no such session, or nothing to pin under this ref: "+
	"pin a message (m17), a part of one (m17.2) or a result (r17.2-9f3a) that has a text")

// listPins handles GET /v1/sessions/{id}/pins. There are few enough for one page.
func (s *Server) listPins(req *request.Request) error {
	found, err := req.Store.Pins(req.Ctx, req.Address())
	answer := func(found []session.Pin) protocol.Pins { return protocol.Pins{Data: append([]session.Pin{}, found...)} }
	return request.AnswerFound(req, found, err, answer)
}

// putPin handles PUT /v1/sessions/{id}/pins/{ref}.
func (s *Server) putPin(req *request.Request) error {
	note, err := pinNote(req)
	if err != nil {
		return err
	}
	ref, err := session.ParsePinRef(req.Param("ref"))
	if err != nil {
		return err
	}
	at := req.Address()
	wanted, _, err := ingest.Pinned(req.Ctx, req.Store, at, ref)
	if errors.Is(err, ingest.ErrNothingToPin) {
		return errNothingToPin
	}
	if err != nil {
		return err
	}
	of, err := req.Store.SessionPolicy(req.Ctx, at)
	if err != nil {
		return err
	}
	rules, err := policy.Parse(of.Document)
	if err != nil {
		return err
	}
	wanted.Note = note
	if limit := rules.Pins.MaxTokens; wanted.Tokens > limit {
		return session.Invalid("ref", request.InvalidRequest, "%s has %d tokens, and the policy's pins.max_tokens is "+
			"%d: pin a part of it (m%d.0), or raise the limit", ref.Text, wanted.Tokens, limit, ref.Seq)
	}
	made, err := req.Store.PutPin(req.Ctx, at, wanted, rules.Pins.MaxTokens)
	return request.AnswerFound(req, made, err, request.AsIs)
}

// pinNote reads the body of a pin, which may be empty.
func pinNote(req *request.Request) (note string, err error) {
	body := req.Body()
	if len(body) == 0 {
		return "", req.Err()
	}
	d, err := request.Open(body)
	if err != nil {
		return "", err
	}
	for _, value := range d.Fields([]string{"note"}) {
		note, _ = d.Text("/note", value, session.MaxIDBytes)
	}
	return note, d.Err()
}

// deletePin handles DELETE /v1/sessions/{id}/pins/{ref}.
func (s *Server) deletePin(req *request.Request) error {
	if err := req.Err(); err != nil {
		return err
	}
	ref, err := session.ParsePinRef(req.Param("ref"))
	if err != nil {
		return err
	}
	return request.AnswerGone(req, req.Store.Unpin(req.Ctx, req.Address(), ref.Text))
}

// How much of the log a page of candidates looks at: its sentences are read one by one.
const (
	candidatePage  = 1_000 // messages
	candidateBytes = 1 << 20
)

// listPinCandidates handles GET /v1/sessions/{id}/pins/candidates.
func (s *Server) listPinCandidates(req *request.Request) error {
	from := req.Query().Integer("from_seq", 1, session.MaxSessionMessages+1, 1)
	if err := req.Err(); err != nil {
		return err
	}
	r := postgres.Range{After: from - 1, Limit: candidatePage + 1, Bytes: candidateBytes}
	found, err := req.Page(r, func(r postgres.Range) ([]session.Message, error) {
		_, found, err := req.Store.Messages(req.Ctx, req.Address(), r)
		return found, err
	})
	if err != nil {
		return err
	}
	looked := pageOf(found, candidatePage, candidateBytes)
	page := protocol.PinCandidates{Data: []protocol.PinCandidate{}, HasMore: len(looked) < len(found)}
	if page.HasMore {
		page.NextSeq = &found[len(looked)].Seq
	}
	err = req.Heavy(request.Bytes(looked), func() error {
		for i := range looked {
			page.Data = append(page.Data, candidatesOf(&looked[i])...)
		}
		return req.Ctx.Err()
	})
	return request.AnswerFound(req, page, err, request.AsIs)
}

// candidatesOf returns the standing instructions in a message of the user.
func candidatesOf(m *session.Message) (list []protocol.PinCandidate) {
	facts, err := wire.Inspect(m.Format, m.Body)
	if err != nil || facts.Role != "user" && facts.Role != "human" {
		return nil
	}
	for i := range facts.Parts {
		p := &facts.Parts[i]
		if p.Kind != wire.Text {
			continue
		}
		text, _ := pin.TextOf(m.Format, m.Body, &facts, p.Index)
		for _, sentence := range summary.Standing(text) {
			list = append(list, protocol.PinCandidate{
				Ref: fmt.Sprintf("m%d.%d", m.Seq, p.Index), Seq: m.Seq, Part: p.Index, Text: sentence,
				Tokens: tokens.Estimate([]byte(text)),
			})
		}
	}
	return list
}
