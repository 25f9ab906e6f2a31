package api

import (
	"net/http"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/ingest"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// appendMessages handles POST /v1/sessions/{id}/messages.
func (s *Server) appendMessages(req *request.Request) error {
	a, err := s.readAppend(req)
	if err != nil {
		return err
	}
	done, replayed, err := req.Store.Append(req.Ctx, a)
	if err != nil {
		return err
	}
	req.Replayed(replayed)
	done.UsageIgnored, done.Warnings = a.UsageIgnored, a.Warnings
	if done.Replayed {
		return req.JSON(http.StatusOK, done)
	}
	return req.JSON(http.StatusCreated, done)
}

// strictParameter makes errors of what a request would be warned of.
const strictParameter = "strict"

// readAppend decodes the request, then resolves what it leaves to the session: its format, and how its tokens are
// counted. It reports everything that is wrong with the body, and with each message, at once.
func (s *Server) readAppend(req *request.Request) (a session.Append, err error) {
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
	if b.Format == "" {
		b.Format, err = req.Store.FormatOf(req.Ctx, a.Session)
		if err == nil && b.Format == "" {
			err = session.Invalid("/format", request.InvalidRequest, "the session has no format yet: it must be %s",
				request.Formats())
		}
		if err != nil {
			return a, err
		}
	}
	a.Format, a.ExpectedSeq = b.Format, b.expected
	err = req.Heavy(size, func() (err error) {
		b.Tells, b.Strict = true, strict
		a.Messages, err = b.named()
		a.Usage, a.UsageIgnored = b.usage.of(b.Format, a.Messages)
		a.Warnings = b.Warnings
		return err
	})
	if err != nil {
		return a, err
	}
	return a, s.counter.Count(req.Ctx, &a)
}

// appendBody is the body of an append.
type appendBody struct {
	ingest.Batch
	clientIDs rawjson.Span
	expected  *int64
	usage     *reported
}

var appendFields = []string{"format", "messages", "client_ids", "expected_seq", "usage"}

// batchRule is how many messages a body may have, and what to do instead of sending more.
type batchRule struct {
	limit   int
	instead string // "" for several batches
}

var oneBatch = batchRule{limit: session.MaxBatchMessages}

// decodeAppend reads the body's members. Their problems come before those of the messages, whose format may not be
// known yet.
func decodeAppend(body []byte, rule batchRule) (*appendBody, error) {
	b := &appendBody{}
	b.Instead = rule.instead
	if err := b.Open(body); err != nil {
		return nil, err
	}
	var messages rawjson.Span
	for name, value := range b.Fields(appendFields) {
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
