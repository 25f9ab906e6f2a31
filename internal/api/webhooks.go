package api

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/spelling"
)

// createWebhook handles POST /v1/webhooks.
func (s *Server) createWebhook(req *request.Request) error {
	change, err := readWebhookBody(req, true)
	if err != nil {
		return err
	}
	wanted := session.Webhook{URL: *change.URL}
	if change.Name != nil {
		wanted.Name = *change.Name
	}
	if change.Types != nil {
		wanted.Types = *change.Types
	}
	secret := session.NewWebhookSecret()
	made, err := s.Store.CreateWebhook(req.Ctx, req.Tenant, wanted, secret)
	if err != nil {
		return err
	}
	req.W.Header().Set("Location", "/v1/webhooks/"+made.ID.String())
	return req.JSON(http.StatusCreated, protocol.NewWebhook{Secret: secret.Text(), Webhook: made})
}

var webhookMembers = []string{"url", "name", "types"}

// readWebhookBody reads the body that makes or changes a webhook.
func readWebhookBody(req *request.Request, whole bool) (change session.WebhookChange, err error) {
	d, err := request.Open(req.Body())
	if err != nil {
		return change, err
	}
	for name, value := range d.Fields(webhookMembers) {
		switch name {
		case "url":
			change.URL = urlIn(d, value)
		case "name":
			text, _ := d.Text("/name", value, session.MaxIDBytes)
			change.Name = &text
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
	text, ok := d.Text("/url", value, session.MaxWebhookURL)
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
				list(session.EventTypes()))
		case !slices.Contains(types, kind):
			types = append(types, kind)
		}
	}
	return &types
}

// listWebhooks handles GET /v1/webhooks.
func (s *Server) listWebhooks(req *request.Request) error {
	find := func(l *request.List) ([]session.Webhook, error) {
		return s.Store.Webhooks(req.Ctx, req.Tenant, l.Page())
	}
	place := func(last session.Webhook) request.Place { return request.PlaceIn(last.CreatedAt, last.ID) }
	return request.AnswerList(req, "webhooks", find, request.AsIs, place)
}

// readWebhook handles GET /v1/webhooks/{webhook}.
func (s *Server) readWebhook(req *request.Request) error {
	found, err := s.Store.Webhook(req.Ctx, req.Tenant, req.PathID("webhook"))
	return answerWebhook(req, found, err)
}

func answerWebhook(req *request.Request, found session.Webhook, err error) error {
	if err != nil {
		return err
	}
	return req.JSON(http.StatusOK, found)
}

// changeWebhook handles PATCH /v1/webhooks/{webhook}.
func (s *Server) changeWebhook(req *request.Request) error {
	change, err := readWebhookBody(req, false)
	if err != nil {
		return err
	}
	changed, err := s.Store.ChangeWebhook(req.Ctx, req.Tenant, req.PathID("webhook"), change)
	return answerWebhook(req, changed, err)
}

// deleteWebhook handles DELETE /v1/webhooks/{webhook}.
func (s *Server) deleteWebhook(req *request.Request) error {
	return answerGone(req, s.Store.DeleteWebhook(req.Ctx, req.Tenant, req.PathID("webhook")))
}

// rotateWebhook handles POST /v1/webhooks/{webhook}/rotate: both secrets sign until the overlap is over.
func (s *Server) rotateWebhook(req *request.Request) error {
	overlap, err := readOverlap(req, session.SecretOverlap, session.MaxSecretOverlap)
	if err != nil {
		return err
	}
	secret := session.NewWebhookSecret()
	found, err := s.Store.RotateWebhook(req.Ctx, req.Tenant, req.PathID("webhook"), secret, overlap)
	if err != nil {
		return err
	}
	return req.JSON(http.StatusCreated, protocol.NewWebhook{Secret: secret.Text(), Webhook: found})
}

// enableWebhook handles POST /v1/webhooks/{webhook}/enable.
func (s *Server) enableWebhook(req *request.Request) error {
	found, err := s.Store.EnableWebhook(req.Ctx, req.Tenant, req.PathID("webhook"))
	return answerWebhook(req, found, err)
}

// testWebhook handles POST /v1/webhooks/{webhook}/test.
func (s *Server) testWebhook(req *request.Request) error {
	req.EmptyBody()
	if err := req.Err(); err != nil {
		return err
	}
	id := req.PathID("webhook")
	if err := s.Store.TestWebhook(req.Ctx, req.Tenant, id); err != nil {
		return err
	}
	req.W.Header().Set("Location", "/v1/webhooks/"+id.String())
	req.W.WriteHeader(http.StatusAccepted)
	return nil
}
