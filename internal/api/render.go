package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/zframe"
)

var degradedViews = promauto.NewCounter(prometheus.CounterOpts{
	Name: "varve_degraded_views_total",
	Help: "Reads that were answered with an older view, because no valid one could be made of the newest checkpoint.",
})

// readRendered answers with a view that is said in another format, repaired, or bounded. If the newest checkpoint gives
// none that is valid, the next older one does, and in the end the log itself.
func (s *Server) readRendered(req *request.Request, request viewRequest) error {
	from := postgres.Newest
	if request.full {
		from = 0
	}
	view, notes, err := s.render(req.Ctx, request, from)
	if err != nil && from == postgres.Newest && isBroken(err) {
		degradedViews.Inc()
		s.Log.Error("view is broken, an older one is served", "session", request.at.ID, "tenant", request.at.Tenant, "err", err)
		view, notes, err = s.lastGood(req.Ctx, request, err)
	}
	if err != nil {
		return err
	}
	tag := request.tagOf(view.Version, view.Format, view.Model)
	if notes.degraded {
		tag = `W/"degraded"` // what is wrong may be mended at any time
	}
	if request.format != "" {
		view.Format = request.format
	}
	return answerView(req, request, tag, view, notes)
}

// brokenError says that no valid view could be made of what is stored.
type brokenError struct{ cause error }

func (e *brokenError) Error() string { return e.cause.Error() }
func (e *brokenError) Unwrap() error { return e.cause }

func isBroken(err error) bool {
	var broken *brokenError
	return errors.As(err, &broken)
}

// lastGood renders the newest view that is valid, behind the newest checkpoint. broken is what is wrong with that.
func (s *Server) lastGood(ctx context.Context, request viewRequest, broken error) (*postgres.View, viewNotes, error) {
	newest, err := s.Store.View(ctx, request.at, postgres.Version{})
	if err != nil {
		return nil, viewNotes{}, err
	}
	older := []int{0}
	for n := max(1, newest.Checkpoint-postgres.KeptCheckpoints); n < newest.Checkpoint; n++ {
		older = append(older, n)
	}
	for _, n := range slices.Backward(older) {
		view, notes, err := s.render(ctx, request, n)
		switch {
		case err == nil:
			view.Checkpoint, notes.degraded = n, true
			return view, notes, nil
		case !isBroken(err) && !errors.Is(err, session.ErrPruned):
			return nil, viewNotes{}, err
		}
	}
	return nil, viewNotes{}, broken
}

// render makes the view that begins with a checkpoint.
func (s *Server) render(ctx context.Context, request viewRequest, checkpoint int) (*postgres.View, viewNotes, error) {
	var notes viewNotes
	opened, err := s.Store.OpenView(ctx, request.at, checkpoint)
	if err != nil {
		return nil, notes, err
	}
	if request.bare {
		opened.Entries = nil
	}
	units, err := unitsOf(&opened)
	if err != nil {
		return nil, notes, &brokenError{err}
	}
	view := opened.View
	if request.most > 0 && view.Tokens > request.most {
		if units, notes.left, err = bound(units, view.Format, view.Tokens, request.most); err != nil {
			return nil, notes, err
		}
		view.Tokens -= notes.left.Tokens
	}
	made, err := renderUnits(&opened, units, request)
	if err != nil {
		return nil, notes, err
	}
	apart := 0
	if wire.Apart(request.target(view.Format)) {
		apart = made.System
	}
	notes.repairs = made.Repairs
	view.System = bytes.Join(made.Bodies[:apart], []byte{','})
	view.Body, view.Size, view.Tail = nil, 0, bytes.Join(made.Bodies[apart:], []byte{','})
	return &view, notes, nil
}

// target is the format that the reader gets.
func (r *viewRequest) target(own session.Format) session.Format {
	if r.format != "" {
		return r.format
	}
	return own
}

// renderUnits renders what stands of a view, and refuses a rendition that its provider would.
func renderUnits(opened *postgres.OpenedView, units []unit, request viewRequest) (*wire.Rendition, error) {
	view := storedOf(opened.Head)
	for i := range units {
		bodies, err := units[i].open(opened.Format)
		if err != nil {
			return nil, &brokenError{err}
		}
		view = append(view, bodies...)
	}
	options := wire.Options{Model: opened.Model, Pending: request.pending}
	if request.model != "" {
		options.Model, options.Author = request.model, opened.Model
	}
	target := request.target(opened.Format)
	made := wire.Render(target, view, options)
	for _, v := range wire.Validate(target, made.Bodies, options) {
		return nil, &brokenError{fmt.Errorf("the rendition breaks %s at its message %d: %s", v.Rule, v.Message, v.Detail)}
	}
	return made, nil
}

func storedOf(entries []postgres.Entry) []wire.Stored {
	list := make([]wire.Stored, len(entries))
	for i := range entries {
		list[i] = wire.Stored{Format: entries[i].Format, Body: entries[i].Body, Seq: entries[i].Seq}
	}
	return list
}

// decompressed is the body of the view's checkpoint.
func decompressed(v *postgres.OpenedView) ([]byte, error) {
	if v.Size == 0 {
		return nil, nil
	}
	return zframe.Decompress(nil, v.Body, v.Size)
}
