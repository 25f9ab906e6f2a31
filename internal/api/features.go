package api

import (
	"cmp"
	"errors"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/feature"
)

// routeFeatures has the routes of the features.
func (s *Server) routeFeatures() {
	for _, f := range s.Features {
		if f.Routes == nil {
			continue
		}
		for _, route := range f.Routes(s.Store) {
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
