package api

import (
	"errors"
	"math"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/session"
)

// maxJobs is how many jobs a request may change.
const maxJobs = 1000

var errNoJob = request.Fail(request.NotFound, "there is no such job: it has ended, and was cleaned away")

// changeJobs returns the handler of POST /v1/admin/jobs/retry or POST /v1/admin/jobs/cancel.
func changeJobs(do audit.Action) handler {
	return func(req *request.Request) error {
		ids, err := readJobs(req)
		if err == nil {
			err = req.Store.ChangeJobs(req.Ctx, do, ids)
		}
		if errors.Is(err, session.ErrNotFound) {
			err = errNoJob
		}
		return request.AnswerGone(req, err)
	}
}

func readJobs(req *request.Request) (ids []int64, err error) {
	d, err := request.Open(req.Body())
	if err != nil {
		return nil, err
	}
	for _, value := range d.Fields([]string{"ids"}) {
		spans, _ := d.Array("/ids", value)
		for i, span := range spans {
			ids = append(ids, d.Integer(request.PointerTo("/ids", i), span, 1, math.MaxInt64))
		}
	}
	if d.Err() == nil && (len(ids) == 0 || len(ids) > maxJobs) {
		d.Wrong("/ids", request.InvalidRequest, "must name 1 to %d jobs", maxJobs)
	}
	return ids, d.Err()
}
