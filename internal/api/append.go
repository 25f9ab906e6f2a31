package api

import (
	"cmp"
	"errors"
	"net/http"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/ingest"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// appendMessages handles POST /v1/sessions/{id}/messages.
func (s *Server) appendMessages(req *request.Request) error {
	want, err := s.readReturned(req)
	if err != nil {
		return err
	}
	viewing := want.viewing()
	if viewing != nil {
		defer freeView(viewing.Into)
	}
	a, done, replayed, err := s.readAndAppend(req, viewing)
	if err != nil {
		return err
	}
	req.Replayed(replayed)
	done.UsageIgnored, done.Warnings = a.UsageIgnored, a.Warnings
	status := http.StatusCreated
	if done.Replayed {
		status = http.StatusOK
	}
	if want == nil {
		return req.JSON(status, done)
	}
	return s.answerAppended(req, want, viewing, status, done)
}

// readAndAppend takes the session for what it was when it was read last, and reads it only if that does not fit.
func (s *Server) readAndAppend(req *request.Request, viewing *postgres.Viewing) (
	a session.Append, done session.Appended, replayed bool, err error,
) {
	if found, known := s.bases.Get(req.Address()); known {
		if a, err = s.readAppend(req, &found); err == nil {
			done, replayed, err = req.Store.AppendAndView(req.Ctx, a, viewing)
			if !errors.Is(err, session.ErrOtherBasis) {
				return a, done, replayed, err
			}
		}
		s.bases.Remove(req.Address())
	}
	if a, err = s.readAppend(req, nil); err == nil {
		done, replayed, err = req.Store.AppendAndView(req.Ctx, a, viewing)
	}
	return a, done, replayed, err
}

// strictParameter makes errors of what a request would be warned of.
const strictParameter = "strict"

// readAppend decodes the request, then resolves what it leaves to the session: its format, and how its tokens are
// counted. It reports everything that is wrong with the body, and with each message, at once. basis is what the session
// is taken for; nil reads it if need be.
func (s *Server) readAppend(req *request.Request, basis *session.Basis) (a session.Append, err error) {
	a.Session, a.Idempotency = req.Address(), req.Idempotency()
	strict := req.Query().Flag(strictParameter)
	var b *appendBody
	size := int64(len(req.Body()))
	err = req.Heavy(size, func() (err error) {
		b, err = decodeAppend(req.Body(), oneBatch)
		return err
	})
	if err != nil {
		return a, err
	}
	a.Basis = basis
	if err = s.settleSession(req, &a, b); err != nil {
		return a, err
	}
	a.Format, a.ExpectedSeq = b.Format, b.expected
	err = req.Heavy(size, func() (err error) {
		b.Tells, b.Strict = true, strict
		a.Messages, err = b.named()
		a.Usage, a.UsageIgnored = b.usage.of(b.Format, a.Messages)
		return err
	})
	if err == nil {
		err = s.tell(req, &a, b, basis)
	}
	if err != nil {
		return a, err
	}
	return a, s.counter.Count(req.Ctx, &a)
}

// tell sets the warnings of what views for the session's model will repair. The session is read only if something may
// be repaired.
func (s *Server) tell(req *request.Request, a *session.Append, b *appendBody, basis *session.Basis) error {
	if b.Doubts() {
		model, err := s.modelOf(req, a, basis)
		if err == nil {
			err = req.Heavy(int64(len(req.Body())), func() error { return b.Tell(model) })
		}
		if err != nil {
			return err
		}
	}
	a.Warnings = b.Warnings
	return nil
}

// modelOf returns the model of the session that is appended to, "" for that of none. An append to a session that is
// taken for what it was holds only if it still is that.
func (s *Server) modelOf(req *request.Request, a *session.Append, basis *session.Basis) (string, error) {
	if basis != nil {
		a.Basis = basis
		return basis.Model, nil
	}
	found, err := req.Store.Basis(req.Ctx, a.Session)
	switch {
	case errors.Is(err, session.ErrNotFound):
		if a.Make != nil && a.Make.Model != nil {
			found.Model = *a.Make.Model
		}
		return found.Model, nil
	case err == nil && found.Format != "":
		s.bases.Add(a.Session, found)
	}
	return found.Model, err
}

// settleSession resolves what a body leaves to the session, or says of the session that it makes: its format, and the
// settings that an existing one must have.
func (s *Server) settleSession(req *request.Request, a *session.Append, b *appendBody) error {
	set, err := s.readMade(req, b)
	if err != nil || set == nil && b.Format != "" {
		a.Basis = nil
		return err
	}
	var found session.Basis
	if a.Basis != nil {
		found = *a.Basis
	} else if found, err = req.Store.Basis(req.Ctx, a.Session); err == nil && found.Format != "" {
		s.bases.Add(a.Session, found)
	}
	switch {
	case set == nil:
	case errors.Is(err, session.ErrNotFound):
		err = nil
		for _, w := range set.Warnings {
			b.Warn("/session"+w.Pointer, w.Code, "%s", w.Detail)
		}
	case err == nil:
		err = set.Differs(found)
	}
	if set != nil {
		a.Make = &set.Change
		if set.Format != nil && found.Format == "" {
			found.Format = *set.Format
		}
	}
	b.Format = cmp.Or(b.Format, found.Format)
	if err == nil && b.Format == "" {
		err = session.Invalid("/format", request.InvalidRequest, "the session has no format yet: it must be %s",
			request.Formats())
	}
	return err
}

// readMade reads the settings of the session that an append makes if there is none; nil if it makes none.
func (s *Server) readMade(req *request.Request, b *appendBody) (*ingest.Settings, error) {
	if b.session == (rawjson.Span{}) {
		return nil, nil
	}
	set, err := ingest.DecodeSettings(b.session.Of(b.Data), ingest.AppendedTo)
	if err == nil {
		err = s.resolveSettings(req, set, s.tenantLayers)
	}
	if invalid := new(session.InvalidError); errors.As(err, &invalid) {
		b.Add("/session", err)
		err = b.Err()
	}
	return set, err
}

// appendBody is the body of an append.
type appendBody struct {
	ingest.Batch
	clientIDs rawjson.Span
	session   rawjson.Span // settings of the session that is made if there is none
	expected  *int64
	usage     *reported
	model     string // of the session, if that was read
}

var wholeFields = []string{"format", "messages", "client_ids", "expected_seq", "usage"}

// batchRule is how many messages a body may have, what to do instead of sending more, and what else it may have.
type batchRule struct {
	limit   int
	instead string   // "" for several batches
	fields  []string // of the body
}

var oneBatch = batchRule{limit: session.MaxBatchMessages, fields: append(wholeFields, "session")}

// decodeAppend reads the body's members. Their problems come before those of the messages, whose format may not be
// known yet.
func decodeAppend(body []byte, rule batchRule) (*appendBody, error) {
	b := &appendBody{}
	b.Instead = rule.instead
	if err := b.Open(body); err != nil {
		return nil, err
	}
	var messages rawjson.Span
	for name, value := range b.Fields(rule.fields) {
		switch name {
		case "messages":
			messages = value
		case "client_ids":
			b.clientIDs = value
		default:
			b.read(name, value)
		}
	}
	switch {
	case len(b.Problems) > 0:
	case messages == (rawjson.Span{}):
		b.Wrong("/messages", request.InvalidRequest, "messages is missing: it must be an array of 1 to %d messages",
			rule.limit)
	default:
		b.List("/messages", messages, rule.limit)
	}
	return b, b.Err()
}

// read reads a member that is not about the messages one by one.
func (b *appendBody) read(name string, value rawjson.Span) {
	switch name {
	case "format":
		b.Format = b.ReadFormat(value)
	case "expected_seq":
		b.expected = new(b.Integer("/expected_seq", value, 0, session.MaxSessionMessages))
	case "session":
		b.session = value
	case "usage":
		b.usage = readUsage(&b.Document, value)
	}
}

// named reads the messages and gives them their client ids.
func (b *appendBody) named() ([]session.NewMessage, error) {
	messages, _ := b.Messages()
	if b.clientIDs == (rawjson.Span{}) {
		return messages, b.Err()
	}
	spans, ok := b.Array("/client_ids", b.clientIDs)
	if ok && len(spans) != len(messages) {
		b.Wrong("/client_ids", request.InvalidRequest,
			"must contain a string or null for each of the %d messages, not %d entries", len(messages), len(spans))
		return nil, b.Err()
	}
	first := make(map[string]int, len(spans))
	for i, span := range spans {
		if b.IsNull(span) {
			continue
		}
		pointer := request.PointerTo("/client_ids", i)
		id, ok := b.Text(pointer, span, session.MaxClientIDBytes)
		other, twice := first[id]
		switch {
		case ok && id == "":
			b.Wrong(pointer, request.InvalidRequest, "must not be empty: null is no client_id")
		case ok && twice:
			b.Wrong(pointer, request.InvalidRequest,
				"message %d has the client_id of message %d: each must name one message", i, other)
		}
		first[id] = i
		messages[i].ClientID = id
	}
	return messages, b.Err()
}
