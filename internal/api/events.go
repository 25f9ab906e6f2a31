package api

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/spelling"
)

var eventsQuery = []string{"after", "types", "session", "limit"}

const (
	maxEventPage = 500
	eventPage    = 100

	// fromNow is the place of a stream that does not say from where it continues.
	fromNow = -1
)

// readEvents handles GET /v1/events: a page of the tenant's events, or all from now on as a stream.
func (s *Server) readEvents(req *request.Request) error {
	streams := strings.Contains(req.R.Header.Get("Accept"), eventStream)
	q := req.Query()
	start := int64(0)
	if streams {
		start = lastEventID(req)
	}
	f := postgres.EventFilter{
		After: q.Integer("after", 0, maxEventNumber, start), Types: eventTypesIn(q), Session: q.Text("session", ""),
		Limit: int(q.Integer("limit", 1, maxEventPage, eventPage)),
	}
	if err := req.Err(); err != nil {
		return err
	}
	first := f
	if streams {
		first.Limit = 0 // the stream reads them itself
	}
	found, err := req.Store.Events(req.Ctx, req.Tenant, first)
	if err != nil {
		return err
	}
	if f.After > found.Head {
		q.Wrong("after", request.InvalidRequest, "is beyond the newest event, %d: if the database was restored from a "+
			"backup, begin with after=0", found.Head)
		return req.Err()
	}
	if streams {
		if f.After == fromNow {
			f.After = found.Head
		}
		return s.streamEvents(req, f)
	}
	return req.JSON(http.StatusOK, protocol.Events{
		Data: append([]session.Event{}, found.Page...), After: found.Next(f), HasMore: found.Next(f) < found.Head,
		Newest: found.Head, Oldest: found.Oldest,
	})
}

// maxEventNumber bounds the numbers of events.
const maxEventNumber = 1 << 53

// lastEventID returns the place from which a client continues whose stream was cut.
func lastEventID(req *request.Request) int64 {
	text := req.R.Header.Get("Last-Event-ID")
	if text == "" {
		return fromNow
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > maxEventNumber {
		req.Query().Wrong("Last-Event-ID", request.InvalidRequest, "must be the id of an event of GET /v1/events")
	}
	return n
}

// eventTypesIn reads the types that the caller wants, nil for all.
func eventTypesIn(q *request.Query) (types []session.EventType) {
	text := q.Text("types", "")
	if text == "" {
		return nil
	}
	for name := range strings.SplitSeq(text, ",") {
		kind := session.EventType(strings.TrimSpace(name))
		if !slices.Contains(session.EventTypes(), kind) {
			q.Wrong("types", request.InvalidRequest, "there is no event %q; there are %s", spelling.Shorten(name),
				request.Names(session.EventTypes()))
		}
		types = append(types, kind)
	}
	return types
}
