// Package view decides what a read of a session returns. The store's one read (postgres.View) has the newest checkpoint
// and the messages after it. If that is what the reader asks for (Request.AsStored), its bytes go out as they are.
// Otherwise Request.Make splits them into messages, leaves units out until the view fits (bound.go), and renders it in
// the reader's format, repaired where its provider would refuse it. Request.LastGood stands in for a view that cannot
// be made valid.
//
// The package also owns how joined messages are split (split.go), the head of an answer (head.go), and the check of a
// new rendition before it is committed (check.go). It reads the sessions, checkpoints and messages tables through the
// store.
package view

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// Request is how a reader wants a view.
type Request struct {
	MaxTokens int64            // 0 for no bound
	Format    session.Format   // "" for the session's own
	Model     string           // that the view is for; "" for the session's
	Dialect   provider.Dialect // of the server that the view is for; "" for what the model's name tells
	Pending   wire.Pending     // what becomes of calls that have no result yet
	Fit       *Fit             // nil unless the view must fit the session's window

	Largest int64                    // bytes of a view that is read without asking Admit; 0 for any
	Admit   func(weight int64) error // waits for this number of bytes of memory; must be set if Largest is
	// Heavy does work on a number of bytes with a share of the processors; nil does it at once.
	Heavy func(bytes int64, work func() error) error
}

func (r *Request) heavy(bytes int64, work func() error) error {
	if r.Heavy == nil {
		return work()
	}
	return r.Heavy(bytes, work)
}

// Notes are what an answer says about a view besides its messages.
type Notes struct {
	Omitted  protocol.Omitted
	Cut      []protocol.Cut
	Degraded bool // an older view stands in for one that cannot be made valid
	Repairs  []wire.Repair

	ToolNames map[string]string // see wire.Rendition
}

// BrokenError reports that no valid view could be made of what is stored.
type BrokenError struct{ cause error }

func (e *BrokenError) Error() string { return e.cause.Error() }

// Unwrap returns what is wrong with the view.
func (e *BrokenError) Unwrap() error { return e.cause }

// Target returns the format that the reader gets.
func (r *Request) Target(own session.Format) session.Format {
	if r.Format != "" {
		return r.Format
	}
	return own
}

// AsStored reports whether the stored view is what the reader asks for. Then it is known to be valid for its provider,
// without a look at its JSON.
func (r *Request) AsStored(v *postgres.View) bool {
	if v.LastSeq == 0 {
		return true
	}
	validator, ok := r.Validator(v)
	if !ok || v.Loose != nil {
		return false
	}
	validator.AddShapes(v.TailShapes)
	return validator.ValidFor(r.Options(v))
}

// Validator returns a validator that has gone over the system prompt and the checkpoint of a stored view. If the
// messages after them leave it valid, the view is what the reader asks for; without one it is not.
func (r *Request) Validator(v *postgres.View) (validator *wire.FastValidator, ok bool) {
	if !r.mayBeStored(v) {
		return nil, false
	}
	validator = wire.NewFastValidator(v.Format)
	validator.AddShapes(v.SystemShapes)
	if v.Checkpoint > 0 {
		if !validator.ValidFor(r.Options(v)) {
			return nil, false
		}
		validator = wire.ResumeFastValidator(v.Format, v.Validator, v.OpenCalls)
	}
	return validator, true
}

// mayBeStored reports whether the reader asks for nothing that a stored view has not.
func (r *Request) mayBeStored(v *postgres.View) bool {
	options := r.Options(v)
	fits := options.Takes(v.Format, int64(v.Size)+v.TailBytes) && !r.mayHide(v) && v.Tokens <= r.limit(v)
	return fits && !r.mayUnbind(v) && !r.mayForget(v) && r.Target(v.Format) == v.Format &&
		r.Pending == wire.KeepPending && (r.Model == "" || r.Model == v.Model)
}

// How much memory Make takes, by estimate: for each byte of the stored view (one of 90 MB of pictures took 480 MB with
// the garbage between), and for each message beside its bytes.
const (
	memoryPerByte    = 5
	memoryPerMessage = 3 << 10
)

// Fill reads what was left out of a view, if it was, when there is the memory to make of it what the reader asks for.
//
// Errors: those of Admit and of postgres.Store.FillView.
func (r *Request) Fill(ctx context.Context, store *postgres.Store, at session.Address, v *postgres.View) error {
	held := int64(0)
	for v.LeftOut { // what stands in for a damaged one may be large, too
		if weight := weightOf(v); weight > held {
			if err := r.Admit(weight - held); err != nil {
				return err
			}
			held = weight
		}
		if err := r.heavy(v.Bytes(), func() error { return store.FillView(ctx, at, v) }); err != nil {
			return err
		}
	}
	return nil
}

// weightOf returns the memory that Make takes of a view that was left out. Nobody has counted the messages of its
// checkpoint: they are as many as its bytes and the view's tokens can be, at most.
func weightOf(v *postgres.View) int64 {
	size := int64(v.Size)
	messages := v.LastSeq - v.Through + min(v.Tokens/wire.MessageTokens, size/smallMessage)
	bytes := v.TailBytes + size
	return memoryPerByte*bytes + memoryPerMessage*min(messages, bytes/smallMessage)
}

// smallMessage is how few bytes a message has: what has fewer is rare enough to be forgotten.
const smallMessage = 32

// Make makes the view that the reader asks for out of a stored one, which it leaves as it is. Its System and its
// Tail, or its Bodies if the stored view was filled, have all messages, and it has no Body. A stored view of more
// tokens than asked for must have those of its messages.
//
// Errors: *BrokenError, *session.CannotFitError, ErrShortEnd, and what makeFitting returns.
func (r *Request) Make(ctx context.Context, stored *postgres.View) (*postgres.View, Notes, error) {
	var notes Notes
	opened, err := open(stored)
	if err != nil {
		return nil, notes, &BrokenError{err}
	}
	opened.limit = r.limit(stored)
	if err := opened.leaveCompacted(r); err != nil {
		return nil, notes, err
	}
	if r.Fit != nil {
		return r.makeFitting(ctx, &opened)
	}
	tokens := opened.size
	switch {
	case r.MaxTokens > 0 && tokens > r.MaxTokens:
		if notes.Omitted, err = opened.bound(r.MaxTokens); err != nil {
			return nil, notes, err
		}
		tokens -= notes.Omitted.Tokens
	case stored.End != nil && stored.End.Messages > 0: // it fits now, for a compaction has made it smaller
		return nil, notes, ErrShortEnd
	}
	messages, err := opened.messages()
	if err != nil {
		return nil, notes, &BrokenError{err}
	}
	rendition, err := r.render(ctx, &opened, messages, notes.Omitted.Messages > 0)
	if err != nil {
		return nil, notes, err
	}
	notes.Repairs, notes.ToolNames = rendition.Repairs, rendition.ToolNames
	made := viewOf(stored, r.Target(stored.Format), rendition)
	made.Tokens = tokens
	return made, notes, nil
}

// viewOf returns the stored view with the messages of a rendition.
func viewOf(stored *postgres.View, target session.Format, made *wire.Rendition) *postgres.View {
	separate := 0
	if provider.SeparatesSystem(target) {
		separate = made.System
	}
	v := *stored
	v.System = bytes.Join(made.Bodies[:separate], []byte{','})
	v.Body, v.Size = nil, 0
	v.Loose = nil
	if stored.Loose != nil {
		v.Tail, v.Bodies = nil, made.Bodies[separate:]
	} else {
		v.Tail = bytes.Join(made.Bodies[separate:], []byte{','})
	}
	return &v
}

// Options returns what a stored view is rendered for.
func (r *Request) Options(stored *postgres.View) wire.Options {
	o := wire.Options{Model: stored.Model, Dialect: r.Dialect, Pending: r.Pending}
	if r.Model != "" {
		o.Model, o.Author = r.Model, stored.Model
	}
	return o
}

// render renders messages for the reader, and refuses a rendition that its provider would refuse.
func (r *Request) render(
	ctx context.Context, o *opened, messages []wire.Stored, bounded bool,
) (*wire.Rendition, error) {
	stored := o.stored
	options := r.Options(stored)
	if r.Binds(stored) {
		options.Unbound = unbound(stored, messages, bounded)
	}
	options.Removed = o.removed
	target := r.Target(stored.Format)
	rendition, err := wire.Render(ctx, target, messages, options)
	if err != nil {
		return nil, err
	}
	violations, err := wire.Validate(ctx, target, rendition.Bodies, options)
	if err != nil {
		return nil, err
	}
	for _, v := range violations {
		err := fmt.Errorf("the rendition breaks %s at its message %d: %s", v.Rule, v.Message, v.Detail)
		return nil, &BrokenError{err}
	}
	isTold := func(r wire.Repair) bool { return r.Kind == "compacted" }
	if o.compacted != nil && !slices.ContainsFunc(rendition.Repairs, isTold) {
		rendition.Repairs = slices.Insert(rendition.Repairs, 0, *o.compacted)
	}
	return rendition, nil
}

// LastGood makes the newest view that is valid of those before the newest one, which is broken. The last of them is the
// log itself. If there is none, it returns broken.
func (r *Request) LastGood(
	ctx context.Context, store *postgres.Store, at session.Address, newest *postgres.View, broken error,
) (*postgres.View, Notes, error) {
	older := []int{0}
	for n := max(1, newest.Checkpoint-postgres.KeptCheckpoints); n < newest.Checkpoint; n++ {
		older = append(older, n)
	}
	for _, n := range slices.Backward(older) {
		stored, err := store.OlderView(ctx, at, postgres.ViewFrom(n), postgres.ViewRead{Largest: r.Largest})
		if err == nil {
			err = r.Fill(ctx, store, at, &stored)
		}
		isLost := errors.Is(err, session.ErrPruned) || errors.Is(err, session.ErrNotFound)
		if isLost || errors.Is(err, session.ErrDamaged) {
			continue
		}
		if err != nil {
			return nil, Notes{}, err
		}
		var made *postgres.View
		var notes Notes
		err = r.heavy(stored.Bytes(), func() (err error) {
			made, notes, err = r.Make(ctx, &stored)
			return err
		})
		if err == nil {
			notes.Degraded = true
			return made, notes, nil
		}
		if isBroken := errors.As(err, new(*BrokenError)); !isBroken {
			return nil, Notes{}, err
		}
	}
	return nil, Notes{}, broken
}
