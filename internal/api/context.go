package api

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"sync"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/zframe"
)

// viewRequest is what a reader of a view asks for.
type viewRequest struct {
	at     session.Address
	most   int64          // tokens; 0 for no bound
	format session.Format // "" for the session's own
	full   bool           // the raw log
	zstd   bool           // the reader takes zstd
	tags   []entityTag    // versions that the reader has
	any    bool           // If-None-Match: *
}

// readContext is GET /v1/sessions/{id}/context.
func (s *Server) readContext(x *exchange) error {
	request, err := viewRequestOf(x)
	if err != nil {
		return err
	}
	if request.full {
		return s.readLog(x, request)
	}
	view := views.Get().(*postgres.View)
	defer freeView(view)
	if err := s.Store.ViewInto(x.ctx, request.at, request.known(), view); err != nil {
		return err
	}
	tag := request.tagOf(view.Version, view.Format)
	if err := request.fits(view.Format); err != nil {
		return err
	}
	if request.has(tag) {
		return x.notModified(tag)
	}
	if view.Version == request.known() {
		// The reader named this version, but not by the tag of what he asks for: read it again, with its bodies.
		if err := s.Store.ViewInto(x.ctx, request.at, postgres.Version{}, view); err != nil {
			return err
		}
		tag = request.tagOf(view.Version, view.Format)
	}
	if request.most > 0 && view.Tokens > request.most {
		return s.readBounded(x, request)
	}
	return x.view(request, tag, view, omitted{})
}

// views go from request to request for their memory: a view is as large as a context.
var views = sync.Pool{New: func() any { return new(postgres.View) }}

func freeView(v *postgres.View) {
	if cap(v.Body)+cap(v.System)+cap(v.Tail) <= maxKeptBuffer {
		views.Put(v)
	}
}

func viewRequestOf(x *exchange) (r viewRequest, err error) {
	q := x.query("max_tokens", "format", "view")
	r.most = q.integer("max_tokens", 1, math.MaxInt32, 0)
	r.format = session.Format(q.text("format", ""))
	if r.format == "" && q.values.Has("format") {
		q.d.wrong("format", invalidRequest, "the format is empty: say %s, or leave it out", formats())
	}
	r.full = q.choice("view", "compacted", "full") == "full"
	if r.full && r.most > 0 {
		q.d.wrong("max_tokens", invalidRequest, "view=full is the whole log: leave max_tokens or view=full out")
	}
	if err := q.err(); err != nil {
		return r, err
	}
	r.zstd = acceptsZstd(x.r.Header["Accept-Encoding"])
	r.tags, r.any = parseTags(x.r.Header["If-None-Match"])
	r.at, err = x.address()
	return r, err
}

// fits says whether the view can be had in the format that was asked for.
func (r *viewRequest) fits(own session.Format) error {
	switch {
	case r.format == "" || r.format == own:
		return nil
	case own == "":
		return fail("format_not_available", "the session has no format yet: leave format out")
	}
	return fail("format_not_available", "the session's messages are %s: ask for format=%s, or leave format out", own, own)
}

// readBounded answers with a view of which the oldest units are left out.
func (s *Server) readBounded(x *exchange, request viewRequest) error {
	whole, err := s.Store.BoundedView(x.ctx, request.at)
	if err != nil {
		return err
	}
	view, left, err := bound(&whole, request.most)
	if err != nil {
		return err
	}
	return x.view(request, request.tagOf(view.Version, view.Format), view, left)
}

// omitted is what a bounded view leaves out.
type omitted struct {
	Units    int   `json:"units"`
	Messages int   `json:"messages"`
	Tokens   int64 `json:"tokens"`
}

// view answers with a view, in one write.
func (x *exchange) view(request viewRequest, tag string, view *postgres.View, left omitted) error {
	head, tail, body := newBuffer(), newBuffer(), newBuffer()
	defer head.free()
	defer tail.free()
	defer body.free()
	head.b = appendViewHead(head.b, x.session, view, left)
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
func appendViewHead(dst []byte, id string, view *postgres.View, left omitted) []byte {
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
	if left.Units > 0 {
		dst = append(dst, `,"omitted":`...)
		text, _ := json.Marshal(left)
		dst = append(dst, text...)
	}
	if len(view.System) > 0 {
		if system := wire.AppendSystem(nil, split(view.System)); string(system) != "[]" {
			dst = append(append(dst, `,"system":`...), system...)
		}
	}
	return append(dst, `,"messages":[`...)
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
