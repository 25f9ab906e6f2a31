package jobs_test

import (
	"errors"
	"testing"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tier/frozen"
)

// TestAnArchiveWithoutARowIsNotFinished reads back an archive that lacks a row of the session.
func TestAnArchiveWithoutARowIsNotFinished(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.inStore(persist.File)
	at, _ := w.archivable("s")
	if _, _, err := w.store.Archive(t.Context(), at, nil); err != nil {
		t.Fatal(err)
	}
	key := session.Key{Tenant: at.Tenant, Key: uuid.MustParse(w.one(`SELECT session_key::text FROM session_archives`))}
	work, err := w.store.StartArchive(t.Context(), key, uuid.MustParse(w.one(`SELECT id::text FROM session_archives`)), false)
	if err != nil {
		t.Fatal(err)
	}
	part, err := frozen.NewWriter()
	if err != nil {
		t.Fatal(err)
	}
	var from postgres.ArchiveCursor
	done, err := w.store.FillPart(t.Context(), work, &from, part)
	if err != nil || !done {
		t.Fatal(done, err)
	}
	made, err := part.End()
	if err == nil {
		err = w.store.AddPart(t.Context(), work, 0, made)
	}
	if err != nil {
		t.Fatal(err)
	}
	parts, digest, tables, err := w.store.CheckArchive(t.Context(), work)
	if err != nil {
		t.Fatal(err)
	}
	rows := w.allRows(at)
	for table := range tables {
		tables[table]--
		if _, err := w.store.FinishArchive(t.Context(), work, parts, digest, tables); !errors.Is(err, postgres.ErrArchiveMoved) {
			t.Errorf("a row less of %s: %v", table, err)
		}
		tables[table]++
	}
	w.sameRows(at.ID, rows, w.allRows(at))
	if _, err := w.store.FinishArchive(t.Context(), work, parts, digest, tables); err != nil {
		t.Error(err)
	}
	if n := w.count("messages") + w.count("archive_parts"); n > 0 {
		t.Errorf("%d rows are left", n)
	}
	w.changedPart(work, persist.ObjectName(key, uuid.MustParse(w.one(`SELECT objects[1]::text FROM session_archives`))))
}

// changedPart changes the object that an archive is, which is damage then.
func (w *world) changedPart(work *postgres.ArchiveWork, name string) {
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
	_, _, err = w.store.VerifyArchive(w.Context(), work.Key)
	if damaged := (*session.DamagedError)(nil); !errors.As(err, &damaged) {
		w.Errorf("of a part that has changed: %v", err)
	}
}
