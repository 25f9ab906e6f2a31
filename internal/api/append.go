package api

import (
	"errors"
	"net/http"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// appendMessages is POST /v1/sessions/{id}/messages.
func (s *Server) appendMessages(x *exchange) error {
	if err := x.query().err(); err != nil {
		return err
	}
	at, err := x.address()
	if err != nil {
		return err
	}
	body, err := readBody(x)
	if err != nil {
		return err
	}
	defer body.free()
	a := session.Append{Session: at}
	if a.Idempotency, err = x.idempotency(body.b); err != nil {
		return err
	}
	if err := s.decodeAppend(x, &a, body.b); err != nil {
		return err
	}
	if err := s.countExactly(x, &a); err != nil {
		return err
	}
	done, replayed, err := s.Store.Append(x.ctx, a)
	if err != nil {
		return err
	}
	x.replayed(a.Idempotency, replayed)
	if done.Replayed {
		return x.json(http.StatusOK, done)
	}
	return x.json(http.StatusCreated, done)
}

// envelope is the depth of the object and the array that a batch's messages stand in.
const envelope = 2

// batchLimits hold for a whole batch. A body of one message's values is well in most cases; see tooComplex for the others.
var batchLimits = rawjson.Limits{Depth: session.MaxJSONDepth + envelope, Nodes: session.MaxJSONNodes, NumberBytes: session.MaxNumberBytes}

// appendBody is the body of an append, its members as spans.
type appendBody struct {
	document
	format              session.Format
	messages, clientIDs rawjson.Span
	expected            *int64
	usage               *session.Usage
	large               bool // it has more values than one message may have: each must be counted
}

var appendFields = []string{"format", "messages", "client_ids", "expected_seq", "usage"}

// decodeAppend reads the body of an append into a, whose messages then point into it. It reports everything that is
// wrong with the body, and with each message, at once.
func (s *Server) decodeAppend(x *exchange, a *session.Append, body []byte) error {
	d := appendBody{document: document{data: body}}
	if err := d.read(); err != nil {
		return err
	}
	a.Format, a.ExpectedSeq, a.Usage = d.format, d.expected, d.usage
	if a.Format == "" {
		found, err := s.Store.Session(x.ctx, a.Session)
		if err != nil {
			return err
		}
		if a.Format = found.Format; a.Format == "" {
			return session.Invalid("/format", invalidRequest, "the session has no format yet: say %s", formats())
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
	return d.err()
}

// read checks the body and finds its members.
func (d *appendBody) read() error {
	if err := d.checkBatch(); err != nil {
		return err
	}
	d.readMembers()
	return d.err()
}

// checkBatch checks the body as JSON, by the limits of a batch.
func (d *appendBody) checkBatch() error {
	err := rawjson.Check(d.data, batchLimits)
	var syntax *rawjson.SyntaxError
	if errors.As(err, &syntax) && syntax.Limit == "nodes" {
		d.large = true
	}
	limits := batchLimits
	if d.large {
		limits.Nodes = 0
	}
	if d.large || err != nil {
		return d.check(limits)
	}
	return nil
}

func (d *appendBody) readMembers() {
	for name, value := range d.members("", rawjson.Value(d.data), appendFields) {
		switch name {
		case "format":
			d.format = d.readFormat(value)
		case "messages":
			d.messages = value
		case "client_ids":
			d.clientIDs = value
		case "expected_seq":
			n := d.integer("/expected_seq", value, 0, session.MaxSessionMessages)
			d.expected = &n
		case "usage":
			d.usage = d.readUsage(value)
		}
	}
	if d.messages == (rawjson.Span{}) && len(d.problems) == 0 {
		d.wrong("/messages", invalidRequest, "messages is missing: an array of 1 to %d messages", session.MaxBatchMessages)
	}
}

// batch finds the messages.
func (d *appendBody) batch() ([]rawjson.Span, error) {
	spans, ok := d.array("/messages", d.messages)
	switch {
	case ok && len(spans) == 0:
		d.wrong("/messages", invalidRequest, "messages is empty: 1 to %d messages are possible", session.MaxBatchMessages)
	case len(spans) > session.MaxBatchMessages:
		d.wrong("/messages", "too_many_messages", "there are %d messages in one batch, %d are the most: send several batches", len(spans), session.MaxBatchMessages)
	}
	return spans, d.err()
}

// message reads one message into m.
func (d *appendBody) message(i int, format session.Format, span rawjson.Span, m *session.NewMessage) {
	m.Body = span.Of(d.data)
	if err := d.checkMessage(i, m.Body); err != nil {
		d.add("", err)
		return
	}
	found, err := wire.Inspect(format, m.Body)
	if err != nil {
		d.add(pointerTo("/messages", i), err)
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
	return syntaxProblem(pointerTo("/messages", i), rawjson.Check(body, rawjson.Limits{Nodes: session.MaxJSONNodes}))
}

// assignClientIDs reads client_ids, which name the messages one by one.
func (d *appendBody) assignClientIDs(messages []session.NewMessage) {
	if d.clientIDs == (rawjson.Span{}) {
		return
	}
	spans, ok := d.array("/client_ids", d.clientIDs)
	if ok && len(spans) != len(messages) {
		d.wrong("/client_ids", invalidRequest, "client_ids has %d entries for %d messages: one each, a string or null", len(spans), len(messages))
		return
	}
	seen := make(map[string]int, len(spans))
	for i, span := range spans {
		if d.data[span.Start] == 'n' {
			continue
		}
		pointer := pointerTo("/client_ids", i)
		id, ok := d.text(pointer, span, session.MaxClientIDBytes)
		first, twice := seen[id]
		switch {
		case ok && id == "":
			d.wrong(pointer, invalidRequest, "a client_id is not empty: null for none")
		case ok && twice:
			d.wrong(pointer, invalidRequest, "message %d has the client_id of message %d: each names one message", i, first)
		}
		seen[id] = i
		messages[i].ClientID = id
	}
}
