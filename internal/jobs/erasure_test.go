package jobs_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/zstd"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/erasure"
	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/llm/fake"
	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/persist/object"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/zframe"
)

// subject is in everything that a data subject leaves behind.
const subject = "quokka7f3a"

// traces searches every column of every table for a text, unpacked, and every file below a directory. It returns where
// it is.
func (w *world) traces(text, dir string) (found []string) {
	w.Helper()
	conn, err := pgx.Connect(w.Context(), w.dsn)
	if err != nil {
		w.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(w.Context()))
	rows, _ := conn.Query(w.Context(), `
		SELECT table_name
		  FROM information_schema.tables
		 WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(tables) < 40 {
		w.Fatalf("%d tables: %v", len(tables), err)
	}
	places := map[string]bool{}
	for _, table := range tables {
		rows, _ := conn.Query(w.Context(), `SELECT to_jsonb(t)::text FROM `+table+` t`)
		all, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			w.Fatal(err)
		}
		for _, row := range all {
			var columns map[string]any
			if err := json.Unmarshal([]byte(row), &columns); err != nil {
				w.Fatal(err)
			}
			for column, value := range columns {
				if has(value, text) {
					places[table+"."+column] = true
				}
			}
		}
	}
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if body, err := os.ReadFile(path); err != nil || contains(body, text) {
			places["files"] = true
			return err
		}
		return nil
	})
	if err != nil {
		w.Fatal(err)
	}
	return slices.Sorted(maps.Keys(places))
}

// has reports whether a JSON value has a text in it, or in the bytes that it stands for.
func has(value any, text string) bool {
	switch v := value.(type) {
	case string:
		raw, isHex := strings.CutPrefix(v, `\x`)
		if b, err := hex.DecodeString(raw); isHex && err == nil {
			return contains(b, text) || contains(zframe.AppendFrame(nil, nil, b, nil), text) // a checkpoint has no frame
		}
		return strings.Contains(v, text)
	case []any:
		return slices.ContainsFunc(v, func(member any) bool { return has(member, text) })
	case map[string]any:
		for name, member := range v {
			if strings.Contains(name, text) || has(member, text) {
				return true
			}
		}
	}
	return false
}

// contains reports whether bytes have a text in them, as they are or decompressed.
func contains(b []byte, text string) bool {
	if bytes.Contains(b, []byte(text)) {
		return true
	}
	magic := []byte{0x28, 0xb5, 0x2f, 0xfd}
	for at := bytes.Index(b, magic); at >= 0; {
		decoder, err := zstd.NewReader(bytes.NewReader(b[at:]), zstd.WithDecoderConcurrency(1))
		if err == nil {
			plain, _ := io.ReadAll(decoder) // what follows the frame is no frame
			decoder.Close()
			if bytes.Contains(plain, []byte(text)) {
				return true
			}
		}
		next := bytes.Index(b[at+1:], magic)
		if next < 0 {
			return false
		}
		at += 1 + next
	}
	return false
}

// ended waits for the end of an erasure, and returns it with what its receipt says.
func (w *world) ended(tenant, id uuid.UUID) (session.Erasure, session.Receipt) {
	w.Helper()
	w.drained(fmt.Sprintf("erasures WHERE id = '%s' AND state <> 'done'", id))
	found, err := erasure.Read(w.Context(), w.store, tenant, id)
	if err != nil {
		w.Fatal(err)
	}
	return found, *found.Receipt
}

// inFiles puts the bodies of results into a directory, which it returns.
func (w *world) inFiles() string {
	w.Helper()
	dir := w.TempDir()
	files, err := object.OpenDir(dir)
	if err != nil {
		w.Fatal(err)
	}
	w.store.UseResultStores(persist.Stores{New: persist.File, Outside: map[persist.Kind]object.Store{persist.File: files}})
	if err := w.store.CheckResultStores(w.Context()); err != nil {
		w.Fatal(err)
	}
	return dir
}

// of makes a session of a data subject, whose id names it.
func (w *world) of(id, user string) session.Address {
	w.Helper()
	at := w.session(id)
	metadata := fmt.Appendf(nil, `{"user_id":%q,"app":"a"}`, user)
	if _, _, err := w.store.Update(w.Context(), at, session.Change{Metadata: metadata}, nil); err != nil {
		w.Fatal(err)
	}
	return at
}

// named returns turns of tools whose results name a user.
func named(user string, n int) (bodies [][]byte) {
	for _, body := range turns(n, 1500) {
		bodies = append(bodies, bytes.ReplaceAll(body, []byte("line of file"), []byte("line of "+user)))
	}
	return bodies
}

// plant leaves traces of the subject wherever one can: sessions with packs, results, checkpoints, summaries, pins,
// tokens, runs, failed jobs; recompactions; imports; requests that may be repeated; rows of the audit trail.
func (w *world) plant() {
	w.Helper()
	ctx := w.Context()
	must := func(err error) {
		w.Helper()
		if err != nil {
			w.Fatal(err)
		}
	}
	p := w.provider(fake.Options{Choose: func(fake.Request) fake.Step {
		return fake.Step{Text: "<retain>The port is 5433.</retain>\n<summary>The " + subject + " replicas keep their port.</summary>"}
	}})
	w.work(jobs.Config{Caller: p.caller, Settle: time.Nanosecond})
	at := w.of(subject+"-1", subject)
	w.appendLog(at, session.OpenAIChat, named(subject, 80))
	w.offloaded()
	talks := w.of(subject+"-2", subject)
	w.asks(talks, policy.ExtractInstead)
	w.append(talks, fmt.Appendf(nil, `{"role":"user","content":"I am %s."}`, subject))
	w.talk(talks)
	w.quiet()
	w.append(talks, fmt.Appendf(nil, `{"role":"user","content":"I am still %s."}`, subject))
	fork := w.fork(at, "branch of "+subject, 40)
	_, _, err := w.store.Update(ctx, fork, session.Change{Metadata: []byte(`{}`)}, nil)
	must(err)
	w.fork(fork, "branch of the branch", 20)

	_, err = w.store.PutPin(ctx, talks, session.Pin{Ref: "m1.0", Seq: 1, Part: new(int), Text: "I am " + subject + ".", Note: subject, Tokens: 5}, 100)
	must(err)
	_, err = w.store.CreateToken(ctx, talks, session.NewToken{
		Name: subject, Text: session.NewTokenText(w.tenant), Scopes: []session.Scope{session.ScopeRead}, Lifetime: time.Hour,
		MadeBy: w.someKey(),
	})
	must(err)
	must(w.store.RecordExport(ctx, at))
	_, _, err = w.store.Update(ctx, at, session.Change{Model: new(subject)}, &session.Idempotency{Route: "PATCH /v1/sessions/:id", Key: subject})
	must(err)

	for n, filter := range []session.SessionFilter{
		{Sessions: []string{at.ID}}, {ForkedFrom: at.ID}, {Sessions: []string{talks.ID}, MinTokens: new(int64(1e9))},
		{Metadata: fmt.Appendf(nil, `{"user_id":%q}`, subject)},
	} {
		w.plantRecompaction(filter, fmt.Sprint("k", n))
	}

	must(w.store.InTenant(ctx, w.tenant, func(tx pgx.Tx) error {
		err := postgres.Exec(ctx, tx, `
			INSERT INTO imports (tenant_id, id, key, wanted, session, state, finished_at)
			VALUES ($1, gen_random_uuid(), 'k', '', $2, 'succeeded', now())`, w.tenant, at.ID)
		if err != nil {
			return err
		}
		return postgres.Record(ctx, tx, w.tenant, audit.ImportStart, audit.Import, "k", map[string]string{"session": at.ID})
	}))
	w.inTenant(`UPDATE river_job SET errors = ARRAY[jsonb_build_object('error', '` + subject + ` failed')] WHERE kind = 'compact'`)
}

// plantRecompaction writes down an ended recompaction of the sessions of a filter, as a part of one of many tenants, with
// its answer and its row of the audit trail.
func (w *world) plantRecompaction(filter session.SessionFilter, key string) {
	w.Helper()
	ctx := w.Context()
	id := &session.Idempotency{Route: "POST /v1/admin/recompactions", Key: key}
	_, _, err := postgres.Once(ctx, w.store, w.tenant, id, func(tx pgx.Tx) (any, uuid.UUID, error) {
		made := uuid.New()
		err := postgres.Exec(ctx, tx, `
			INSERT INTO recompactions (tenant_id, id, state, filter, max_running, total, failed, group_id, finished_at)
			VALUES ($1, $2, 'done', $3, 1, 1, 1, $2, now())`, w.tenant, made, filter)
		if err == nil {
			err = postgres.Exec(ctx, tx, `
				INSERT INTO recompaction_sessions (tenant_id, recompaction_id, session_key, state, error, finished_at)
				SELECT $1, $2, key, 'failed', 'the policy of ' || id || ' is wrong', now()
				  FROM sessions
				 WHERE tenant_id = $1 AND id = ANY ($3)`, w.tenant, made, filter.Sessions)
		}
		if err != nil {
			return nil, made, err
		}
		about := map[string]any{"filter": filter}
		return map[string]any{"ID": made, "Filter": filter}, made,
			postgres.Record(ctx, tx, w.tenant, audit.RecompactionStart, audit.Recompaction, made.String(), about)
	})
	if err != nil {
		w.Fatal(err)
	}
}

// someKey returns the digest of a key of the tenant.
func (w *world) someKey() (digest [32]byte) {
	w.Helper()
	text := session.NewAPIKey(w.tenant)
	if _, err := w.store.CreateKey(w.Context(), w.tenant, session.NewKey{Text: text, Scopes: session.KeyScopes()}); err != nil {
		w.Fatal(err)
	}
	_, digest, err := session.ParseKey(text)
	if err != nil {
		w.Fatal(err)
	}
	return digest
}

// TestNothingIsLeftOfADataSubject plants traces, erases the subject, and searches everything.
func TestNothingIsLeftOfADataSubject(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := w.inFiles()
	w.plant()
	other := w.of("other", "somebody else")
	kept := named("somebody else", 20)
	w.appendLog(other, session.OpenAIChat, kept)
	planted := w.traces(subject, dir)
	for _, place := range []string{
		"files", "audit_trail.object_id", "audit_trail.detail", "checkpoints.body", "idempotency.answer", "import", "message_packs.body", "messages.body",
		"model_answers.answer", "recompactions.filter", "river_job.errors", "session_pins.text", "session_tokens.name",
		"sessions.forked_from", "sessions.id", "sessions.metadata", "sessions.model", "summaries.summary",
	} {
		if !slices.ContainsFunc(planted, func(found string) bool { return strings.HasPrefix(found, place) }) {
			t.Errorf("the search does not find what is in %s: %q", place, planted)
		}
	}
	sessions := w.count("sessions")
	key := uuid.New()
	ctx := audit.With(t.Context(), &audit.Actor{Kind: audit.ByKey, ID: key, Request: "req_1", Address: "here"})
	begun, _, err := erasure.OfSubject(ctx, w.store, w.tenant, fmt.Appendf(nil, `{"user_id":%q}`, subject), &session.Idempotency{Route: "POST /v1/erasures", Key: "k2"})
	if err != nil {
		t.Fatal(err)
	}
	done, said := w.ended(w.tenant, begun.ID)
	if left := w.traces(subject, dir); len(left) > 0 {
		t.Errorf("the subject is still in %q", left)
	}
	if done.Sessions != 4 || said.Erased.Sessions != 4 || len(said.Sessions) != 4 || w.count("sessions") != sessions-4 {
		t.Errorf("%d sessions were erased of %d: %+v", done.Sessions, sessions, said)
	}
	if e := said.Erased; e.Messages < 200 || e.Results == 0 || e.Bodies == 0 || e.Checkpoints == 0 || e.Bytes < 400_000 || e.Objects == 0 {
		t.Errorf("the receipt says %+v", e)
	}
	if said.By.ID == nil || *said.By.ID != key || said.By.Request != "req_1" || len(said.Digest) != 64 {
		t.Errorf("the receipt says %+v", said)
	}
	w.same(other, session.OpenAIChat, kept)
	w.verified()
}

// TestAnErasureIsFinishedWhereverItIsKilled kills a worker after each step, and lets another go on.
func TestAnErasureIsFinishedWhereverItIsKilled(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"session erased", "objects of a session erased", "erasure finished"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for n := range 3 {
				w.append(w.of(fmt.Sprint(subject, n), subject), turn(n, 100)...)
			}
			begun, _, err := erasure.OfSubject(t.Context(), w.store, w.tenant, fmt.Appendf(nil, `{"user_id":%q}`, subject), nil)
			if err != nil {
				t.Fatal(err)
			}
			w.kill(step)
			w.work(jobs.Config{Beat: beat})
			if _, said := w.ended(w.tenant, begun.ID); said.Erased.Sessions != 3 || len(said.Sessions) != 3 || said.Erased.Messages != 6 {
				t.Errorf("the receipt says %+v", said)
			}
			if left := w.traces(subject, w.TempDir()); len(left) > 0 {
				t.Errorf("the subject is still in %q", left)
			}
			w.verified()
		})
	}
}

// TestADeletedSessionHasAReceiptToo also looks at a fork, which loses nothing but the id of what it was made of.
func TestADeletedSessionHasAReceiptToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := w.inFiles()
	w.work(jobs.Config{})
	at := w.session("s")
	bodies := turns(40, 1500)
	w.appendLog(at, session.OpenAIChat, bodies)
	w.settled() // a fork that is due persists bodies of its own
	first, second := w.fork(at, "first", 40), session.Address{Tenant: w.tenant, ID: "second"}
	w.fork(first, "second", 30)
	done, err := w.store.Delete(t.Context(), first, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, said := w.ended(w.tenant, done.Erasure); said.Kind != "session" || said.Erased.Sessions != 1 || said.Erased.Messages != 40 || said.Erased.Bodies != 0 {
		t.Errorf("the receipt of a fork says %+v", said)
	}
	found, err := w.store.Session(t.Context(), second)
	if err != nil || found.Forked == nil || found.Forked.Session != "s" || found.Forked.Seq != 30 {
		t.Errorf("the fork of the fork: %+v, %v", found.Forked, err)
	}
	if done, err = w.store.Delete(t.Context(), at, nil); err != nil {
		t.Fatal(err)
	}
	w.ended(w.tenant, done.Erasure)
	if found, err = w.store.Session(t.Context(), second); err != nil || found.Forked != nil {
		t.Errorf("the fork of what is gone: %+v, %v", found.Forked, err)
	}
	w.whole(second, bodies[:30])
	if done, err = w.store.Delete(t.Context(), second, nil); err != nil {
		t.Fatal(err)
	}
	if _, said := w.ended(w.tenant, done.Erasure); said.Erased.Bodies == 0 || said.Erased.Objects == 0 {
		t.Errorf("the receipt of the last one says %+v", said)
	}
	if _, err := w.store.Delete(t.Context(), at, nil); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("a session that is gone: %v", err)
	}
	if n := filesIn(t, dir) - 1; n > 0 {
		t.Errorf("%d objects are left", n)
	}
	w.verified()
}

// TestAJobOfAProgramWithoutErasuresErasesWhatASessionHadOutside has the job that such a program inserted with the deletion.
func TestAJobOfAProgramWithoutErasuresErasesWhatASessionHadOutside(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := w.inFiles()
	empty := filesIn(t, dir)
	gone := session.Key{Tenant: w.tenant, Key: uuid.New()}
	files, err := object.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := files.Put(t.Context(), persist.ObjectName(gone, uuid.New()), []byte("left")); err != nil {
		t.Fatal(err)
	}
	inserts, err := queue.New(w.store.Pool())
	if err != nil {
		t.Fatal(err)
	}
	err = pgx.BeginFunc(t.Context(), w.store.Pool(), func(tx pgx.Tx) error {
		_, _, err := inserts.Insert(t.Context(), tx, queue.EraseArgs{Tenant: gone.Tenant, Session: gone.Key}, time.Time{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	w.work(jobs.Config{})
	w.drained("river_job WHERE kind = 'erase' AND finalized_at IS NULL")
	if left := filesIn(t, dir) - empty; left > 0 {
		t.Errorf("%d objects are left", left)
	}
}
