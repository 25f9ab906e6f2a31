package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// orThawed returns the error of a request that did not find the session of its path, unless that is cold: then it
// brings the session back and has the request answered again. No statement that does not mean hidden sessions finds
// them. The error is ErrArchived if the session is archived.
func (s *Server) orThawed(
	req *request.Request, route *request.Route, err error, sent func() bool, again func() error,
) error {
	missing := errors.Is(err, session.ErrNotFound)
	if !missing && !errors.Is(err, session.ErrRestoring) || !route.OfSession() || sent() {
		return err
	}
	place, failed := placeOf(req.Ctx, req.Store, req.Address())
	switch {
	case failed != nil:
		return failed
	case place.Archived && missing:
		return session.ErrArchived
	case place.Cold:
		key := session.Key{Tenant: req.Tenant, Key: place.Key}
		if err := s.thawer.Use(req.Ctx, key); err != nil {
			return err
		}
	case !place.Thawed: // another request may have brought it back just now
		return err
	}
	forgetAnswer(req.W.Header())
	return again()
}

// placeOf returns where what was said in a session is; nowhere if there is no such session.
func placeOf(ctx context.Context, store *postgres.Store, at session.Address) (session.Place, error) {
	place, err := store.PlaceOf(ctx, at)
	if errors.Is(err, session.ErrNotFound) {
		err = nil
	}
	return place, err
}

// awake brings a session back that is cold, for a handler that cannot run twice, or whose session the path does not
// name.
func (s *Server) awake(ctx context.Context, at session.Address) error {
	place, err := placeOf(ctx, s.thawer.Store, at)
	if err != nil || !place.Cold {
		return err
	}
	return s.thawer.Use(ctx, session.Key{Tenant: at.Tenant, Key: place.Key})
}

// forgetAnswer removes what a handler has said of an answer that is not sent.
func forgetAnswer(h http.Header) {
	for _, name := range []string{"Etag", "Content-Encoding", "Content-Range", "Last-Modified", "Accept-Ranges",
		"Cache-Control"} {
		delete(h, name)
	}
}
