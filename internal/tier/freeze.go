// Package tier moves what was said in sessions down the ladder from rows to packs to objects, and back.
//
// A Packer moves old messages out of their rows into packs. Freeze moves all rows of a session into the parts of an
// archive, because somebody asked for it, or because the session sleeps: then it is cold. A Thawer brings them back, in
// the worker, or for whoever uses a cold session, in the meantime of a request. What packs and parts are is packages
// pack's and frozen's; package postgres plans and commits.
package tier

import (
	"bytes"
	"context"
	"crypto/sha256"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tier/frozen"
)

// Freeze writes the rows of a session into parts, reads them back, and deletes the rows. It calls trace after each
// step. It may be stopped at any time: only its last transaction changes what the session is.
func Freeze(ctx context.Context, store *postgres.Store, work *postgres.ArchiveWork, trace func(step string)) error {
	var at postgres.ArchiveCursor
	written := sha256.New()
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
		written.Write(made.Digest[:])
		trace("part added")
	}
	parts, digest, tables, err := store.CheckArchive(ctx, work)
	if err == nil && !bytes.Equal(digest, written.Sum(nil)) {
		err = &session.DamagedError{What: "the archive"}
	}
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
func beginPart(ctx context.Context, store *postgres.Store, work *postgres.ArchiveWork, n int) (*frozen.Writer, error) {
	part, err := frozen.NewWriter()
	if err != nil || n > 0 || !work.Cold {
		return part, err
	}
	view, err := store.ViewOfHidden(ctx, work.Key)
	if err == nil && view != nil {
		err = part.View(view...)
	}
	return part, err
}

// Thaw checks an archive, brings its rows back, and shows the session. It calls trace after each step. It may be
// stopped at any time: only its last transaction changes what the session is.
func Thaw(ctx context.Context, store *postgres.Store, work *postgres.ArchiveWork, trace func(step string)) error {
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
	_, _, err := store.EachPart(ctx, work, put)
	return err
}
