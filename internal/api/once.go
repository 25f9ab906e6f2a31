package api

import (
	"bytes"
	"maps"
	"net/http"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// once runs a route's handler as an Idempotency-Key wants it.
func once(req *request.Request, route *request.Route) error {
	if route.Keys == request.KeyRefused && req.R.Header["Idempotency-Key"] != nil {
		return session.Invalid("Idempotency-Key", request.InvalidRequest, "the answer has a secret, which is not "+
			"kept to be given twice: send the request without an Idempotency-Key; if its answer is lost, revoke what "+
			"it made")
	}
	if route.Keys != request.KeyOnce || req.Idempotency() == nil {
		return route.Handle(req)
	}
	at := session.Address{Tenant: req.Tenant}
	if route.OfSession() {
		at = req.Address()
	}
	store, w := req.Store, req.W
	kept := &keeper{answered: answered{Header: http.Header{}}}
	given, replayed, err := postgres.Keyed(req.Ctx, store, at, req.Idempotency(),
		func(inside *postgres.Store) (given answered, err error) {
			req.Store, req.W = inside, kept
			if err = route.Handle(req); err != nil {
				maps.Copy(w.Header(), kept.answered.Header)
			}
			kept.Body = kept.body.String()
			return kept.answered, err
		})
	req.Store, req.W = store, w
	if err != nil {
		return err
	}
	req.Replayed(replayed)
	maps.Copy(w.Header(), given.Header)
	w.WriteHeader(given.Status)
	if given.Body == "" {
		return nil
	}
	_, err = w.Write([]byte(given.Body))
	return req.Sent(err)
}

// answered is an answer as it is stored with an Idempotency-Key.
type answered struct {
	Status int
	Header http.Header
	Body   string
}

// keeper keeps an answer until what it says is committed.
type keeper struct {
	answered
	body bytes.Buffer
}

func (k *keeper) Header() http.Header               { return k.answered.Header }
func (k *keeper) WriteHeader(status int)            { k.Status = status }
func (k *keeper) Write(p []byte) (n int, err error) { return k.body.Write(p) }
