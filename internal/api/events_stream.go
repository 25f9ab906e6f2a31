package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

const eventStream = "text/event-stream"

// How often a stream without events shows that it lives, and how often its key is looked at.
const (
	heartbeat   = 15 * time.Second
	checkStream = keyLifetime
)

// eventWriter sends the events of a tenant as they come. Between two pages it holds neither memory nor a connection of
// the database; a reader that takes no page for requestTimeout is cut off.
type eventWriter struct {
	*request.Request
	s      *Server
	route  request.Route
	filter postgres.EventFilter
	sent   time.Time // the last bytes
}

// streamEvents answers with events until the client goes, its key ends or the process stops.
func (s *Server) streamEvents(req *request.Request, f postgres.EventFilter) error {
	w := &eventWriter{Request: req, s: s, filter: f}
	w.route = request.Route{Method: http.MethodGet, Access: request.Tenants(session.SessionsRead)}
	place, err := s.streams.enter(req.Tenant)
	if err != nil {
		return err
	}
	defer s.streams.leave(place)
	_ = http.NewResponseController(req.Raw).SetReadDeadline(time.Time{}) // the body was read
	h := req.W.Header()
	h["Content-Type"] = []string{eventStream}
	h["Cache-Control"] = request.NoStore
	h["X-Accel-Buffering"] = []string{"no"}
	req.W.WriteHeader(http.StatusOK)
	if req.R.Method == http.MethodHead {
		return nil
	}
	if err := w.send([]byte("retry: 1000\n\n")); err != nil {
		return err
	}
	return w.follow(place)
}

// follow sends what there is, and waits for more.
func (w *eventWriter) follow(place *streamPlace) error {
	check := time.NewTicker(checkStream)
	defer check.Stop()
	for {
		select {
		case <-place.news:
			if closed, err := w.catchUp(check.C); closed || err != nil {
				return err
			}
		case <-check.C:
			if closed, err := w.closeIfRefused(); closed || err != nil {
				return err
			}
			if time.Since(w.sent) < heartbeat {
				continue
			}
			if err := w.send([]byte(": nothing new\n\n")); err != nil {
				return err
			}
		case <-w.s.streams.stopped:
			return w.close("draining")
		case <-w.Base.Done():
			return w.Sent(w.Base.Err())
		}
	}
}

// catchUp sends page after page until there is no more. What the database refuses for a moment comes later. A client
// may take its time for each page: between them, check says when to look whether it may still read.
func (w *eventWriter) catchUp(check <-chan time.Time) (closed bool, err error) {
	for {
		found, err := w.read()
		if err != nil {
			w.s.streams.again(w.Tenant)
			return false, w.Base.Err()
		}
		if err := w.sendPage(found.Page); err != nil {
			return false, err
		}
		w.filter.After = found.Next(w.filter)
		if len(found.Page) < w.filter.Limit || w.s.draining.Load() {
			return false, nil
		}
		select {
		case <-check:
			if closed, err = w.closeIfRefused(); closed || err != nil {
				return closed, err
			}
		default:
		}
	}
}

// closeIfRefused closes the stream if the caller may not read any more, which it reports.
func (w *eventWriter) closeIfRefused() (closed bool, err error) {
	reason := w.refused()
	if reason == "" {
		return false, nil
	}
	return true, w.close(reason)
}

func (w *eventWriter) read() (postgres.Events, error) {
	ctx, cancel := context.WithTimeout(w.Base, requestTimeout)
	defer cancel()
	return w.Store.Events(ctx, w.Tenant, w.filter)
}

// sendPage sends events as server-sent events: their numbers as ids, their types as events.
func (w *eventWriter) sendPage(page []session.Event) error {
	if len(page) == 0 {
		return nil
	}
	buf := request.NewBuffer()
	defer buf.Free()
	for i := range page {
		data, err := json.Marshal(&page[i])
		if err != nil {
			return err
		}
		buf.B = append(buf.B, "id: "...)
		buf.B = strconv.AppendInt(buf.B, page[i].N, 10)
		buf.B = append(append(buf.B, "\nevent: "...), page[i].Type...)
		buf.B = append(append(append(buf.B, "\ndata: "...), data...), "\n\n"...)
	}
	return w.send(buf.B)
}

// refused returns why the caller may not read any more, as the code of an error; "" if they may.
func (w *eventWriter) refused() string {
	ctx, cancel := context.WithTimeout(w.Base, requestTimeout)
	defer cancel()
	w.Ctx = ctx
	err := w.s.authenticate(w.Request)
	if err == nil {
		err = authorize(w.Request, &w.route)
	}
	var known *request.Failure
	if err == nil || !errors.Is(err, session.ErrUnauthorized) && !errors.As(err, &known) {
		return "" // or the database does not answer
	}
	return failureOf(err).Code
}

// close says why the stream ends.
func (w *eventWriter) close(reason string) error {
	return w.send([]byte(`event: stream.closed` + "\n" + `data: {"reason":"` + reason + `"}` + "\n\n"))
}

func (w *eventWriter) send(b []byte) error {
	w.sent = time.Now()
	w.WriteBy(w.sent.Add(requestTimeout))
	_, err := w.W.Write(b)
	if err == nil {
		err = http.NewResponseController(w.Raw).Flush()
	}
	return w.Sent(err)
}
