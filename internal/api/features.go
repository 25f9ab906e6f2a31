package api

import (
	"cmp"
	"errors"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/feature"
	"github.com/varve-dev/varve/internal/postgres"
)

// routeFeatures registers the routes of the features. The statements of their own stores are bulk work: appends and
// views do not wait for it. Those of a request's store are of the route's class.
func (s *Server) routeFeatures() {
	kit := &feature.API{
		Store:    s.Store.In(postgres.Scope{Gate: s.Gate, Class: admit.Bulk}),
		Stopping: s.draining.Load, Awake: s.awake, Thaw: s.thawer.Read,
		Waiter: &s.waiter, Quotas: s.quotas, Explain: func(err error) string { return failureOf(err).Detail },
		Operators: s.Operators, Caller: s.Caller, Writers: s.writers, IsDown: databaseIsDown,
	}
	for _, f := range s.Features {
		if f.Routes == nil {
			continue
		}
		for _, route := range f.Routes(kit) {
			handle := route.Handle
			route.Handle = func(req *request.Request) error { return failureOfFeature(f.Errors, handle(req)) }
			s.add(route)
		}
	}
}

// failureOfFeature returns what an error of a feature is to the caller.
func failureOfFeature(known []feature.Error, err error) error {
	for _, e := range known {
		if errors.Is(err, e.Is) {
			return &request.Failure{Code: e.Code, Status: e.Status, Detail: cmp.Or(e.Detail, err.Error())}
		}
	}
	return err
}
