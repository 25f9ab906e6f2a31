package ingest

import (
	"cmp"
	"errors"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/importer"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// envelope is the depth of the object and the array around a batch's messages.
const envelope = 2

// batchLimits hold for a whole batch. Most bodies have fewer values than one message may have; see Batch.large.
var batchLimits = rawjson.Limits{
	Depth: session.MaxJSONDepth + envelope, Nodes: session.MaxJSONNodes, NumberBytes: session.MaxNumberBytes,
}

// Batch is a body that holds an array of messages. A route reads its own members: Open, then Fields with List for the
// array, then Err, and Inspect or Message for each message.
type Batch struct {
	request.Document
	Format  session.Format
	Spans   []rawjson.Span // the messages
	Instead string         // what to do instead of sending too many, "" for several batches
	pointer string         // of the array
	Tells   bool           // a message of another format is refused, and Tell says what views repair
	Strict  bool           // what views would repair is refused

	halves *rawjson.Halves // of all messages; nil if they are not known
	doubts []doubt         // what Tell looks at
	large  bool            // the body has more values than one message may have: each message's must be counted
}

// Open checks the body as JSON.
func (b *Batch) Open(body []byte) error {
	b.Data = body
	b.pointer = "/messages"
	halves, err := rawjson.CheckHalves(body, batchLimits)
	if err == nil {
		b.halves = &halves
		return nil
	}
	limits := batchLimits
	var syntax *rawjson.SyntaxError
	if errors.As(err, &syntax) && syntax.Limit == "nodes" {
		b.large = true
		limits.Nodes = 0
	}
	return b.Check(limits)
}

// List reads the array of messages, of which there must be 1 to limit.
func (b *Batch) List(pointer string, array rawjson.Span, limit int) {
	b.pointer = pointer
	spans, ok := b.Array(pointer, array)
	b.Spans = spans
	switch {
	case ok && len(spans) == 0:
		b.Wrong(pointer, request.InvalidRequest, "must contain 1 to %d messages, not none", limit)
	case len(spans) > limit:
		b.Wrong(pointer, request.TooMany, "must contain 1 to %d messages, not %d: %s", limit, len(spans),
			cmp.Or(b.Instead, "send several batches"))
	}
}

// RequireFormat requires that the body names its format.
func (b *Batch) RequireFormat() { RequireFormat(&b.Document, b.Format) }

// RequireFormat requires that a document names a format.
func RequireFormat(d *request.Document, format session.Format) {
	if format == "" && !d.Has("/format") {
		d.Wrong("/format", request.InvalidRequest, "format is missing: it must be %s", request.Formats())
	}
}

// Inspect reads message i. Its problems are added to the body's.
func (b *Batch) Inspect(i int) (found wire.Facts, ok bool) {
	return b.inspect(request.PointerTo(b.pointer, i), b.Body(i))
}

func (b *Batch) inspect(pointer string, body []byte) (found wire.Facts, ok bool) {
	var err error
	if b.large {
		err = session.CheckJSON("", body, rawjson.Limits{Nodes: session.MaxJSONNodes})
	}
	if err == nil {
		found, err = wire.InspectChecked(b.Format, body, b.halves)
	}
	if b.Tells && (err != nil || found.Flags&wire.FlagMayNeedRepair != 0) {
		err = cmp.Or(b.other(body), err)
	}
	if err != nil {
		b.Add(pointer, err)
		return found, false
	}
	if b.Tells && wire.MayWarn(b.Format, &found) {
		b.doubts = append(b.doubts, doubt{pointer, body, found.Flags})
	}
	return found, true
}

// doubt is a message that views may repair.
type doubt struct {
	at    string
	body  []byte
	flags wire.Flags
}

// Doubts reports whether Tell may have something to tell.
func (b *Batch) Doubts() bool { return len(b.doubts) > 0 }

// Tell tells what views for a model will repair of the messages that were read. A strict batch refuses it.
func (b *Batch) Tell(model string) error {
	for _, d := range b.doubts {
		for _, w := range wire.Warnings(b.Format, d.body, d.flags, model) {
			if b.Strict {
				b.Wrong(d.at+w.Pointer, request.NeedsRepair, "%s: %s", w.Code, w.Detail)
			} else {
				b.Warn(d.at+w.Pointer, w.Code, "%s", w.Detail)
			}
		}
	}
	b.doubts = nil
	return b.Err()
}

// One reads the only message, which is the member at pointer.
func (b *Batch) One(pointer string) (m session.NewMessage) {
	m.Body = b.Body(0)
	if err := session.CheckJSON("", m.Body, session.JSONLimits); err != nil {
		b.Add(pointer, err)
		return m
	}
	if found, ok := b.inspect(pointer, m.Body); ok {
		extractColumns(&m, b.Format, &found)
	}
	return m
}

// other returns an error for a message that is of another format than the batch, or whose role is misspelt.
func (b *Batch) other(body []byte) error {
	if !wire.MayBeOther(b.Format, body) {
		return nil
	}
	role := wire.RoleOf(body)
	looks := importer.Looks(body)
	meant := wire.MeantRole(b.Format, role)
	switch {
	case looks != "" && looks != b.Format:
		return session.Invalid("", request.OtherFormat,
			"this looks like a message of %s, and the format is %s: send it to a session of its format, or convert it",
			looks, b.Format)
	case meant != "":
		return session.Invalid("/role", request.OtherFormat, "%s has no role %q: do you mean %q?", b.Format, role,
			meant)
	case looks == "" && b.Format == session.Gemini && wire.SaysContent(body):
		return session.Invalid("", request.OtherFormat,
			"this looks like a message of %s or %s, and the format is %s, whose messages have parts",
			session.OpenAIChat, session.Anthropic, b.Format)
	}
	return nil
}

// Body returns message i.
func (b *Batch) Body(i int) []byte { return b.Spans[i].Of(b.Data) }

// Messages reads all messages, which point into the body.
func (b *Batch) Messages() ([]session.NewMessage, error) {
	messages := make([]session.NewMessage, len(b.Spans))
	for i := range messages {
		messages[i].Body = b.Body(i)
		if found, ok := b.Inspect(i); ok {
			extractColumns(&messages[i], b.Format, &found)
		}
	}
	return messages, b.Err()
}
