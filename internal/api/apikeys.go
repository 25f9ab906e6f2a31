package api

import (
	"net/http"
	"slices"
	"time"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/spelling"
)

// createKey handles POST /v1/keys: a key that may do what the key of the request may, or less.
func (s *Server) createKey(req *request.Request) error {
	wanted, err := readNewKey(req)
	if err != nil {
		return err
	}
	if missing := req.Caller.Lacks(wanted.Scopes...); missing != "" {
		return lacks(missing)
	}
	wanted.Text = session.NewAPIKey(req.Tenant)
	made, err := req.Store.CreateKey(req.Ctx, req.Tenant, wanted)
	if err != nil {
		return err
	}
	return answerKey(req, wanted.Text, made)
}

func answerKey(req *request.Request, text string, made session.APIKey) error {
	return req.JSON(http.StatusCreated, protocol.NewKey{Text: text, APIKey: made})
}

var keyMembers = []string{"name", "ttl_seconds", "scopes", "role"}

// readNewKey reads the body that makes a key of a tenant.
func readNewKey(req *request.Request) (wanted session.NewKey, err error) {
	d, err := request.Open(req.Body())
	if err != nil {
		return wanted, err
	}
	wanted = keyIn(d, "", rawjson.Value(d.Data))
	return wanted, d.Err()
}

// keyIn reads the object that asks for a key.
func keyIn(d *request.Document, at string, value rawjson.Span) (wanted session.NewKey) {
	given, problems := 0, len(d.Problems)
	for name, value := range d.Members(at, value, keyMembers) {
		switch name {
		case "name":
			wanted.Name = d.Name(at+"/name", value)
		case "ttl_seconds":
			wanted.Lifetime = lifetimeOf(d, at, value)
		case "scopes":
			wanted.Scopes = scopesIn(d, at+"/scopes", value, session.KeyScopes())
			given++
		case "role":
			wanted.Scopes = scopesOfRole(d, at+"/role", value)
			given++
		}
	}
	if given > 1 || len(wanted.Scopes) == 0 && len(d.Problems) == problems {
		d.Wrong(at+"/scopes", request.InvalidRequest, "a key has at least one scope or a role, and not both: there "+
			"are the scopes %s and the roles %s", request.Names(session.KeyScopes()), request.Names(session.Roles()))
	}
	return wanted
}

func lifetimeOf(d *request.Document, at string, value rawjson.Span) *time.Duration {
	seconds := d.Integer(at+"/ttl_seconds", value, 1, int64(session.MaxKeyLifetime/time.Second))
	return new(time.Duration(seconds) * time.Second)
}

func scopesOfRole(d *request.Document, at string, value rawjson.Span) []session.Scope {
	text, ok := d.Text(at, value, session.MaxIDBytes)
	scopes := session.Role(text).Scopes()
	if ok && scopes == nil {
		d.Wrong(at, request.InvalidRequest, "there is no role %q; there are %s", spelling.Shorten(text),
			request.Names(session.Roles()))
	}
	return scopes
}

// scopesIn reads scopes, each of them once, of those that there are.
func scopesIn(d *request.Document, array string, value rawjson.Span, known []session.Scope) (scopes []session.Scope) {
	spans, _ := d.Array(array, value)
	for i, span := range spans {
		at := request.PointerTo(array, i)
		text, ok := d.Text(at, span, session.MaxIDBytes)
		scope := session.Scope(text)
		switch {
		case !ok:
		case !slices.Contains(known, scope):
			d.Wrong(at, request.InvalidRequest, "there is no scope %q; there are %s", spelling.Shorten(text),
				request.Names(known))
		case !slices.Contains(scopes, scope):
			scopes = append(scopes, scope)
		}
	}
	return scopes
}

// readOwnKey handles GET /v1/key: what the key of the request is, for every key.
func (s *Server) readOwnKey(req *request.Request) error {
	found, err := req.Store.OwnKey(req.Ctx, req.Tenant, req.Caller.APIKey)
	return request.AnswerFound(req, found, err, request.AsIs)
}

// readOwnOperatorKey handles GET /v1/admin/key.
func (s *Server) readOwnOperatorKey(req *request.Request) error {
	found, err := req.Store.OperatorKey(req.Ctx, req.Caller.APIKey)
	return request.AnswerFound(req, found, err, request.AsIs)
}

// listKeys handles GET /v1/keys.
func (s *Server) listKeys(req *request.Request) error {
	find := func(l *request.List) ([]session.APIKey, error) { return req.Store.Keys(req.Ctx, req.Tenant, l.Page()) }
	return request.AnswerList(req, "keys", find, request.AsIs, placeOfKey)
}

func placeOfKey(last session.APIKey) request.Place { return request.PlaceIn(last.CreatedAt, last.ID) }

// rotateKey handles POST /v1/keys/{key}/rotate: another key takes the place of one, which lives on for a while.
func (s *Server) rotateKey(req *request.Request) error {
	overlap, err := request.Overlap(req, session.KeyOverlap, session.MaxKeyOverlap)
	if err != nil {
		return err
	}
	text := session.NewAPIKey(req.Tenant)
	made, err := req.Store.RotateKey(req.Ctx, req.Tenant, req.PathID("key"), text, overlap,
		func(scopes []session.Scope) error {
			if missing := req.Caller.Lacks(scopes...); missing != "" {
				return lacks(missing)
			}
			return nil
		})
	if err != nil {
		return err
	}
	return answerKey(req, text, made)
}

// revokeKey handles DELETE /v1/keys/{key}. Doing it twice changes nothing.
func (s *Server) revokeKey(req *request.Request) error {
	return request.AnswerGone(req, req.Store.RevokeKey(req.Ctx, req.Tenant, req.PathID("key")))
}

// createOperatorKey handles POST /v1/admin/keys.
func (s *Server) createOperatorKey(req *request.Request) error {
	d, err := request.Open(req.Body())
	if err != nil {
		return err
	}
	name, lifetime := "", (*time.Duration)(nil)
	for member, value := range d.Fields([]string{"name", "ttl_seconds"}) {
		switch member {
		case "name":
			name = d.Name("/name", value)
		case "ttl_seconds":
			lifetime = lifetimeOf(d, "", value)
		}
	}
	if err := d.Err(); err != nil {
		return err
	}
	text := session.NewOperatorKey()
	made, err := req.Store.CreateOperatorKey(req.Ctx, name, text, lifetime)
	if err != nil {
		return err
	}
	return req.JSON(http.StatusCreated, protocol.NewOperatorKey{Text: text, OperatorKey: made})
}

// listOperatorKeys handles GET /v1/admin/keys.
func (s *Server) listOperatorKeys(req *request.Request) error {
	find := func(l *request.List) ([]session.OperatorKey, error) {
		return req.Store.OperatorKeys(req.Ctx, l.Page())
	}
	place := func(last session.OperatorKey) request.Place { return request.PlaceIn(last.CreatedAt, last.ID) }
	return request.AnswerList(req, "keys of operators", find, request.AsIs, place)
}

// revokeOperatorKey handles DELETE /v1/admin/keys/{key}. Doing it twice changes nothing.
func (s *Server) revokeOperatorKey(req *request.Request) error {
	return request.AnswerGone(req, req.Store.RevokeOperatorKey(req.Ctx, req.PathID("key")))
}
