package verify_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"

	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/persist/object"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/replay"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tier"
)

// inFiles puts what is new into a directory.
func (w *world) inFiles() object.Store {
	w.Helper()
	files, err := object.OpenDir(w.TempDir())
	if err != nil {
		w.Fatal(err)
	}
	w.store.UseResultStores(persist.Stores{New: persist.File, Outside: map[persist.Kind]object.Store{persist.File: files}})
	return files
}

// talked makes a session with some messages.
func (w *world) talked(id string) (session.Address, session.Key) {
	w.Helper()
	s := &replay.Session{Format: session.OpenAIChat}
	for i := range 20 {
		s.Messages = append(s.Messages, replay.Message{Body: fmt.Appendf(nil, `{"role":"user","content":"question %d of %s"}`, i, id)})
	}
	return session.Address{Tenant: w.tenant.ID, ID: id}, w.save(id, s, 20_000, 20, true)
}

// archive archives a session or, if it is to be cold, freezes it, as a worker would.
func (w *world) archive(at session.Address, key session.Key, freezes bool) {
	w.Helper()
	var err error
	if freezes {
		err = w.store.CountUsage(w.Context(), at.Tenant, []session.Reading{{Session: at.ID}})
		if err == nil {
			_, err = tier.FreezeSleeping(w.Context(), w.store, at.Tenant, 0, 100)
		}
	} else {
		_, _, err = tier.Archive(w.Context(), w.store, at, nil)
	}
	if err == nil {
		err = w.attempt(key, false)
	}
	if err != nil {
		w.Fatal(err)
	}
}

// attempt archives a session that is hidden, or restores one.
func (w *world) attempt(key session.Key, back bool) error {
	var id uuid.UUID
	err := w.admin.QueryRow(w.Context(), `SELECT id FROM session_archives WHERE session_key = $1`, key.Key).Scan(&id)
	if err != nil {
		return err
	}
	work, err := tier.Start(w.Context(), w.store, key, id, back)
	if err != nil {
		return err
	}
	if back {
		return work.Thaw(w.Context(), func(string) {})
	}
	return work.Freeze(w.Context(), func(string) {})
}

// partOf returns the object that is the only part of an archive, and how many bytes of it are rows.
func (w *world) partOf(key session.Key) (name string, rows int) {
	w.Helper()
	var id uuid.UUID
	err := w.admin.QueryRow(w.Context(), `SELECT objects[1], stored FROM session_archives WHERE session_key = $1`, key.Key).Scan(&id, &rows)
	if err != nil {
		w.Fatal(err)
	}
	return persist.ObjectName(key, id), rows
}

// put replaces an object; nil takes it away.
func (w *world) put(in object.Store, name string, body []byte) {
	w.Helper()
	err := in.Delete(w.Context(), name)
	if err == nil && body != nil {
		err = in.Put(w.Context(), name, body)
	}
	if err != nil {
		w.Fatal(err)
	}
}

func flipped(body []byte, at int) []byte {
	body = slices.Clone(body)
	body[at] ^= 1
	return body
}

// harms are what may happen to the object of an archive.
var harms = map[string]func(body []byte, rows int) []byte{
	"one byte":  func(body []byte, rows int) []byte { return flipped(body, rows/2) },
	"the first": func(body []byte, _ int) []byte { return flipped(body, 0) },
	"the last":  func(body []byte, rows int) []byte { return flipped(body, rows-1) },
	"cut":       func(body []byte, rows int) []byte { return body[:rows-1] },
	"empty":     func([]byte, int) []byte { return []byte{} },
	"missing":   func([]byte, int) []byte { return nil },
	"another text": func(body []byte, rows int) []byte { // what zstd takes for whole
		decoder, _ := zstd.NewReader(nil)
		plain, _ := decoder.DecodeAll(body[:rows], nil)
		encoder, _ := zstd.NewWriter(nil, zstd.WithEncoderCRC(false), zstd.WithEncoderLevel(zstd.SpeedBestCompression)) // not longer than it was
		return encoder.EncodeAll(bytes.ReplaceAll(plain, []byte("question 1 of"), []byte("question 2 of")), nil)
	},
	"another's": func(body []byte, _ int) []byte { return append([]byte("x"), body...) },
	"the view":  func(body []byte, _ int) []byte { return flipped(body, 90) }, // behind its digest
}

// TestADamagedObjectOfAnArchiveIsFound damages the objects of archives that were asked for, of cold sessions, and of a
// session that a worker is about to restore.
func TestADamagedObjectOfAnArchiveIsFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain)
	files := w.inFiles()
	w.talked("bystander")
	for harm, do := range harms {
		for _, kind := range []string{"archived", "cold", "restoring"} {
			at, key := w.talked(harm + " " + kind)
			w.archive(at, key, kind == "cold")
			if kind == "restoring" {
				if _, _, err := tier.Unarchive(t.Context(), w.store, at, nil); err != nil {
					t.Fatal(err)
				}
			}
			w.clean()
			name, rows := w.partOf(key)
			was, err := files.Get(t.Context(), name, 0, 1<<20)
			if err != nil || len(was) != rows {
				t.Fatal(len(was), rows, err)
			}
			w.put(files, name, do(was, rows))
			w.archiveFound(at, true)
			w.put(files, name, was)
			w.clean()
			if kind == "restoring" {
				if err := w.attempt(key, true); err != nil {
					t.Error(err)
				}
			}
			if _, err := w.store.Delete(t.Context(), at, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestWhoeverVerifiesFindsTheSame verifies an archived session, a cold one and one that is neither, as each login that
// may.
func TestWhoeverVerifiesFindsTheSame(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain)
	w.inFiles()
	at, key := w.talked("archived")
	w.archive(at, key, false)
	at, key = w.talked("cold")
	w.archive(at, key, true)
	w.talked("s")
	want := w.clean()
	stores := *w.store.ResultStores()
	for _, dsn := range []string{w.dsn, pgtest.Owner(w.dsn)} {
		pool, err := postgres.OpenAdmin(t.Context(), dsn, 4)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		w.store = postgres.New(pool, nil, compactor.CapAtIngest)
		w.store.UseResultStores(stores)
		if got := w.clean(); got.Sessions != 3 || !reflect.DeepEqual(got, want) {
			t.Errorf("one finds %+v, another %+v", want, got)
		}
	}
}

// archiveFound requires that the archive of a session is found to be damaged, and nothing else, or nothing at all; also
// by a repair, which cannot mend it, and if only the session is looked at.
func (w *world) archiveFound(at session.Address, damaged bool) {
	w.Helper()
	want := 0
	if damaged {
		want = 1
	}
	for _, repair := range []bool{false, true} {
		report := w.verify(repair)
		if len(report.Findings) != want {
			w.Errorf("%s: found %+v", at.ID, report.Findings)
		}
		for _, f := range report.Findings {
			if f.Kind != "archive" || f.Session != at.ID || f.Key == uuid.Nil || f.Repaired != "" || report.Unexplained == 0 {
				w.Errorf("%s: found %+v", at.ID, f)
			}
		}
	}
}

// TestADamagedRowOfAnArchiveIsFound damages the rows of archives that lie in PostgreSQL.
func TestADamagedRowOfAnArchiveIsFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain)
	for _, sql := range []string{
		`UPDATE archive_parts SET body = set_byte(body, 40, get_byte(body, 40) # 1) WHERE session_key = $1`,
		`UPDATE archive_parts SET body = substring(body FOR octet_length(body) - 1) WHERE session_key = $1`,
		`DELETE FROM archive_parts WHERE session_key = $1`,
		`UPDATE session_archives SET rows = rows + 1 WHERE session_key = $1`,
		`UPDATE session_archives SET digest = sha256('') WHERE session_key = $1`,
		`UPDATE session_archives SET parts = 2 WHERE session_key = $1`,
	} {
		at, key := w.talked("s")
		w.archive(at, key, false)
		w.clean()
		if tag, err := w.admin.Exec(t.Context(), sql, key.Key); err != nil || tag.RowsAffected() != 1 {
			t.Fatal(sql, tag, err)
		}
		w.archiveFound(at, true)
		if _, err := w.store.Delete(t.Context(), at, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// meanwhile is a store in which something happens before the first object is read.
type meanwhile struct {
	object.Store
	do *func()
}

func (m meanwhile) Get(ctx context.Context, name string, at int64, size int) ([]byte, error) {
	if do := *m.do; do != nil {
		*m.do = nil
		do()
	}
	return m.Store.Get(ctx, name, at, size)
}

// TestAnArchiveThatIsReplacedMeanwhileIsNoFinding restores a session while its archive is read, and archives it again.
func TestAnArchiveThatIsReplacedMeanwhileIsNoFinding(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain)
	files := w.inFiles()
	at, key := w.talked("s")
	w.archive(at, key, false)
	restore := func() {
		_, _, err := tier.Unarchive(t.Context(), w.store, at, nil)
		if err := errors.Join(err, w.attempt(key, true)); err != nil {
			t.Error(err)
		}
	}
	replace := func() {
		restore()
		w.archive(at, key, false)
	}
	for _, do := range []func(){replace, restore} {
		w.store.UseResultStores(persist.Stores{New: persist.File, Outside: map[persist.Kind]object.Store{persist.File: meanwhile{files, &do}}})
		w.clean()
		if do != nil {
			t.Error("no object was read")
		}
	}
}
