package api

import (
	"time"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/readback"
	"github.com/varve-dev/varve/internal/view"
)

// defaultRoomWait is how many seconds a reader waits whose view must fit the window, if the reader does not say.
const defaultRoomWait = 5

// readFit reads whether the view must fit the session's window, and how long its reader waits for that.
func (s *Server) readFit(req *request.Request, r *viewRequest) {
	q := req.Query()
	fit := q.Values.Has("fit") && q.Choice("fit", "window") == "window"
	r.wait = time.Duration(q.Integer("wait", 0, maxWait, defaultRoomWait)) * time.Second
	switch {
	case fit && r.full:
		q.Wrong("fit", request.InvalidRequest, "view=full is the whole log: leave fit or view=full out")
	case !fit && q.Values.Has("wait"):
		q.Wrong("wait", request.InvalidRequest, "only a read with fit=window waits: leave wait out, or add fit=window")
	case r.asOf != nil && q.Values.Has("wait") && r.wait > 0:
		q.Wrong("wait", request.InvalidRequest, "a view as of a moment does not change: leave wait out, or 0")
	case fit:
		r.Fit = &view.Fit{Parts: func(seq int64) ([]readback.Part, error) {
			return readback.Parts(req.Ctx, req.Store, r.at, seq)
		}}
	}
}

// awaitsRoom reports whether a reader whose view must fit the window waits for a compaction, because it does not.
func (r *viewRequest) awaitsRoom(v *postgres.View) bool {
	return r.Fit != nil && r.wait > 0 && r.newest() && v.Tokens > v.Room
}
