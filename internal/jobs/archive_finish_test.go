package jobs_test

import (
	"errors"
	"testing"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tier"
	"github.com/varve-dev/varve/internal/tier/frozen"
)

// TestAnArchiveWithoutARowIsNotFinished reads back an archive that lacks a row of the session.
func TestAnArchiveWithoutARowIsNotFinished(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.inStore(persist.File)
	at, _ := w.archivable("s")
	if _, _, err := tier.Archive(t.Context(), w.store, at, nil); err != nil {
		t.Fatal(err)
	}
	key := session.Key{Tenant: at.Tenant, Key: uuid.MustParse(w.one(`SELECT session_key::text FROM session_archives`))}
	work, err := tier.Start(t.Context(), w.store, key, uuid.MustParse(w.one(`SELECT id::text FROM session_archives`)), false)
	if err != nil {
		t.Fatal(err)
	}
	part, err := frozen.NewWriter()
	if err != nil {
		t.Fatal(err)
	}
	var from tier.Cursor
	done, err := work.Fill(t.Context(), &from, part)
	if err != nil || !done {
		t.Fatal(done, err)
	}
	made, err := part.End()
	if err == nil {
		err = work.AddPart(t.Context(), 0, made)
	}
	if err != nil {
		t.Fatal(err)
	}
	parts, digest, tables, err := work.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rows := w.allRows(at)
	for table := range tables {
		tables[table]--
		if _, err := work.Finish(t.Context(), parts, digest, tables); !errors.Is(err, tier.ErrMoved) {
			t.Errorf("a row less of %s: %v", table, err)
		}
		tables[table]++
	}
	w.sameRows(at.ID, rows, w.allRows(at))
	if _, err := work.Finish(t.Context(), parts, digest, tables); err != nil {
		t.Error(err)
	}
	if n := w.count("messages") + w.count("archive_parts"); n > 0 {
		t.Errorf("%d rows are left", n)
	}
	w.changedPart(work, persist.ObjectName(key, uuid.MustParse(w.one(`SELECT objects[1]::text FROM session_archives`))))
}

// changedPart changes the object that an archive is, which is damage then.
func (w *world) changedPart(work *tier.Work, name string) {
	w.Helper()
	store := w.store.ResultStores().Outside[persist.File]
	body, err := store.Get(w.Context(), name, 0, 1<<20)
	if err != nil {
		w.Fatal(err)
	}
	body[len(body)/2] ^= 1
	if err := errors.Join(store.Delete(w.Context(), name), store.Put(w.Context(), name, body)); err != nil {
		w.Fatal(err)
	}
	_, _, err = tier.Verify(w.Context(), w.store, work.Key)
	if damaged := (*session.DamagedError)(nil); !errors.As(err, &damaged) {
		w.Errorf("of a part that has changed: %v", err)
	}
}
