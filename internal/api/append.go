package api

import (
	"errors"
	"net/http"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// appendMessages is POST /v1/sessions/{id}/messages.
func (s *Server) appendMessages(req *request.Request) error {
	req.Query()
	at := req.Address()
	body := req.Body()
	a := session.Append{Session: at}
	a.Idempotency = req.Idempotency()
	if err := req.Err(); err != nil {
		return err
	}
	if err := s.decodeAppend(req, &a, body); err != nil {
		return err
	}
	if err := s.countExactly(req, &a); err != nil {
		return err
	}
	done, replayed, err := s.Store.Append(req.Ctx, a)
	if err != nil {
		return err
	}
	req.Replayed(a.Idempotency, replayed)
	if done.Replayed {
		return req.JSON(http.StatusOK, done)
	}
	return req.JSON(http.StatusCreated, done)
}

// envelope is the depth of the object and the array that a batch's messages stand in.
const envelope = 2

// batchLimits hold for a whole batch. A body of one message's values is well in most cases; see tooComplex for the others.
var batchLimits = rawjson.Limits{Depth: session.MaxJSONDepth + envelope, Nodes: session.MaxJSONNodes, NumberBytes: session.MaxNumberBytes}

// appendBody is the body of an append, its members as spans.
type appendBody struct {
	request.Document
	format              session.Format
	messages, clientIDs rawjson.Span
	expected            *int64
	usage               *session.Usage
	large               bool // it has more values than one message may have: each must be counted
}

var appendFields = []string{"format", "messages", "client_ids", "expected_seq", "usage"}

// decodeAppend reads the body of an append into a, whose messages then point into it. It reports everything that is
// wrong with the body, and with each message, at once.
func (s *Server) decodeAppend(req *request.Request, a *session.Append, body []byte) error {
	d := appendBody{Document: request.Document{Data: body}}
	if err := d.read(); err != nil {
		return err
	}
	a.Format, a.ExpectedSeq, a.Usage = d.format, d.expected, d.usage
	if a.Format == "" {
		found, err := s.Store.Session(req.Ctx, a.Session)
		if err != nil {
			return err
		}
		if a.Format = found.Format; a.Format == "" {
			return session.Invalid("/format", request.InvalidRequest, "the session has no format yet: say %s", request.Formats())
		}
	}
	spans, err := d.batch()
	if err != nil {
		return err
	}
	a.Messages = make([]session.NewMessage, len(spans))
	for i, span := range spans {
		d.message(i, a.Format, span, &a.Messages[i])
	}
	d.assignClientIDs(a.Messages)
	return d.Err()
}

// read checks the body and finds its members.
func (d *appendBody) read() error {
	if err := d.checkBatch(); err != nil {
		return err
	}
	d.readMembers()
	return d.Err()
}

// checkBatch checks the body as JSON, by the limits of a batch.
func (d *appendBody) checkBatch() error {
	err := rawjson.Check(d.Data, batchLimits)
	var syntax *rawjson.SyntaxError
	if errors.As(err, &syntax) && syntax.Limit == "nodes" {
		d.large = true
	}
	limits := batchLimits
	if d.large {
		limits.Nodes = 0
	}
	if d.large || err != nil {
		return d.Check(limits)
	}
	return nil
}

func (d *appendBody) readMembers() {
	for name, value := range d.Members("", rawjson.Value(d.Data), appendFields) {
		switch name {
		case "format":
			d.format = d.Format(value)
		case "messages":
			d.messages = value
		case "client_ids":
			d.clientIDs = value
		case "expected_seq":
			n := d.Integer("/expected_seq", value, 0, session.MaxSessionMessages)
			d.expected = &n
		case "usage":
			d.usage = readUsage(&d.Document, value)
		}
	}
	if d.messages == (rawjson.Span{}) && len(d.Problems) == 0 {
		d.Wrong("/messages", request.InvalidRequest, "messages is missing: an array of 1 to %d messages", session.MaxBatchMessages)
	}
}

// batch finds the messages.
func (d *appendBody) batch() ([]rawjson.Span, error) {
	spans, ok := d.Array("/messages", d.messages)
	switch {
	case ok && len(spans) == 0:
		d.Wrong("/messages", request.InvalidRequest, "messages is empty: 1 to %d messages are possible", session.MaxBatchMessages)
	case len(spans) > session.MaxBatchMessages:
		d.Wrong("/messages", "too_many_messages", "there are %d messages in one batch, %d are the most: send several batches", len(spans), session.MaxBatchMessages)
	}
	return spans, d.Err()
}

// message reads one message into m.
func (d *appendBody) message(i int, format session.Format, span rawjson.Span, m *session.NewMessage) {
	m.Body = span.Of(d.Data)
	if err := d.checkMessage(i, m.Body); err != nil {
		d.Add("", err)
		return
	}
	found, err := wire.Inspect(format, m.Body)
	if err != nil {
		d.Add(request.PointerTo("/messages", i), err)
		return
	}
	takeDown(m, &found)
}

// takeDown notes what was found in a message and is needed without its body.
func takeDown(m *session.NewMessage, found *wire.Facts) {
	m.Role, m.Tokens, m.StartsUnit, m.Flags = found.Role, found.Tokens, found.StartsUnit, int32(found.Flags)
	m.Pinned = found.Flags&wire.FlagPinned != 0
	for _, part := range found.Parts {
		switch part.Kind {
		case wire.Call:
			m.Calls = append(m.Calls, part.CallID)
		case wire.Result:
			m.Answers = append(m.Answers, part.CallID)
		}
	}
}

// checkMessage counts the values of one message, if the whole body has so many that one message may have too many.
func (d *appendBody) checkMessage(i int, body []byte) error {
	if !d.large {
		return nil
	}
	return session.CheckJSON(request.PointerTo("/messages", i), body, rawjson.Limits{Nodes: session.MaxJSONNodes})
}

// assignClientIDs reads client_ids, which name the messages one by one.
func (d *appendBody) assignClientIDs(messages []session.NewMessage) {
	if d.clientIDs == (rawjson.Span{}) {
		return
	}
	spans, ok := d.Array("/client_ids", d.clientIDs)
	if ok && len(spans) != len(messages) {
		d.Wrong("/client_ids", request.InvalidRequest, "client_ids has %d entries for %d messages: one each, a string or null", len(spans), len(messages))
		return
	}
	seen := make(map[string]int, len(spans))
	for i, span := range spans {
		if d.Data[span.Start] == 'n' {
			continue
		}
		pointer := request.PointerTo("/client_ids", i)
		id, ok := d.Text(pointer, span, session.MaxClientIDBytes)
		first, twice := seen[id]
		switch {
		case ok && id == "":
			d.Wrong(pointer, request.InvalidRequest, "a client_id is not empty: null for none")
		case ok && twice:
			d.Wrong(pointer, request.InvalidRequest, "message %d has the client_id of message %d: each names one message", i, first)
		}
		seen[id] = i
		messages[i].ClientID = id
	}
}
