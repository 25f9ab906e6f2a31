package api

import (
	"fmt"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/session"
)

// minSeq is the parameter of a read that must show a seq.
const minSeq = "min_seq"

// readMinSeq reads the seq that a read must show, 0 for none.
func readMinSeq(q *request.Query) int64 { return q.Integer(minSeq, 1, session.MaxSessionMessages, 0) }

// checkSeq checks that the session has a seq: it may have been appended through another process, and the database of
// this one may be a standby that does not show it yet.
//
// Errors: ErrNotFound; a *request.Failure if it has not got it.
func (s *Server) checkSeq(req *request.Request, seq int64) error {
	if seq == 0 {
		return nil
	}
	last, err := req.Store.LastSeq(req.Ctx, req.Address())
	if err != nil || last >= seq {
		return err
	}
	return &request.Failure{Code: "seq_not_reached", Current: &last, Detail: fmt.Sprintf("the session's last "+
		"seq is %d, it has no %d yet: read again when that was appended, or with min_seq=%d", last, seq, last)}
}
