package api

import (
	"net/http"
	"slices"
	"time"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

var tokenMembers = []string{"name", "ttl_seconds", "scopes"}

// createToken handles POST /v1/sessions/{id}/tokens. No body asks for an hour of reading.
func (s *Server) createToken(req *request.Request) error {
	wanted := session.NewToken{Scopes: []session.Scope{session.ScopeRead}, Lifetime: session.DefaultTokenLifetime}
	if body := req.Body(); len(body) > 0 {
		d, err := request.Open(body)
		if err != nil {
			return err
		}
		for name, value := range d.Fields(tokenMembers) {
			readTokenMember(d, &wanted, name, value)
		}
		if err := d.Err(); err != nil {
			return err
		}
	}
	if missing := req.Caller.Lacks(session.OfTokens(wanted.Scopes)...); missing != "" {
		return lacks(missing) // nobody gives away more than they have
	}
	wanted.Text, wanted.MadeBy = session.NewTokenText(req.Tenant), req.KeyDigest
	at := req.Address()
	made, err := req.Store.CreateToken(req.Ctx, at, wanted)
	if err != nil {
		return err
	}
	req.W.Header().Set("Location", "/v1/sessions/"+escapeID(at.ID)+"/tokens/"+made.ID.String())
	return req.JSON(http.StatusCreated, protocol.NewToken{Text: wanted.Text, Token: made})
}

func readTokenMember(d *request.Document, wanted *session.NewToken, name string, value rawjson.Span) {
	switch name {
	case "name":
		wanted.Name = d.Name("/name", value)
	case "ttl_seconds":
		seconds := d.Integer("/ttl_seconds", value, 1, int64(session.MaxTokenLifetime/time.Second))
		wanted.Lifetime = time.Duration(seconds) * time.Second
	case "scopes":
		wanted.Scopes = scopesOf(d, value)
	}
}

// scopesOf reads the scopes of a token.
func scopesOf(d *request.Document, value rawjson.Span) []session.Scope {
	scopes := scopesIn(d, "/scopes", value, session.TokenScopes())
	if !d.Has("/scopes") && len(d.Problems) == 0 && !slices.Contains(scopes, session.ScopeRead) {
		d.Wrong("/scopes", request.InvalidRequest, "every token reads: add %q", session.ScopeRead)
	}
	return scopes
}

// listTokens handles GET /v1/sessions/{id}/tokens.
func (s *Server) listTokens(req *request.Request) error {
	at := req.Address()
	find := func(l *request.List) ([]session.Token, error) { return req.Store.Tokens(req.Ctx, at, l.Page()) }
	place := func(last session.Token) request.Place { return request.PlaceIn(last.CreatedAt, last.ID) }
	return request.AnswerList(req, "tokens of "+at.ID, find, request.AsIs, place)
}

// revokeToken handles DELETE /v1/sessions/{id}/tokens/{token}. Doing it twice changes nothing, with an Idempotency-Key
// or without.
func (s *Server) revokeToken(req *request.Request) error {
	return request.AnswerGone(req, req.Store.RevokeToken(req.Ctx, req.Address(), req.PathID("token")))
}
