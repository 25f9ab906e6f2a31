package webhook

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/feature"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/spelling"
)

// handlers answer the requests about webhooks.
type handlers struct{}

var errNone = request.Fail(request.NotFound, "there is no such webhook: GET /v1/webhooks lists them")

// routes returns the routes of webhooks.
func routes(*feature.API) []request.Route {
	admin, h := request.Tenants(session.ScopeAdmin), handlers{}
	const one = "/v1/webhooks/:webhook"
	return []request.Route{
		admin.Show("/v1/webhooks", h.create),
		admin.List("/v1/webhooks", h.list),
		admin.Get(one, h.read).About("webhook", errNone),
		admin.Patch(one, h.change).About("webhook", errNone),
		admin.Delete(one, h.delete).About("webhook", errNone),
		admin.List(one+"/deliveries", h.listDeliveries).About("webhook", errNone),
		admin.Show(one+"/rotate", h.rotate).About("webhook", errNone),
		admin.Do(one+"/enable", h.enable).About("webhook", errNone),
		admin.Do(one+"/test", h.test).About("webhook", errNone),
	}
}

// create handles POST /v1/webhooks.
func (h handlers) create(req *request.Request) error {
	change, err := readBody(req, true)
	if err != nil {
		return err
	}
	wanted := Webhook{URL: *change.URL}
	if change.Name != nil {
		wanted.Name = *change.Name
	}
	if change.Types != nil {
		wanted.Types = *change.Types
	}
	secret := NewSecret()
	made, err := store{req.Store}.create(req.Ctx, req.Tenant, wanted, secret)
	if err != nil {
		return err
	}
	req.W.Header().Set("Location", "/v1/webhooks/"+made.ID.String())
	return req.JSON(http.StatusCreated, Created{Secret: secret.Text(), Webhook: made})
}

var members = []string{"url", "name", "types"}

// readBody reads the body that makes or changes a webhook.
func readBody(req *request.Request, whole bool) (change Change, err error) {
	d, err := request.Open(req.Body())
	if err != nil {
		return change, err
	}
	for name, value := range d.Fields(members) {
		switch name {
		case "url":
			change.URL = urlIn(d, value)
		case "name":
			change.Name = new(d.Name("/name", value))
		case "types":
			change.Types = typesIn(d, value)
		}
	}
	if whole && change.URL == nil && !d.Has("/url") {
		d.Wrong("/url", request.InvalidRequest, "the URL that events are sent to is missing, e.g. "+
			"https://hooks.example/varve")
	}
	return change, d.Err()
}

// urlIn reads the URL of a webhook. Whether its host is reached is seen when something is sent: a name may lead
// elsewhere by then.
func urlIn(d *request.Document, value rawjson.Span) *string {
	text, ok := d.Text("/url", value, maxURL)
	if !ok {
		return nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "":
		d.Wrong("/url", request.InvalidRequest, "must be an https URL with a host, e.g. https://hooks.example/varve")
	case u.User != nil || u.Fragment != "":
		d.Wrong("/url", request.InvalidRequest, "must have no user, password or fragment: the requests are signed")
	}
	return &text
}

func typesIn(d *request.Document, value rawjson.Span) *[]session.EventType {
	types := []session.EventType{}
	spans, _ := d.Array("/types", value)
	for i, span := range spans {
		at := request.PointerTo("/types", i)
		text, ok := d.Text(at, span, session.MaxIDBytes)
		kind := session.EventType(text)
		switch {
		case !ok:
		case !slices.Contains(session.EventTypes(), kind):
			d.Wrong(at, request.InvalidRequest, "there is no event %q; there are %s", spelling.Shorten(text),
				request.Names(session.EventTypes()))
		case !slices.Contains(types, kind):
			types = append(types, kind)
		}
	}
	return &types
}

// list handles GET /v1/webhooks.
func (h handlers) list(req *request.Request) error {
	find := func(l *request.List) ([]Webhook, error) {
		return store{req.Store}.list(req.Ctx, req.Tenant, l.Page())
	}
	place := func(last Webhook) request.Place { return request.PlaceIn(last.CreatedAt, last.ID) }
	return request.AnswerList(req, "webhooks", find, request.AsIs, place)
}

// read handles GET /v1/webhooks/{webhook}.
func (h handlers) read(req *request.Request) error {
	found, err := store{req.Store}.read(req.Ctx, req.Tenant, req.PathID("webhook"))
	return request.AnswerFound(req, found, err, request.AsIs)
}

// listDeliveries handles GET /v1/webhooks/{webhook}/deliveries.
func (h handlers) listDeliveries(req *request.Request) error {
	id := req.PathID("webhook")
	find := func(l *request.List) ([]Delivery, error) {
		return store{req.Store}.deliveries(req.Ctx, req.Tenant, id, l.After.Order, l.Limit)
	}
	place := func(last Delivery) request.Place { return request.Place{Order: last.N} }
	return request.AnswerList(req, "deliveries of webhook "+id.String(), find, request.AsIs, place)
}

// change handles PATCH /v1/webhooks/{webhook}.
func (h handlers) change(req *request.Request) error {
	change, err := readBody(req, false)
	if err != nil {
		return err
	}
	changed, err := store{req.Store}.change(req.Ctx, req.Tenant, req.PathID("webhook"), change)
	return request.AnswerFound(req, changed, err, request.AsIs)
}

// delete handles DELETE /v1/webhooks/{webhook}.
func (h handlers) delete(req *request.Request) error {
	return request.AnswerGone(req, store{req.Store}.delete(req.Ctx, req.Tenant, req.PathID("webhook")))
}

// rotate handles POST /v1/webhooks/{webhook}/rotate: both secrets sign until the overlap is over.
func (h handlers) rotate(req *request.Request) error {
	keep, err := request.Overlap(req, overlap, maxOverlap)
	if err != nil {
		return err
	}
	secret := NewSecret()
	found, err := store{req.Store}.rotate(req.Ctx, req.Tenant, req.PathID("webhook"), secret, keep)
	if err != nil {
		return err
	}
	return req.JSON(http.StatusCreated, Created{Secret: secret.Text(), Webhook: found})
}

// enable handles POST /v1/webhooks/{webhook}/enable.
func (h handlers) enable(req *request.Request) error {
	found, err := store{req.Store}.enable(req.Ctx, req.Tenant, req.PathID("webhook"))
	return request.AnswerFound(req, found, err, request.AsIs)
}

// test handles POST /v1/webhooks/{webhook}/test.
func (h handlers) test(req *request.Request) error {
	id := req.PathID("webhook")
	if err := (store{req.Store}).test(req.Ctx, req.Tenant, id); err != nil {
		return err
	}
	req.W.Header().Set("Location", "/v1/webhooks/"+id.String())
	req.W.WriteHeader(http.StatusAccepted)
	return nil
}
