// Package cold makes archives of sessions and brings sessions back from them: those that somebody asked for, and those
// of sessions that sleep, which are cold until they are used.
//
// Archive and Restore do one attempt at either, for the worker. A Thawer brings cold sessions back for whoever uses
// one, in the meantime of a request. What the rows of an archive are is package postgres's; it owns no tables.
package cold

import (
	"context"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/shelf"
)

// Archive writes the rows of a session into parts, reads them back, and deletes the rows. It calls trace after each
// step. It may be stopped at any time: only its last transaction changes what the session is.
func Archive(ctx context.Context, store *postgres.Store, work *postgres.ArchiveWork, trace func(step string)) error {
	var at postgres.ArchiveCursor
	for n, done := 0, false; !done; n++ {
		part, err := beginPart(ctx, store, work, n)
		if err != nil {
			return err
		}
		if done, err = store.FillPart(ctx, work, &at, part); err != nil {
			return err
		}
		made, err := part.End()
		if err != nil {
			return err
		}
		if err := store.AddPart(ctx, work, n, made); err != nil {
			return err
		}
		trace("part added")
	}
	parts, digest, tables, err := store.CheckArchive(ctx, work)
	if err != nil {
		return err
	}
	trace("archive checked")
	objects, err := store.FinishArchive(ctx, work, parts, digest, tables)
	if err != nil {
		return err
	}
	trace("session archived")
	store.ForgetObjects(ctx, work.Tenant, objects)
	trace("objects forgotten")
	return nil
}

// beginPart begins a part. The first of a cold session begins with the view, which is read so without the others.
func beginPart(ctx context.Context, store *postgres.Store, work *postgres.ArchiveWork, n int) (*shelf.Writer, error) {
	part, err := shelf.NewWriter()
	if err != nil || n > 0 || !work.Cold {
		return part, err
	}
	view, err := store.ViewOfHidden(ctx, work.Key)
	if err == nil && view != nil {
		err = part.View(view...)
	}
	return part, err
}

// Restore checks an archive, brings its rows back, and shows the session. It calls trace after each step. It may be
// stopped at any time: only its last transaction changes what the session is.
func Restore(ctx context.Context, store *postgres.Store, work *postgres.ArchiveWork, trace func(step string)) error {
	put := func(body []byte) error {
		err := store.RestorePart(ctx, work, body)
		trace("part restored")
		return err
	}
	if err := each(ctx, store, work, trace, put); err != nil {
		return err
	}
	objects, err := store.FinishRestoring(ctx, work)
	if err != nil {
		return err
	}
	trace("session restored")
	store.ForgetObjects(ctx, work.Tenant, objects)
	trace("objects forgotten")
	return nil
}

// each calls put with the parts of an archive once all of them are known to be whole. One part is read once.
func each(
	ctx context.Context, store *postgres.Store, work *postgres.ArchiveWork, trace func(step string),
	put func(body []byte) error,
) error {
	var only []byte
	keep := func(body []byte) {
		if work.Parts == 1 {
			only = body
		}
	}
	if err := store.ExpectWhole(ctx, work, keep); err != nil {
		return err
	}
	trace("archive checked")
	if only != nil {
		return put(only)
	}
	_, _, err := store.EachPart(ctx, work, func(_ int, body []byte) error { return put(body) })
	return err
}
