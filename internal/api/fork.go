package api

import (
	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/session"
)

// forkSession handles POST /v1/sessions/{id}/fork.
func (s *Server) forkSession(req *request.Request) error {
	answer, err := readInclude(req)
	if err != nil {
		return err
	}
	f, err := readFork(req)
	if err != nil {
		return err
	}
	made, replayed, err := req.Store.Fork(req.Ctx, f)
	if err != nil {
		return err
	}
	req.Replayed(replayed)
	return answerCreated(req, answer(made))
}

// readFork reads the body of a fork, which may be empty.
func readFork(req *request.Request) (f session.Fork, err error) {
	f = session.Fork{From: req.Address(), ChangedBy: req.KeyDigest, Idempotency: req.Idempotency()}
	if body := req.Body(); len(body) > 0 {
		d, err := request.Open(body)
		if err != nil {
			return f, err
		}
		for name, value := range d.Fields([]string{"id", "seq"}) {
			switch name {
			case "id":
				f.ID, _ = d.Text("/id", value, session.MaxIDBytes)
				if problem := session.CheckID(f.ID); problem != "" {
					d.Wrong("/id", request.InvalidRequest,
						"the fork's id %s: leave it out to have one made", problem)
				}
			case "seq":
				f.Seq = d.Integer("/seq", value, 1, session.MaxSessionMessages)
			}
		}
		if err := d.Err(); err != nil {
			return f, err
		}
	}
	if f.ID == "" {
		f.ID = uuid.Must(uuid.NewV7()).String()
	}
	return f, req.Err()
}
