package api

import (
	"bytes"
	"encoding/json"
	"net/http"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/api/stateless"
	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/view"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// compactMessages handles POST /v1/compact: messages in, compacted messages out, and nothing stored.
func (s *Server) compactMessages(req *request.Request) error {
	b, err := decodeCompact(req.Body())
	if err != nil {
		return err
	}
	below, err := s.tenantLayers(req)
	if err != nil {
		return err
	}
	b.Resolve(below)
	b.Check(s.Models)
	snap, system, err := b.Snapshot()
	if err != nil {
		return err
	}
	proposal, err := b.Propose(req.Ctx, snap)
	if err != nil {
		return err
	}
	return answerCompacted(req, b, proposal, system)
}

func decodeCompact(body []byte) (*stateless.Body, error) {
	b := &stateless.Body{Force: true}
	if err := b.Open(body); err != nil {
		return nil, err
	}
	for name, value := range b.Fields(stateless.Fields) {
		b.Set(name, value)
	}
	return b, nil
}

// answerCompacted answers with the messages that a proposal makes, byte for byte, and with what was done to them.
func answerCompacted(req *request.Request, b *stateless.Body, p *compactor.Proposal, system [][]byte) error {
	figures, err := json.Marshal(stateless.FiguresOf(p, b.IncludeResults))
	if err != nil {
		return err
	}
	out := req.Buffer()
	out.B = append(append(out.B, figures[:len(figures)-1]...), `,"format":`...)
	out.B = rawjson.Quote(out.B, []byte(b.Format))
	messages, err := stateless.Messages(p)
	if err != nil {
		return err
	}
	made := b.Render(append(system, messages...)...)
	if len(made.Repairs) > 0 {
		out.B = view.AppendMember(out.B, "repairs", made.Repairs)
	}
	separate := 0
	if provider.SeparatesSystem(b.Format) {
		separate = made.System
	}
	if prompt := wire.AppendSystem(b.Format, nil, made.Bodies[:separate]); len(prompt) > 0 && string(prompt) != "[]" {
		out.B = append(append(out.B, `,"system":`...), prompt...)
	}
	out.B = append(out.B, `,"messages":[`...)
	out.B = append(out.B, bytes.Join(made.Bodies[separate:], []byte{','})...)
	out.B = append(out.B, "]}"...)
	return req.Bytes(http.StatusOK, request.JSONType, out.B)
}
