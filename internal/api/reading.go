package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// fromPrimary are the routes that read what must be as it is now: what a later write depends on, and what is waited
// for.
var fromPrimary = []string{"/v1/events", "/v1/imports/:import", "/v1/sessions/:id/results/uploads/:upload"}

// mayBeBehind reports whether a route's reads may go to a standby.
func mayBeBehind(r *request.Route) bool {
	return r.Method == http.MethodGet && r.Kind == session.TenantCaller && !slices.Contains(fromPrimary, r.Path)
}

// handleFrom runs the handler of a request whose reads may go to a standby. What fails there, and has sent nothing yet,
// is done again with the primary: it may know better. sent reports whether a part of the answer is on its way.
func (s *Server) handleFrom(req *request.Request, route *request.Route, sent func() bool) error {
	if !mayBeBehind(route) {
		if !route.Reads() {
			defer s.Store.Wrote(writtenBy(req, route))
		}
		return route.Handle(req)
	}
	primary := req.Ctx
	ctx, reading := s.Store.Reading(primary, readBy(req, route))
	if reading == nil {
		return route.Handle(req)
	}
	req.Ctx = ctx
	err := route.Handle(req)
	if err == nil || !reading.Asked() || sent() || primary.Err() != nil {
		reading.End(nil)
		return err
	}
	reading.End(err)
	req.Ctx = primary
	forgetAnswer(req.W.Header())
	return route.Handle(req)
}

// readBy returns what a request reads, as Store.Reading takes it.
func readBy(req *request.Request, route *request.Route) session.Address {
	if route.OfSession() {
		return req.Address()
	}
	return session.Address{Tenant: req.Tenant}
}

// writtenBy returns what a request may have changed, as Store.Wrote takes it.
func writtenBy(req *request.Request, route *request.Route) session.Address {
	if route.Kind == session.OperatorCaller {
		return session.Address{} // of any tenant
	}
	return readBy(req, route)
}

// forgetAnswer removes what a handler has said of an answer that is not sent.
func forgetAnswer(h http.Header) {
	for _, name := range []string{"Etag", "Content-Encoding", "Content-Range", "Last-Modified", "Accept-Ranges",
		"Cache-Control"} {
		delete(h, name)
	}
}

// minSeq is the parameter of a read that must show a seq.
const minSeq = "min_seq"

// readMinSeq reads the seq that a read must show, 0 for none.
func readMinSeq(q *request.Query) int64 { return q.Integer(minSeq, 1, session.MaxSessionMessages, 0) }

// awaitSeq waits until the session that is read has a seq, where it is read from a standby: that may show it in a
// moment. Where it is not there in time, the request is to be done again with the primary.
//
// Errors: ErrStandbyStale, ErrNotFound; a *request.Failure if the primary has not got it either.
func (s *Server) awaitSeq(req *request.Request, seq int64) error {
	if seq == 0 {
		return nil
	}
	up := time.Now().Add(postgres.WaitOnStandby(req.Ctx))
	for pause := time.Millisecond; ; pause = min(2*pause, 10*time.Millisecond) {
		last, err := s.Store.LastSeq(req.Ctx, req.Address())
		switch {
		case err != nil || last >= seq:
			return err
		case !postgres.FromStandby(req.Ctx):
			return &request.Failure{Code: "seq_not_reached", Current: &last, Detail: fmt.Sprintf("the session's last "+
				"seq is %d, it has no %d yet: read again when that was appended, or with min_seq=%d", last, seq, last)}
		case time.Now().After(up):
			return postgres.ErrStandbyStale
		}
		if err := sleep(req.Ctx, pause); err != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, pause time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(pause):
		return nil
	}
}

// showsLess reports whether a view was read from a standby and is older than one that the reader has: then the primary
// has to be asked.
func (r *viewRequest) showsLess(ctx context.Context, v *postgres.View) bool {
	return postgres.FromStandby(ctx) && r.newest() && slices.ContainsFunc(r.tags, func(tag entityTag) bool {
		return tag.version.Key == v.Key &&
			(tag.version.LastSeq > v.LastSeq || tag.version.Checkpoint > v.Checkpoint)
	})
}
