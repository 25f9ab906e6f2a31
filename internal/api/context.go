package api

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"sync"

	"github.com/varve-dev/varve/internal/api/request"
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
func (s *Server) readContext(req *request.Request) error {
	request, err := viewRequestOf(req)
	if err != nil {
		return err
	}
	if request.full && request.format == "" {
		return s.readLog(req, request)
	}
	view := views.Get().(*postgres.View)
	defer freeView(view)
	if err := s.Store.ViewInto(req.Ctx, request.at, request.known(), view); err != nil {
		return err
	}
	tag := request.tagOf(request.versionOf(view), view.Format, view.Model)
	if request.has(tag) {
		return notModified(req, tag)
	}
	if view.Version == request.known() {
		// The reader named this version, but not by the tag of what he asks for: read it again, with its bodies.
		if err := s.Store.ViewInto(req.Ctx, request.at, postgres.Version{}, view); err != nil {
			return err
		}
	}
	if request.full || request.most > 0 && view.Tokens > request.most || !request.asStored(view) {
		return s.readRendered(req, request)
	}
	tag = request.tagOf(view.Version, view.Format, view.Model)
	if request.format != "" {
		view.Format = request.format // of one without messages
	}
	return answerView(req, request, tag, view, viewNotes{})
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
	if cap(v.Body)+cap(v.System)+cap(v.Tail) <= request.MaxKeptBuffer {
		views.Put(v)
	}
}

func viewRequestOf(req *request.Request) (r viewRequest, err error) {
	q := req.Query("max_tokens", "format", "view", "model", "pending")
	r.most = q.Integer("max_tokens", 1, math.MaxInt32, 0)
	r.format = session.Format(q.Text("format", ""))
	if r.format == "" && q.Values.Has("format") {
		q.Wrong("format", request.InvalidRequest, "the format is empty: say %s, or leave it out for the session's own", request.Formats())
	}
	if r.model = q.Text("model", ""); len(r.model) > session.MaxIDBytes {
		q.Wrong("model", request.InvalidRequest, "model has %d bytes, at most %d are possible", len(r.model), session.MaxIDBytes)
	}
	r.pending = wire.Pending(q.Choice("pending", string(wire.KeepPending), string(wire.SynthesizePending), string(wire.DropPending)))
	r.full = q.Choice("view", "compacted", "full") == "full"
	if r.full && r.most > 0 {
		q.Wrong("max_tokens", request.InvalidRequest, "view=full is the whole log: leave max_tokens or view=full out")
	}
	if err := q.Err(); err != nil {
		return r, err
	}
	if r.format != "" && !r.format.Valid() {
		return r, request.Fail("format_not_available", "there is no format %s: ask for %s, or leave format out for the session's own", request.Shorten(string(r.format)), request.Formats())
	}
	r.zstd = acceptsZstd(req.R.Header["Accept-Encoding"])
	r.tags, r.any = parseTags(req.R.Header["If-None-Match"])
	r.at = req.Address()
	return r, req.Err()
}

// viewNotes are what an answer says about a view besides its messages.
type viewNotes struct {
	left     protocol.Omitted
	degraded bool // it is not what it should be, but the last good one
	repairs  []wire.Repair
}

// view answers with a view, in one write.
func answerView(req *request.Request, want viewRequest, tag string, view *postgres.View, notes viewNotes) error {
	head, tail, body := req.Buffer(), req.Buffer(), req.Buffer()
	head.B = appendViewHead(head.B, req.SessionID, view, notes)
	if view.Size > 0 && len(view.Tail) > 0 {
		tail.B = append(tail.B, ',')
	}
	tail.B = append(append(tail.B, view.Tail...), "]}"...)
	h := viewHeader(req, tag)
	if want.zstd {
		h["Content-Encoding"] = zstdCoding
		body.B = zframe.AppendFrame(body.B, head.B, view.Body, tail.B)
		return req.Bytes(http.StatusOK, request.JSONType, body.B)
	}
	var err error
	if body.B, err = zframe.Decompress(append(body.B, head.B...), view.Body, view.Size); err != nil {
		return err
	}
	body.B = append(body.B, tail.B...)
	return req.Bytes(http.StatusOK, request.JSONType, body.B)
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

func viewHeader(req *request.Request, tag string) http.Header {
	h := req.W.Header()
	h["Etag"] = []string{tag}
	h["Vary"], h["Cache-Control"] = viewVary, viewCaching
	return h
}

func notModified(req *request.Request, tag string) error {
	viewHeader(req, tag)
	req.W.WriteHeader(http.StatusNotModified)
	return nil
}
