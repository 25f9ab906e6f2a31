package api

import (
	"cmp"
	"errors"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/models"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/spelling"
	"github.com/varve-dev/varve/internal/view"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/provider"
	"github.com/varve-dev/varve/internal/zframe"
)

var degradedViews = promauto.NewCounter(prometheus.CounterOpts{
	Name: "varve_degraded_views_total",
	Help: "Reads that were answered with an older view, because no valid one could be made of the newest checkpoint.",
})

// viewRequest is what a reader of a view asks for.
type viewRequest struct {
	view.Request
	envelope
	at         session.Address
	wait       time.Duration    // for a compaction, if the view must fit the window and does not
	dialect    provider.Dialect // that the reader names; the request's may be that of its model
	full       bool             // the raw log
	checkpoint int              // whose view is wanted, 0 for the newest
	minSeq     int64            // that the session must have, 0 for any
	asOf       *postgres.At     // the moment whose view is wanted, nil for now
	zstd       bool             // the reader takes zstd
	tags       []entityTag      // versions that the reader has
	any        bool             // If-None-Match: *
}

// newest reports whether the session's view is wanted, not its log or an older view.
func (r *viewRequest) newest() bool { return !r.full && r.checkpoint == 0 && r.asOf == nil }

// readContext handles GET /v1/sessions/{id}/context and, for the view as it was when a checkpoint was made, GET
// /v1/sessions/{id}/checkpoints/{n}/context. A view that is stored as the reader wants it goes out as those
// bytes; any other is made of the same bytes.
func (s *Server) readContext(req *request.Request) error {
	want, err := s.viewRequestOf(req)
	if err != nil {
		return err
	}
	if err := s.checkSeq(req, want.minSeq); err != nil {
		return err
	}
	if want.full && want.Format == "" {
		return s.readLog(req, want)
	}
	stored := views.Get().(*postgres.View)
	defer freeView(stored)
	known := want.known()
	if err := s.openView(req, want, known, stored); err != nil {
		return err
	}
	return s.answerOpened(req, want, known, stored)
}

// answerOpened answers with the view that was opened, unless the reader has it.
func (s *Server) answerOpened(
	req *request.Request, want viewRequest, known postgres.Version, stored *postgres.View,
) error {
	if err := want.settleDialect(stored); err != nil {
		return err
	}
	tag := want.tagOf(stored)
	if want.has(tag) {
		return notModified(req, tag)
	}
	if want.awaitsRoom(stored) {
		if stored.Cold { // a compaction needs its rows: the session comes back, and the request is answered again
			return session.ErrNotFound
		}
		return s.waiter.WithRoom(req, want.at, want.wait, func() error {
			if err := s.openView(req, want, postgres.Version{}, stored); err != nil {
				return err
			}
			return s.answerStored(req, want, stored)
		})
	}
	if stored.Version == known && stored.Damage == nil {
		// The reader named this version, but not by the tag of what it asks for: read it again, with its bodies.
		if err := s.openView(req, want, postgres.Version{}, stored); err != nil {
			return err
		}
	}
	return s.answerStored(req, want, stored)
}

// answerStored answers with a stored view, or one that is made of it.
func (s *Server) answerStored(req *request.Request, want viewRequest, stored *postgres.View) error {
	if stored.LeftOut && want.newest() && want.BoundsEnd(stored) {
		answer := func() error { return s.answerMade(req, want, want.tagOf(stored), stored) }
		if answered, err := want.FromEnd(req.Ctx, req.Store, want.at, stored, answer); answered || err != nil {
			return err
		}
	}
	if stored.LeftOut {
		if sent, err := s.streamView(req, want, stored); sent || err != nil {
			return s.served(req, stored, err)
		}
		if err := want.Fill(req.Ctx, req.Store, want.at, stored); err != nil {
			return err
		}
	}
	tag := want.tagOf(stored)
	if stored.Damage != nil {
		s.degraded(want.at, "the newest checkpoint is damaged, an older view is served", stored.Damage)
	}
	if want.AsStored(stored) {
		return s.served(req, stored, s.answerView(req, want, tag, stored, view.Notes{Degraded: stored.Damage != nil}))
	}
	return s.answerMade(req, want, tag, stored)
}

// openView reads the stored view that the reader asks for, without its bodies if it is at the version known.
func (s *Server) openView(req *request.Request, want viewRequest, known postgres.Version, into *postgres.View) error {
	read := want.reads(known)
	if want.newest() {
		return req.Store.ViewInto(req.Ctx, want.at, read, into)
	}
	older := postgres.ViewFrom(want.checkpoint)
	switch {
	case want.asOf != nil:
		then, err := req.Store.Moment(req.Ctx, want.at, *want.asOf)
		if err != nil {
			return err
		}
		older = postgres.Older{Checkpoint: then.Checkpoint, AsOf: &then}
	case want.checkpoint > 0:
		older.Bare = true
	}
	var err error
	*into, err = req.Store.OlderView(req.Ctx, want.at, older, read)
	return err
}

// reads returns how the stored view is read.
func (r *viewRequest) reads(known postgres.Version) postgres.ViewRead {
	read := postgres.ViewRead{Known: known, MaxTokens: r.MaxTokens, Largest: r.Largest}
	if r.newest() {
		read.Largest = r.LargestWhole(r.Largest)
	}
	return read
}

// readAsOf reads the moment whose view is wanted.
func (r *viewRequest) readAsOf(q *request.Query) {
	if !q.Values.Has("as_of_seq") && !q.Values.Has("as_of") {
		return
	}
	r.asOf = &postgres.At{
		Seq: q.Integer("as_of_seq", 1, session.MaxSessionMessages, 0), Time: q.Time("as_of", time.Time{}),
	}
	switch {
	case r.full:
		q.Wrong("view", request.InvalidRequest,
			"a view as of a moment is compacted: leave view=full out, or read messages with to_seq")
	case r.asOf.Seq > 0 && !r.asOf.Time.IsZero():
		q.Wrong("as_of", request.InvalidRequest, "as_of_seq names the moment: leave one of the two out")
	}
}

// answerMade answers with a view that is made of the stored one. If the newest checkpoint gives none that is valid, the
// next older one does, and in the end the log itself.
func (s *Server) answerMade(req *request.Request, want viewRequest, tag string, stored *postgres.View) error {
	var made *postgres.View
	var notes view.Notes
	err := req.Heavy(stored.Bytes(), func() (err error) {
		made, notes, err = want.Make(req.Ctx, stored)
		return err
	})
	if broken := new(view.BrokenError); want.newest() && errors.As(err, &broken) {
		req.Store.ForgetBody(want.at)
		s.degraded(want.at, "view is broken, an older one is served", err)
		made, notes, err = want.LastGood(req.Ctx, req.Store, want.at, stored, err)
		tag = degradedTag
	}
	if err == nil && want.newest() && notes.Bounded() && want.Binds(stored) && stored.Unbound < stored.LastSeq {
		err = req.Store.Unbind(req.Ctx, want.at, stored.LastSeq)
	}
	if err != nil {
		return err
	}
	notes.Degraded = notes.Degraded || stored.Damage != nil
	return s.served(req, made, s.answerView(req, want, tag, made, notes))
}

// served counts a view that was answered with, unless that failed.
func (s *Server) served(req *request.Request, v *postgres.View, err error) error {
	if err == nil && req.R.Method != http.MethodHead {
		s.usage.Served(req.Address(), v.Tokens)
	}
	return err
}

// degraded counts and logs that an older view stands in for the newest one.
func (s *Server) degraded(at session.Address, why string, err error) {
	degradedViews.Inc()
	s.Log.Error(why, "session", at.ID, "tenant", at.Tenant, "err", err)
}

// views go from request to request for their memory: a view is as large as a context.
var views = sync.Pool{New: func() any { return new(postgres.View) }}

func freeView(v *postgres.View) {
	v.Loose, v.Bodies = nil, nil
	v.End = nil
	if cap(v.Body)+cap(v.System)+cap(v.Tail) <= request.MaxKeptBuffer {
		views.Put(v)
	}
}

func (s *Server) viewRequestOf(req *request.Request) (r viewRequest, err error) {
	q := req.Query()
	r.at = req.Address()
	r.Largest = s.smallView()
	r.Admit, r.Heavy = req.Admit, req.Heavy
	r.MaxTokens = q.Integer("max_tokens", 1, math.MaxInt32, 0)
	r.readFormat(q)
	r.Model = q.Text("model", "")
	if len(r.Model) > session.MaxIDBytes {
		q.Wrong("model", request.InvalidRequest,
			"model has %d bytes, the limit is %d", len(r.Model), session.MaxIDBytes)
	}
	r.dialect = dialectOf(q)
	pending := q.Choice("pending", string(wire.KeepPending), string(wire.SynthesizePending), string(wire.DropPending))
	r.Pending = wire.Pending(pending)
	r.full = q.Choice("view", "compacted", "full") == "full"
	if r.full && r.MaxTokens > 0 {
		q.Wrong("max_tokens", request.InvalidRequest, "view=full is the whole log: leave max_tokens or view=full out")
	}
	r.readAsOf(q)
	r.minSeq = readMinSeq(q)
	s.readFit(req, &r)
	if err := q.Err(); err != nil {
		return r, err
	}
	if err := r.checkFormat(); err != nil {
		return r, err
	}
	r.zstd = acceptsZstd(req.R.Header["Accept-Encoding"])
	r.tags, r.any = parseTags(req.R.Header["If-None-Match"])
	if req.Param("n") != "" {
		r.checkpoint = checkpointOf(req)
	}
	return r, nil
}

// readFormat reads the format that the reader names.
func (r *viewRequest) readFormat(q *request.Query) {
	r.Format = session.Format(q.Text("format", ""))
	if r.Format == "" && q.Values.Has("format") {
		q.Wrong("format", request.InvalidRequest,
			"the format is empty: use %s, or leave it out for the session's own", request.Formats())
	}
}

func (r *viewRequest) checkFormat() error {
	if r.Format == "" || r.Format.Valid() {
		return nil
	}
	return request.Fail("format_not_available",
		"there is no format %s: ask for %s, or leave format out for the session's own",
		spelling.Shorten(string(r.Format)), request.Formats())
}

// dialectOf returns the dialect that a reader names, "" for none.
func dialectOf(q *request.Query) provider.Dialect {
	words := []string{""}
	for _, d := range provider.Dialects() {
		words = append(words, string(d))
	}
	return provider.Dialect(q.Choice("dialect", words...))
}

// settleDialect decides which dialect a view is rendered for: the one that the reader names, or else the one that the
// registry has for the model. A dialect that the view's format does not have is refused.
func (r *viewRequest) settleDialect(v *postgres.View) error {
	target := r.Target(v.Format)
	r.Dialect = r.dialect
	if r.Dialect == "" {
		r.Dialect = provider.Dialect(models.Current().Dialect(cmp.Or(r.Model, v.Model)))
		return nil
	}
	known := provider.DialectsOf(target)
	if slices.Contains(known, r.Dialect) {
		return nil
	}
	if len(known) == 0 {
		return request.Fail("format_not_available", "%s has no dialects: leave dialect out", target)
	}
	return request.Fail("format_not_available", "%s has no dialect %s: ask for one of %s, or leave dialect out",
		target, r.Dialect, provider.Join(known))
}

// answerView answers with a view.
func (s *Server) answerView(
	req *request.Request, want viewRequest, tag string, v *postgres.View, notes view.Notes,
) error {
	v.Format = want.Target(v.Format)
	if v.Bodies != nil {
		return answerLarge(req, want, tag, v, notes)
	}
	head := req.Buffer()
	tail := req.Buffer()
	head.B = view.AppendHead(append(head.B, want.before...), req.SessionID, v, notes)
	if v.Size > 0 && len(v.Tail) > 0 {
		tail.B = append(tail.B, ',')
	}
	tail.B = append(tail.B, v.Tail...)
	tail.B = append(tail.B, want.end()...)
	h := viewHeader(req, tag)
	if want.zstd {
		h["Content-Encoding"] = zstdCoding
		body := req.Buffer()
		if v.Size == 0 && len(tail.B) >= worthPacking {
			err := req.Heavy(int64(len(tail.B)), func() error {
				body.B = zframe.AppendFrame(body.B, head.B, zframe.CompressQuickly(tail.B), nil)
				return nil
			})
			if err != nil {
				return err
			}
		} else {
			body.B = zframe.AppendFrame(body.B, head.B, v.Body, tail.B)
		}
		return req.Bytes(want.code(), request.JSONType, body.B)
	}
	if v.Size == 0 {
		return req.Bytes(want.code(), request.JSONType, append(head.B, tail.B...))
	}
	plain, err := req.Store.PlainBody(want.at, v, req.Heavy)
	if err != nil {
		return err
	}
	return req.Pieces(want.code(), request.JSONType, head.B, plain, tail.B)
}

// worthPacking is how many bytes of messages without a checkpoint are compressed for a reader who takes zstd. Behind a
// checkpoint they are not: blocks that were compressed by themselves only fit at the beginning of a frame.
const worthPacking = 16 << 10

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
