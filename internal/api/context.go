package api

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"sync"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/zframe"
)

// viewRequest is what a reader of a view asks for.
type viewRequest struct {
	at      session.Address
	most    int64          // tokens; 0 for no bound
	format  session.Format // "" for the session's own
	model   string         // that the view is for; "" for the session's
	pending wire.Pending
	full    bool        // the raw log
	bare    bool        // a checkpoint without the messages after it
	zstd    bool        // the reader takes zstd
	tags    []entityTag // versions that the reader has
	any     bool        // If-None-Match: *
}

// readContext is GET /v1/sessions/{id}/context. A view in the session's own format that is known to be valid goes out as
// the bytes that are stored; render.go makes all others.
func (s *Server) readContext(x *exchange) error {
	request, err := viewRequestOf(x)
	if err != nil {
		return err
	}
	if request.full && request.format == "" {
		return s.readLog(x, request)
	}
	view := views.Get().(*postgres.View)
	defer freeView(view)
	if err := s.Store.ViewInto(x.ctx, request.at, request.known(), view); err != nil {
		return err
	}
	tag := request.tagOf(request.versionOf(view), view.Format, view.Model)
	if request.has(tag) {
		return x.notModified(tag)
	}
	if view.Version == request.known() {
		// The reader named this version, but not by the tag of what he asks for: read it again, with its bodies.
		if err := s.Store.ViewInto(x.ctx, request.at, postgres.Version{}, view); err != nil {
			return err
		}
	}
	if request.full || request.most > 0 && view.Tokens > request.most || !request.asStored(view) {
		return s.readRendered(x, request)
	}
	tag = request.tagOf(view.Version, view.Format, view.Model)
	if request.format != "" {
		view.Format = request.format // of one without messages
	}
	return x.view(request, tag, view, viewNotes{})
}

// versionOf is what the answer depends on: the whole log is the same whatever checkpoints there are.
func (r *viewRequest) versionOf(v *postgres.View) postgres.Version {
	version := v.Version
	if r.full {
		version.Checkpoint = 0
	}
	return version
}

// asStored reports whether the view, as it is stored, is what the reader asks for.
func (r *viewRequest) asStored(v *postgres.View) bool {
	own := (r.format == "" || r.format == v.Format) && r.pending == wire.KeepPending && (r.model == "" || r.model == v.Model)
	if v.LastSeq == 0 {
		return true
	}
	return own && sound(v)
}

// sound reports whether the view is known to be valid for its provider.
func sound(v *postgres.View) bool {
	walk := wire.NewFastValidator(v.Format)
	walk.AddShapes(v.SystemFacts)
	if v.Checkpoint > 0 {
		if !walk.Valid("") {
			return false
		}
		walk = wire.ResumeFastValidator(v.Format, v.Walk, v.OpenCalls)
	}
	walk.AddShapes(v.TailFacts)
	return walk.Valid(v.Model)
}

// views go from request to request for their memory: a view is as large as a context.
var views = sync.Pool{New: func() any { return new(postgres.View) }}

func freeView(v *postgres.View) {
	if cap(v.Body)+cap(v.System)+cap(v.Tail) <= maxKeptBuffer {
		views.Put(v)
	}
}

func viewRequestOf(x *exchange) (r viewRequest, err error) {
	q := x.query("max_tokens", "format", "view", "model", "pending")
	r.most = q.integer("max_tokens", 1, math.MaxInt32, 0)
	r.format = session.Format(q.text("format", ""))
	if r.format == "" && q.values.Has("format") {
		q.d.wrong("format", invalidRequest, "the format is empty: say %s, or leave it out for the session's own", formats())
	}
	if r.model = q.text("model", ""); len(r.model) > session.MaxIDBytes {
		q.d.wrong("model", invalidRequest, "model has %d bytes, at most %d are possible", len(r.model), session.MaxIDBytes)
	}
	r.pending = wire.Pending(q.choice("pending", string(wire.KeepPending), string(wire.SynthesizePending), string(wire.DropPending)))
	r.full = q.choice("view", "compacted", "full") == "full"
	if r.full && r.most > 0 {
		q.d.wrong("max_tokens", invalidRequest, "view=full is the whole log: leave max_tokens or view=full out")
	}
	if err := q.err(); err != nil {
		return r, err
	}
	if r.format != "" && !r.format.Valid() {
		return r, fail("format_not_available", "there is no format %s: ask for %s, or leave format out for the session's own", shorten(string(r.format)), formats())
	}
	r.zstd = acceptsZstd(x.r.Header["Accept-Encoding"])
	r.tags, r.any = parseTags(x.r.Header["If-None-Match"])
	r.at, err = x.address()
	return r, err
}

// viewNotes are what an answer says about a view besides its messages.
type viewNotes struct {
	left     protocol.Omitted
	degraded bool // it is not what it should be, but the last good one
	repairs  []wire.Repair
}

// view answers with a view, in one write.
func (x *exchange) view(request viewRequest, tag string, view *postgres.View, notes viewNotes) error {
	head, tail, body := newBuffer(), newBuffer(), newBuffer()
	defer head.free()
	defer tail.free()
	defer body.free()
	head.b = appendViewHead(head.b, x.session, view, notes)
	if view.Size > 0 && len(view.Tail) > 0 {
		tail.b = append(tail.b, ',')
	}
	tail.b = append(append(tail.b, view.Tail...), "]}"...)
	h := x.viewHeader(tag)
	if request.zstd {
		h["Content-Encoding"] = zstdCoding
		body.b = zframe.AppendFrame(body.b, head.b, view.Body, tail.b)
		return x.bytes(http.StatusOK, jsonType, body.b)
	}
	var err error
	if body.b, err = zframe.Decompress(append(body.b, head.b...), view.Body, view.Size); err != nil {
		return err
	}
	body.b = append(body.b, tail.b...)
	return x.bytes(http.StatusOK, jsonType, body.b)
}

// appendViewHead writes a view's JSON up to its first message.
func appendViewHead(dst []byte, id string, view *postgres.View, notes viewNotes) []byte {
	dst = append(dst, `{"session":`...)
	dst = rawjson.Quote(dst, []byte(id))
	dst = append(dst, `,"format":`...)
	if view.Format == "" {
		dst = append(dst, "null"...)
	} else {
		dst = rawjson.Quote(dst, []byte(view.Format))
	}
	dst = append(dst, `,"checkpoint":`...)
	dst = strconv.AppendInt(dst, int64(view.Checkpoint), 10)
	dst = append(dst, `,"through_seq":`...)
	dst = strconv.AppendInt(dst, view.Through, 10)
	dst = append(dst, `,"last_seq":`...)
	dst = strconv.AppendInt(dst, view.LastSeq, 10)
	dst = append(dst, `,"tokens":`...)
	dst = strconv.AppendInt(dst, view.Tokens, 10)
	if notes.left.Units > 0 {
		dst = appendMember(dst, "omitted", notes.left)
	}
	if notes.degraded {
		dst = append(dst, `,"degraded":true`...)
	}
	if len(notes.repairs) > 0 {
		dst = appendMember(dst, "repairs", notes.repairs)
	}
	if len(view.System) > 0 {
		if system := wire.AppendSystem(view.Format, nil, split(view.System)); string(system) != "[]" {
			dst = append(append(dst, `,"system":`...), system...)
		}
	}
	return append(dst, `,"messages":[`...)
}

func appendMember(dst []byte, name string, value any) []byte {
	text, _ := json.Marshal(value)
	return append(append(append(append(dst, `,"`...), name...), `":`...), text...)
}

// split takes messages that are joined by commas apart.
func split(joined []byte) (bodies [][]byte) {
	array := append(append([]byte{'['}, joined...), ']')
	for element := range rawjson.Elements(array, 0) {
		bodies = append(bodies, element.Of(array))
	}
	return bodies
}

var (
	zstdCoding  = []string{"zstd"}
	viewVary    = []string{"Authorization, Accept, Accept-Encoding"}
	viewCaching = []string{"private, no-cache"}
)

func (x *exchange) viewHeader(tag string) http.Header {
	h := x.w.Header()
	h["Etag"] = []string{tag}
	h["Vary"], h["Cache-Control"] = viewVary, viewCaching
	return h
}

func (x *exchange) notModified(tag string) error {
	x.viewHeader(tag)
	x.w.WriteHeader(http.StatusNotModified)
	return nil
}
