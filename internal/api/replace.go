package api

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/ingest"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

var errNoMessage = request.Fail(request.NotFound, "there is no such session, or no message of its views has this "+
	"client_id: GET /v1/sessions/{id}/messages lists all messages, PUT sends the whole array")

// wholeArray is what an array of messages may have that replaces those of a session.
var wholeArray = batchRule{
	limit: session.MaxWholeMessages, instead: "send what is new with POST, and a message that has changed with PATCH",
	fields: wholeFields,
}

// putMessages handles PUT /v1/sessions/{id}/messages.
func (s *Server) putMessages(req *request.Request) error {
	return s.replace(req, func() (next, error) {
		b, err := s.decodeWhole(req)
		if err != nil {
			return nil, err
		}
		a := session.Append{
			Session: req.Address(), Format: b.Format, ExpectedSeq: b.expected, Idempotency: req.Idempotency(),
		}
		b.Tells, b.Strict = true, req.Query().Flag(strictParameter)
		err = req.Heavy(int64(len(b.Data)), func() (err error) {
			if a.Messages, err = b.named(); err == nil {
				err = b.nameByOwn(a.Messages)
			}
			if err == nil {
				err = b.Tell(b.model)
			}
			a.Usage, a.UsageIgnored = b.usage.of(b.Format, a.Messages)
			a.Warnings = b.Warnings
			return err
		})
		if err != nil {
			return nil, err
		}
		return func() (session.Replacement, error) { return ingest.Differences(req.Ctx, req.Store, a) }, nil
	})
}

// decodeWhole reads the members of a whole array, which has the session's format.
func (s *Server) decodeWhole(req *request.Request) (b *appendBody, err error) {
	err = req.Heavy(int64(len(req.Body())), func() (err error) {
		b, err = decodeAppend(req.Body(), wholeArray)
		return err
	})
	if err == nil {
		err = s.settleOwn(req, b)
	}
	return b, err
}

// settleOwn reads the session of the request, and gives the body its format, which the request may name, and model.
func (s *Server) settleOwn(req *request.Request, b *appendBody) error {
	found, err := req.Store.Session(req.Ctx, req.Address())
	named := b.Format
	switch {
	case err != nil:
		return err
	case found.Format == "" && named == "":
		return session.Invalid("/format", request.InvalidRequest,
			"the session has no format yet: it must be %s", request.Formats())
	case found.Format != "" && named != "" && named != found.Format:
		return session.Invalid("/format", request.InvalidRequest, "the session's format is %s, not %s: only POST "+
			"takes another, because messages are compared as they were sent", found.Format, named)
	}
	b.Format, b.model = cmp.Or(named, found.Format), found.Model
	return nil
}

// nameByOwn gives messages of the AI SDK the ids that they have themselves, unless the body has client_ids.
func (b *appendBody) nameByOwn(messages []session.NewMessage) error {
	if b.Format != session.AISDK || b.clientIDs != (rawjson.Span{}) {
		return b.Err()
	}
	first := make(map[string]int, len(messages))
	for i := range messages {
		pointer := request.PointerTo("/messages", i)
		id := ownID(&b.Document, pointer, b.Spans[i])
		if other, twice := first[id]; twice && id != "" {
			b.Wrong(pointer+"/id", request.InvalidRequest,
				"message %d has the id of message %d: each must name one message", i, other)
		}
		first[id] = i
		messages[i].ClientID = id
	}
	return b.Err()
}

// ownID returns the id that a UIMessage has itself, "" for none.
func ownID(d *request.Document, pointer string, message rawjson.Span) (id string) {
	for key, value := range rawjson.Members(d.Data, message.Start) {
		if rawjson.KeyIs(d.Data, key, "id") && d.Data[value.Start] == '"' {
			id, _ = d.Text(pointer+"/id", value, session.MaxClientIDBytes)
		}
	}
	return id
}

// patchMessage handles PATCH /v1/sessions/{id}/messages/{message}, which names a message by its client id.
func (s *Server) patchMessage(req *request.Request) error {
	return s.replace(req, func() (next, error) {
		named := clientIDOf(req)
		b, err := s.decodeOne(req)
		if err != nil {
			return nil, err
		}
		if id := ownID(&b.Document, "/message", b.Spans[0]); b.Format == session.AISDK && id != "" && id != named {
			b.Wrong("/message/id", request.InvalidRequest, "the path names message %q, not %q", named, id)
		}
		if b.Err() != nil {
			return nil, b.Err()
		}
		b.Tells, b.Strict = true, req.Query().Flag(strictParameter)
		m := b.One("/message")
		if err := b.Tell(b.model); err != nil {
			return nil, err
		}
		m.ClientID = named
		return func() (session.Replacement, error) {
			a := session.Append{
				Session: req.Address(), Format: b.Format, Messages: []session.NewMessage{m}, ExpectedSeq: b.expected,
				Idempotency: req.Idempotency(), Warnings: b.Warnings,
			}
			a.Usage, a.UsageIgnored = b.usage.of(b.Format, a.Messages)
			found, err := s.followed(req, named)
			if err != nil {
				return session.Replacement{}, err
			}
			return found.Change(req.Ctx, req.Store, a)
		}, nil
	})
}

// clientIDOf returns the client id that the path names.
func clientIDOf(req *request.Request) string {
	id, err := url.PathUnescape(req.Param("message"))
	if err != nil || id == "" || len(id) > session.MaxClientIDBytes {
		req.Fail(session.ErrNotFound)
	}
	return id
}

var messageFields = []string{"format", "message", "expected_seq", "usage"}

// decodeOne reads the members of a body with one message, which has the session's format.
func (s *Server) decodeOne(req *request.Request) (*appendBody, error) {
	b := &appendBody{}
	if err := b.Open(req.Body()); err != nil {
		return nil, err
	}
	for name, value := range b.Fields(messageFields) {
		if name == "message" {
			b.Spans = []rawjson.Span{value}
			continue
		}
		b.read(name, value)
	}
	if b.Spans == nil && len(b.Problems) == 0 {
		b.Wrong("/message", request.InvalidRequest, "message is missing: it must be the message as it is now")
	}
	if err := b.Err(); err != nil {
		return nil, err
	}
	return b, s.settleOwn(req, b)
}

// followed reads a message of the session's views and all messages after it. It refuses more than one batch of them.
func (s *Server) followed(req *request.Request, clientID string) (f ingest.Followed, err error) {
	seq, err := req.Store.Named(req.Ctx, req.Address(), clientID)
	if err != nil {
		return f, err
	}
	f.Outline, err = req.Store.Outline(req.Ctx, req.Address(), seq, session.MaxBatchMessages+2, true)
	switch {
	case err != nil:
		return f, err
	case len(f.Entries) == 0 || f.Entries[0].Seq != seq:
		return f, postgres.ErrMoved
	case len(f.Entries) == 1:
		return f, nil
	}
	r := postgres.Range{After: seq, Limit: len(f.Entries), Bytes: session.MaxBodyBytes}
	f.Behind, err = req.Page(r, func(r postgres.Range) (found []session.Message, err error) {
		_, found, err = req.Store.Messages(req.Ctx, req.Address(), r)
		return found, err
	})
	if err == nil && (len(f.Entries) > session.MaxBatchMessages+1 || len(f.Behind) < len(f.Entries)-1) {
		err = session.Invalid("message", request.InvalidRequest, "more than %d messages or %d bytes are behind "+
			"message %q: PUT sends the whole array", session.MaxBatchMessages, session.MaxBodyBytes, clientID)
	}
	return f, err
}

// next makes a replacement for the log as it is now.
type next func() (session.Replacement, error)

// replacementAttempts is how often a replacement is made again because others write to the session.
const replacementAttempts = 10

// replace answers with what a replacement did. It is made without the session's lock, and made again if the log has
// changed meanwhile.
func (s *Server) replace(req *request.Request, read func() (next, error)) error {
	var done session.Replaced
	replayed, err := req.Store.Answered(req.Ctx, req.Tenant, req.Idempotency(), &done)
	if err == nil && !replayed {
		var made next
		if made, err = read(); err == nil {
			done, replayed, err = s.replaceNow(req, made)
		}
	}
	if err != nil {
		return err
	}
	req.Replayed(replayed)
	return req.JSON(http.StatusOK, done)
}

func (s *Server) replaceNow(req *request.Request, made next) (done session.Replaced, replayed bool, err error) {
	for range replacementAttempts {
		var r session.Replacement
		if r, err = made(); err == nil {
			err = s.countAppends(req, &r)
		}
		if err == nil {
			done, replayed, err = req.Store.Replace(req.Ctx, r)
		}
		if !errors.Is(err, postgres.ErrMoved) {
			return done, replayed, err
		}
	}
	return done, false, session.ErrSessionBusy
}

func (s *Server) countAppends(req *request.Request, r *session.Replacement) error {
	for i := range r.Appends {
		if err := s.counter.Count(req.Ctx, &r.Appends[i]); err != nil {
			return err
		}
	}
	return nil
}
