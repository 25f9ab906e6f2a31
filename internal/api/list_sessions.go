package api

import (
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/ingest"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/spelling"
)

// searchQuery are the parameters that say which sessions are wanted.
var searchQuery = []string{"metadata", "model", "format", "forked_from", "updated_after", "min_tokens",
	"policy_version_below", "over_window", "failing", "quarantined", "due"}

// sessionsQuery are the parameters of the list of sessions.
var sessionsQuery = slices.Concat(searchQuery, []string{"order"}, request.ListQuery)

// listSessions handles GET /v1/sessions.
func (s *Server) listSessions(req *request.Request) error {
	search := readSearch(req)
	name := "sessions"
	if !search.IsAll() { // a cursor belongs to its search
		asked, _ := json.Marshal(search)
		name += string(asked)
	}
	if search.IsAll() {
		find := func(l *request.List) ([]session.Session, error) {
			return req.Store.Sessions(req.Ctx, req.Tenant, l.Page())
		}
		place := func(last session.Session) request.Place { return request.PlaceIn(last.CreatedAt, last.Key) }
		return request.AnswerList(req, name, find, listedAnswer, place)
	}
	find := func(l *request.List) ([]session.Listed, error) {
		found, beyond, err := req.Store.FindSessions(req.Ctx, req.Tenant, search, l.Page())
		if beyond != nil {
			l.Beyond = new(request.PlaceIn(beyond.Time, beyond.ID))
		}
		return found, err
	}
	answer := func(l session.Listed) protocol.Session { return listedAnswer(l.Session) }
	place := func(last session.Listed) request.Place { return request.PlaceIn(last.At, last.Key) }
	return request.AnswerList(req, name, find, answer, place)
}

// readSearch reads which sessions are wanted.
func readSearch(req *request.Request) (search session.Search) {
	q := req.Query()
	search.Metadata = readMetadata(req, q)
	search.Model = q.Text("model", "")
	search.Format = session.Format(q.Text("format", ""))
	if q.Values.Has("format") && !search.Format.Valid() {
		q.Wrong("format", request.InvalidRequest, "must be %s, not %q", request.Formats(),
			spelling.Shorten(string(search.Format)))
	}
	search.ForkedFrom = q.Text("forked_from", "")
	search.UpdatedAfter = q.Time("updated_after", time.Time{})
	search.MinTokens = q.Integer("min_tokens", 1, math.MaxInt32, 0)
	search.PolicyVersionBelow = q.Integer("policy_version_below", 1, math.MaxInt32, 0)
	search.ByAppend = q.Choice("order", "created", "last_append") == "last_append"
	search.OverWindow = q.Flag("over_window")
	search.Failing, search.Quarantined = q.Flag("failing"), q.Flag("quarantined")
	search.Due = q.Flag("due")
	for _, name := range []string{"model", "forked_from"} {
		if text := q.Text(name, "x"); text == "" || len(text) > session.MaxIDBytes {
			q.Wrong(name, request.InvalidRequest, "must have 1 to %d bytes: leave it out for all", session.MaxIDBytes)
		}
	}
	return search
}

// readMetadata reads the metadata that is wanted, an object of strings in JSON.
func readMetadata(req *request.Request, q *request.Query) json.RawMessage {
	if !q.Values.Has("metadata") {
		return nil
	}
	d, err := request.Open([]byte(`{"metadata":` + q.Text("metadata", "") + `}`))
	if err != nil {
		q.Wrong("metadata", request.InvalidRequest, `must be an object of strings in JSON, such as {"user":"u1"}`)
		return nil
	}
	var metadata json.RawMessage
	for _, value := range d.Fields([]string{"metadata"}) {
		metadata = ingest.ReadMetadata(d, value)
	}
	req.Fail(d.Err())
	return metadata
}
