package api

import (
	"context"
	"math"
	"time"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/protocol"
)

// listSummaries handles GET /v1/sessions/{id}/summaries.
func (s *Server) listSummaries(req *request.Request) error {
	const newest = 0
	n := int(req.Query().Integer("checkpoint", 1, math.MaxInt32, newest))
	if err := req.Err(); err != nil {
		return err
	}
	if err := req.Admit(min(checkpointMemory, req.Memory.Size())); err != nil {
		return err
	}
	var found protocol.Summaries
	err := req.Heavy(checkpointMemory, func() (err error) {
		found, err = compactor.Summaries(req.Ctx, req.Store, req.Address(), n)
		return err
	})
	return request.AnswerFound(req, found, err, request.AsIs)
}

// checkpointMemory is about how much memory a checkpoint takes that is read whole, or the manifests of those before it.
const checkpointMemory = 32 << 20

// rebuildSummaries handles POST /v1/sessions/{id}/summaries/rebuild.
func (s *Server) rebuildSummaries(req *request.Request) error {
	wait := req.Query().Seconds("wait", maxWait)
	if err := req.Err(); err != nil {
		return err
	}
	at := req.Address()
	run, replayed, err := req.Store.Rebuild(req.Ctx, at, req.Idempotency())
	if err != nil {
		return err
	}
	if wait > 0 {
		up := time.Now().Add(wait)
		ctx, cancel := req.Extend(up)
		defer cancel()
		if run, err = s.waiter.Await(ctx, at, run, up); err != nil {
			return err
		}
	}
	req.Replayed(replayed)
	location := "/v1/sessions/" + escapeID(req.SessionID) + "/runs/" + run.ID.String()
	return request.AnswerWork(req, run.State.Ended(), location, run)
}

// askTime is how long a request may take in which models are asked.
const askTime = 3 * time.Minute

// heavy does heavy work on a number of bytes, as Heavy of a request does. Work that asks models may take as long as
// their answers, and holds no processor while it waits for them.
func heavy(req *request.Request, bytes int64, asks bool, work func(context.Context, admit.Processors) error) error {
	if !asks {
		return req.Heavy(bytes, func() error { return work(req.Ctx, admit.Processors{}) })
	}
	ctx, cancel := req.Extend(time.Now().Add(askTime))
	defer cancel()
	return work(ctx, req.Processors())
}
