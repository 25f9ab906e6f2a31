package api

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// returnParameter asks an append for the view with its messages.
const returnParameter = "return"

// viewQuery are the parameters of every newest view.
var viewQuery = []string{"max_tokens", "format", "model", "dialect", "pending", "fit", "wait"}

// envelope is what stands around a view in the answer to an append.
type envelope struct {
	status int    // of the answer, 0 for that of a read
	before []byte // nil for an answer that is the view
}

func (e *envelope) code() int { return cmp.Or(e.status, http.StatusOK) }

// end returns the end of the answer behind the last message.
func (e *envelope) end() string {
	if e.before == nil {
		return "]}"
	}
	return "]}}"
}

// readReturned reads which view an append returns, nil for none.
func (s *Server) readReturned(req *request.Request) (*viewRequest, error) {
	q := req.Query()
	if !q.Values.Has(returnParameter) {
		for _, name := range viewQuery {
			if q.Values.Has(name) {
				q.Wrong(name, request.InvalidRequest, "is about a view: leave it out, or add return=context")
			}
		}
		return nil, req.Err()
	}
	q.Choice(returnParameter, "context")
	want, err := s.viewRequestOf(req)
	want.tags, want.any = nil, false
	if err == nil && !req.Caller.May(session.SessionsRead) {
		err = lacks(session.SessionsRead)
	}
	return &want, err
}

// viewing returns the view to be read with an append. Its caller frees the memory of it.
func (r *viewRequest) viewing() *postgres.Viewing {
	if r == nil {
		return nil
	}
	return &postgres.Viewing{Read: r.reads(postgres.Version{}), Into: views.Get().(*postgres.View)}
}

// answerAppended answers with what an append did and with the view. The append stands whatever becomes of the view: an
// error of that is a part of the answer.
func (s *Server) answerAppended(
	req *request.Request, want *viewRequest, v *postgres.Viewing, status int, done session.Appended,
) error {
	members, err := json.Marshal(done)
	if err != nil {
		return err
	}
	want.envelope = envelope{status, append(bytes.TrimSuffix(members, []byte("}")), `,"context":`...)}
	if !v.Done {
		err = s.openView(req, *want, postgres.Version{}, v.Into)
	}
	if err == nil {
		err = s.answerOpened(req, *want, postgres.Version{}, v.Into)
	}
	if err == nil || req.Begun() {
		return err
	}
	forgetAnswer(req.W.Header())
	f, failed := s.failed(req, err)
	problem := problemOf(req, f, failed)
	return req.JSON(status, protocol.Appended{Appended: done, Problem: &problem})
}
