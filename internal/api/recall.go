package api

import (
	"net/http"
	"time"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// The time that a report of what was read back is about.
const (
	recallDays    = 7 * 24 * time.Hour
	maxRecallDays = 92 * 24 * time.Hour
	maxRecallRows = 1000
)

// readRecall handles GET /v1/recall.
func (s *Server) readRecall(req *request.Request) error {
	q := req.Query()
	to := q.Time("to", time.Now())
	from := q.Time("from", to.Add(-recallDays))
	if len(q.Problems) == 0 && (!from.Before(to) || to.Sub(from) > maxRecallDays) {
		q.Wrong("from", request.InvalidRequest, "must be before to, and at most %d days before it",
			maxRecallDays/(24*time.Hour))
	}
	if err := req.Err(); err != nil {
		return err
	}
	found, err := req.Store.Recall(req.Ctx, req.Tenant, from, to, maxRecallRows)
	if err != nil {
		return err
	}
	answer := protocol.Recall{From: from.UTC(), To: to.UTC(), Data: append([]session.Recall{}, found...)}
	for i := range found {
		answer.Total.Add(found[i].Regret)
	}
	return req.JSON(http.StatusOK, answer)
}

// readBack counts that what a ref of the request's session names was read back.
func (s *Server) readBack(req *request.Request, ref string) {
	if req.R.Method != http.MethodHead {
		s.countReadBack(req.Address(), ref, session.ViaREST)
	}
}

// countReadBack counts a read for the report of what compactions took out, and for the ledger.
func (s *Server) countReadBack(at session.Address, ref string, via session.Via) {
	s.recall.Read(at, ref, via)
	s.ledger.ReadBack(at)
}

// reads are how often results were read back, by ref.
type reads map[string]session.Reads

func (s *Server) readsOf(req *request.Request, results ...persist.Result) (reads, error) {
	refs := make([]string, len(results))
	for i := range results {
		refs[i] = results[i].Ref
	}
	found, err := req.Store.ReadsOf(req.Ctx, req.Address(), refs)
	counted := reads{}
	for _, r := range found {
		counted[r.Ref] = r
	}
	return counted, err
}

// answerOf returns a result with how often it was read back.
func (n reads) answerOf(r persist.Result) protocol.Result {
	a := answerOfResult(r)
	if counted, ok := n[r.Ref]; ok {
		a.Reads, a.LastReadAt = counted.Reads, &counted.Last
	}
	return a
}
