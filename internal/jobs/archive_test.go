// Not under the race detector: it reads too many bytes.

package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/erasure"
	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/persist/object"
	"github.com/varve-dev/varve/internal/persist/object/s3test"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tier"
)

// archived asks for a session's archive and waits until it is complete.
func (w *world) archived(at session.Address) session.Archive {
	w.Helper()
	if _, _, err := tier.Archive(w.Context(), w.store, at, nil); err != nil {
		w.Fatal(err)
	}
	return w.archiveIn(at, session.Archived)
}

func (w *world) archiveIn(at session.Address, state session.ArchiveState) session.Archive {
	w.Helper()
	w.drained(fmt.Sprintf("session_archives a JOIN sessions s ON s.key = a.session_key WHERE s.id = '%s' AND a.state <> '%s'", at.ID, state))
	found, err := tier.ArchiveOf(w.Context(), w.store, at)
	if err != nil {
		w.Fatal(err)
	}
	return found
}

// restored asks for a session back and waits until it is.
func (w *world) restored(at session.Address) {
	w.Helper()
	if _, _, err := tier.Unarchive(w.Context(), w.store, at, nil); err != nil {
		w.Fatal(err)
	}
	w.back(at)
}

// back waits until a session is not archived.
func (w *world) back(at session.Address) {
	w.Helper()
	w.drained(fmt.Sprintf("sessions WHERE id = '%s' AND archived", at.ID))
	w.drained("river_job WHERE kind = 'archive' AND finalized_at IS NULL")
}

// elsewhere are columns that may be others when a session is back: where bodies lie, and what is made anew.
var elsewhere = map[string][]string{
	"result_bodies": {"store", "held_in", "objects_in"},
	"result_chunks": {"body", "object", "object_at", "object_size"},
	"uploads":       {"searched_in", "searched_in_part"},
	"sessions":      {"restored_at", "idle_asked"},
}

// allRows returns all rows of a session, in all tables that an archive has or that stay, as text.
func (w *world) allRows(at session.Address) []string {
	w.Helper()
	conn, err := pgx.Connect(w.Context(), w.dsn)
	if err != nil {
		w.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(w.Context()))
	tables, _ := tier.Tables()
	for _, table := range tier.StayWithSession {
		if !slices.Contains([]string{"session_archives", "archive_parts", "findings", "usage_sessions"}, table) {
			tables = append(tables, table)
		}
	}
	var all []string
	for _, table := range append(tables, "sessions") {
		of := `t.session_key = s.key`
		switch table {
		case "sessions":
			of = `t.key = s.key`
		case "result_chunks": // those of bodies that another session holds
			of = `EXISTS (SELECT FROM result_bodies b WHERE b.session_key = s.key AND b.id = t.body_id AND coalesce(b.held_in, b.session_key) = t.session_key)`
		}
		rows, _ := conn.Query(w.Context(), `
			SELECT (to_jsonb(t) - 'session_key' - coalesce($3::text[], '{}'))::text
			  FROM `+table+` t, sessions s
			 WHERE s.tenant_id = $1 AND s.id = $2 AND t.tenant_id = s.tenant_id AND `+of, at.Tenant, at.ID, elsewhere[table])
		found, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			w.Fatal(err)
		}
		for _, row := range found {
			all = append(all, table+" "+row)
		}
	}
	slices.Sort(all)
	return all
}

// sameRows reports the rows that are not what they were.
func (w *world) sameRows(what string, before, after []string) {
	w.Helper()
	if slices.Equal(before, after) {
		return
	}
	for _, row := range before {
		if !slices.Contains(after, row) {
			w.Errorf("%s: gone or changed: %.300s", what, row)
		}
	}
	for _, row := range after {
		if !slices.Contains(before, row) {
			w.Errorf("%s: new or changed: %.300s", what, row)
		}
	}
}

// atOnce has archives that failed tried again now, until the test ends.
func (w *world) atOnce() {
	w.Helper()
	conn, err := pgx.Connect(w.Context(), w.dsn)
	if err != nil {
		w.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for tick := time.NewTicker(50 * time.Millisecond); ; {
			select {
			case <-tick.C:
				_, _ = conn.Exec(w.Context(), `UPDATE river_job SET state = 'available', scheduled_at = now() WHERE kind = 'archive' AND state IN ('available', 'retryable', 'scheduled') AND scheduled_at > now()`)
			case <-w.Context().Done():
				return
			}
		}
	}()
	w.Cleanup(func() {
		<-done
		_ = conn.Close(context.Background())
	})
}

// inStore puts what is new into a store.
func (w *world) inStore(kind persist.Kind) {
	w.Helper()
	switch kind {
	case persist.File:
		w.inFiles()
	case persist.S3:
		server := s3test.New(w.T)
		bucket, err := object.OpenBucket(server.BucketConfig)
		if err != nil {
			w.Fatal(err)
		}
		w.store.UseResultStores(persist.Stores{New: persist.S3, Outside: map[persist.Kind]object.Store{persist.S3: bucket}})
		if err := w.store.CheckResultStores(w.Context()); err != nil {
			w.Fatal(err)
		}
	}
}

// inStores runs a test in a world of its own for each kind of store.
func inStores(t *testing.T, kinds []persist.Kind, test func(t *testing.T, w *world, kind persist.Kind)) {
	t.Helper()
	if testing.Short() { // the tests of internal/persist have S3, too
		kinds = slices.DeleteFunc(kinds, func(k persist.Kind) bool { return k == persist.S3 })
	}
	for _, kind := range kinds {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.inStore(kind)
			test(t, w, kind)
		})
	}
}

// TestAnArchivedSessionComesBackRowByRow archives and restores sessions with all that a session can have.
func TestAnArchivedSessionComesBackRowByRow(t *testing.T) {
	t.Parallel()
	inStores(t, []persist.Kind{persist.Postgres, persist.File, persist.S3}, func(t *testing.T, w *world, kind persist.Kind) {
		w.plant()
		w.quiet()
		w.offloaded()
		var sessions []session.Address
		before := map[string][]string{}
		found, err := w.store.Sessions(t.Context(), w.tenant, session.Page{Limit: 100})
		if err != nil || len(found) < 4 {
			t.Fatalf("%d sessions: %v", len(found), err)
		}
		for i := range found {
			at := session.Address{Tenant: w.tenant, ID: found[i].ID}
			sessions = append(sessions, at)
			before[at.ID] = w.allRows(at)
		}
		for _, at := range sessions {
			made := w.archived(at)
			if made.Messages == 0 || made.StoredBytes == 0 || made.SHA256 == nil || made.Rows != made.DoneRows || made.Error != nil || made.Store != kind.String() {
				t.Errorf("%s: %+v", at.ID, made)
			}
			if _, err := w.store.Session(t.Context(), at); !errors.Is(err, session.ErrNotFound) {
				t.Errorf("%s is archived, and is there: %v", at.ID, err)
			}
		}
		w.verified()
		tables, anew := tier.Tables()
		for _, table := range append(tables, anew...) {
			if n := w.count(table + " t JOIN sessions s ON s.key = t.session_key AND s.archived"); n > 0 {
				t.Errorf("%d rows of %s are left", n, table)
			}
		}
		for _, at := range sessions {
			w.restored(at)
		}
		for _, at := range sessions {
			w.sameRows(at.ID, before[at.ID], w.allRows(at))
		}
		w.verified()
		if n := w.count("archive_parts"); n > 0 {
			t.Errorf("%d parts are left", n)
		}
	})
}

// planted makes a session with results, packs and a checkpoint, and returns its messages.
func (w *world) archivable(id string) (session.Address, [][]byte) {
	w.Helper()
	at := w.session(id)
	bodies := turns(40, 1500)
	w.appendLog(at, session.OpenAIChat, bodies)
	return at, bodies
}

// TestAnArchiveIsMadeAndRestoredWhereverItsWorkerIsKilled kills a worker at each step, and lets another go on.
func TestAnArchiveIsMadeAndRestoredWhereverItsWorkerIsKilled(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"archive begun", "part added", "archive checked", "session archived"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			at, bodies := w.archivable("s")
			_, stop := w.work(jobs.Config{})
			w.offloaded()
			stop()
			before := w.allRows(at)
			if _, _, err := tier.Archive(t.Context(), w.store, at, nil); err != nil {
				t.Fatal(err)
			}
			w.kill(step)
			w.verified()
			w.work(jobs.Config{Beat: beat})
			w.archiveIn(at, session.Archived)
			w.restored(at)
			w.sameRows(step, before, w.allRows(at))
			w.same(at, session.OpenAIChat, bodies)
			w.verified()
		})
	}
	for _, step := range []string{"archive begun", "archive checked", "part restored", "session restored"} {
		t.Run("back, "+step, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			at, bodies := w.archivable("s")
			_, stop := w.work(jobs.Config{})
			w.offloaded()
			before := w.allRows(at)
			w.archived(at)
			w.drained("river_job WHERE kind = 'archive' AND finalized_at IS NULL")
			stop()
			if _, _, err := tier.Unarchive(t.Context(), w.store, at, nil); err != nil {
				t.Fatal(err)
			}
			w.kill(step)
			w.verified()
			w.work(jobs.Config{Beat: beat})
			w.back(at)
			w.sameRows(step, before, w.allRows(at))
			w.same(at, session.OpenAIChat, bodies)
			w.verified()
		})
	}
}

// TestAnArchiveInAStoreIsMadeWhereverItsWorkerFails has the worker fail once at each step, with bodies and parts outside.
func TestAnArchiveInAStoreIsMadeWhereverItsWorkerFails(t *testing.T) {
	t.Parallel()
	inStores(t, []persist.Kind{persist.File, persist.S3}, func(t *testing.T, w *world, kind persist.Kind) {
		at, bodies := w.archivable("s")
		fork := w.fork(at, "fork", 40)
		failed := map[string]bool{}
		w.work(jobs.Config{Trace: func(step string) {
			archives := strings.HasPrefix(step, "archive") || strings.HasPrefix(step, "part") || strings.HasPrefix(step, "session ") || step == "objects forgotten"
			if archives && !failed[step] {
				failed[step] = true
				panic("the worker fails at " + step)
			}
		}})
		w.offloaded()
		before := w.allRows(at)
		w.atOnce()
		w.archived(at)
		w.drained("river_job WHERE kind = 'archive' AND finalized_at IS NULL")
		w.whole(fork, bodies[:40])
		w.verified()
		clear(failed)
		w.restored(at)
		w.sameRows(kind.String(), before, w.allRows(at))
		w.same(at, session.OpenAIChat, bodies)
		w.whole(fork, bodies[:40])
		if len(failed) < 4 {
			t.Errorf("it failed at %v only", failed)
		}
		w.verified()
		collection := jobs.Collection{Store: w.store, Log: slog.New(slog.DiscardHandler), Grace: time.Hour, Trace: func(string) {}}
		if err := collection.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.same(at, session.OpenAIChat, bodies)
		w.whole(fork, bodies[:40])
		w.verified()
	})
}

// TestAnArchivedSessionIsErasedWithItsObjects plants traces in all columns, archives, and searches after the erasure.
func TestAnArchivedSessionIsErasedWithItsObjects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := w.inFiles()
	w.plant()
	w.quiet()
	w.offloaded()
	found, err := w.store.Sessions(t.Context(), w.tenant, session.Page{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int64{}
	for i := range found {
		made := w.archived(session.Address{Tenant: w.tenant, ID: found[i].ID})
		want["messages"] += made.Messages
		want["results"] += made.Results
		want["checkpoints"] += made.Checkpoints
		want["bytes"] += made.Bytes
	}
	if len(found) < 4 || want["messages"] < 200 {
		t.Fatalf("%d sessions with %v are archived", len(found), want)
	}
	if files := filesIn(t, dir); files < 1+len(found) {
		t.Errorf("%d files have %d archives", files, len(found))
	}
	begun, _, err := erasure.OfSubject(t.Context(), w.store, w.tenant, fmt.Appendf(nil, `{"user_id":%q}`, subject), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, said := w.ended(w.tenant, begun.ID)
	if left := w.traces(subject, dir); len(left) > 0 {
		t.Errorf("the subject is still in %q", left)
	}
	e := said.Erased
	if e.Sessions != int64(len(found)) || e.Messages != want["messages"] || e.Results != want["results"] ||
		e.Checkpoints != want["checkpoints"] || e.Bytes != want["bytes"] || e.Objects < int64(len(found)) {
		t.Errorf("the receipt says %+v, want %v", e, want)
	}
	if n := filesIn(t, dir) - 1; n > 0 {
		t.Errorf("%d objects are left", n)
	}
	w.verified()
}

// TestALegalHoldKeepsASessionFromItsArchiveAndAnArchiveFromItsEnd holds a session before, and while it is archived.
func TestALegalHoldKeepsASessionFromItsArchiveAndAnArchiveFromItsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at, bodies := w.archivable("s")
	if _, err := erasure.HoldSession(t.Context(), w.store, at, "a case"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := tier.Archive(t.Context(), w.store, at, nil); !errors.Is(err, session.ErrHeld) {
		t.Errorf("a held session is archived: %v", err)
	}
	if err := erasure.ReleaseSession(t.Context(), w.store, at); err != nil {
		t.Fatal(err)
	}
	if _, _, err := tier.Archive(t.Context(), w.store, at, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := erasure.HoldSession(t.Context(), w.store, at, "a case"); err != nil {
		t.Fatal(err)
	}
	w.work(jobs.Config{})
	w.back(at)
	w.same(at, session.OpenAIChat, bodies)
	if err := erasure.ReleaseSession(t.Context(), w.store, at); err != nil {
		t.Fatal(err)
	}
	w.archived(at)
	if _, err := erasure.HoldSession(t.Context(), w.store, at, "another case"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Delete(t.Context(), at, nil); !errors.Is(err, session.ErrHeld) {
		t.Errorf("a held archive is erased: %v", err)
	}
	w.restored(at)
	w.same(at, session.OpenAIChat, bodies)
}

// TestExpiredSessionsAreArchivedAndTheirArchivesErased has a retention with both times.
func TestExpiredSessionsAreArchivedAndTheirArchivesErased(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old, bodies := w.archivable("old")
	young, _ := w.archivable("young")
	kept, _ := w.archivable("kept")
	_, _, err := w.store.Update(t.Context(), kept, session.Change{Retention: &session.Retention{}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	hour := int64(3600)
	wanted := session.Retention{IdleSeconds: &hour, Then: session.ThenArchive, ArchiveSeconds: new(10 * hour)}
	for _, at := range []session.Address{old, kept} {
		w.inTenant(`UPDATE sessions SET created_at = now() - interval '1 day', last_append_at = now() - interval '2 hours' WHERE id = $1`, at.ID)
	}
	w.work(jobs.Config{RetainEvery: time.Nanosecond, SweepEvery: 50 * time.Millisecond})
	w.drained("sessions s LEFT JOIN usage_sessions u ON u.session_key = s.key WHERE u.appended_at IS DISTINCT FROM s.last_append_at")
	preview, err := w.store.ExpiredBy(t.Context(), w.tenant, &wanted)
	if err != nil || preview.Expired != 1 || preview.Archived != 1 || preview.Erased != 0 || !slices.Equal(preview.Sessions, []string{"old"}) {
		t.Errorf("the preview says %+v, %v", preview, err)
	}
	if set, err := w.store.SetRetention(t.Context(), w.tenant, wanted); err != nil || !set.Archives() {
		t.Fatal(set, err)
	}
	w.drained("sessions WHERE id = 'old' AND NOT archived")
	made := w.archiveIn(old, session.Archived)
	if made.ExpiresAt == nil || made.ExpiresAt.Sub(made.AskedAt) != 10*time.Hour {
		t.Errorf("the archive expires: %+v", made)
	}
	w.restored(old)
	w.same(old, session.OpenAIChat, bodies)
	found, err := w.store.Session(t.Context(), old)
	if err != nil || found.Expiry == nil || found.Expiry.ExpiresAt == nil || time.Until(*found.Expiry.ExpiresAt) < 50*time.Minute {
		t.Errorf("it is back, and expires: %+v, %v", found.Expiry, err)
	}
	w.inTenant(`UPDATE sessions SET restored_at = now() - interval '2 hours' WHERE id = 'old'`)
	w.drained("sessions WHERE id = 'old' AND NOT archived")
	w.archiveIn(old, session.Archived)
	w.olderArchive("old", "11 hours")
	preview, err = w.store.ExpiredBy(t.Context(), w.tenant, &wanted)
	if err != nil || preview.Erased+preview.Archived > 1 || preview.Archived != 0 {
		t.Errorf("the preview says %+v, %v", preview, err)
	}
	w.drained("sessions WHERE id = 'old'")
	w.drained("erasures WHERE state <> 'done'")
	erasures, err := erasure.List(t.Context(), w.store, w.tenant, session.Page{Limit: 10})
	if err != nil || len(erasures) != 1 || erasures[0].Kind != session.ErasureOfExpired || erasures[0].Messages != int64(len(bodies)) || erasures[0].Receipt == nil {
		t.Errorf("%+v, %v", erasures, err)
	}
	for _, at := range []session.Address{young, kept} {
		if _, err := w.store.Session(t.Context(), at); err != nil {
			t.Errorf("%s: %v", at.ID, err)
		}
	}
	if archives, back := w.count("audit_trail WHERE action = 'session.archive'"), w.count("audit_trail WHERE action = 'session.unarchive'"); archives != 2 || back != 1 {
		t.Errorf("the trail has %d archives and %d restorations", archives, back)
	}
	w.verified()
}

// olderArchive makes an archived session's archive older.
func (w *world) olderArchive(id, by string) {
	w.Helper()
	conn, err := pgx.Connect(w.Context(), w.dsn)
	if err != nil {
		w.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(w.Context()))
	for _, sql := range []string{
		`UPDATE sessions SET frozen_at = frozen_at - $2::interval, created_at = created_at - $2::interval, restored_at = restored_at - $2::interval, last_append_at = last_append_at - $2::interval WHERE id = $1`,
	} {
		if _, err := conn.Exec(w.Context(), sql, id, by); err != nil {
			w.Fatal(err)
		}
	}
}
