package persist_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/persist/object"
	"github.com/varve-dev/varve/internal/persist/object/s3test"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tier"
)

// places says where the stores of a test are, for another process to open them, too.
type places struct {
	DSN    string
	Dir    string
	Bucket object.BucketConfig
	New    persist.Kind
}

// world is a store with a session in it, and stores outside of each kind.
type world struct {
	testing.TB
	places
	store  *postgres.Store
	server *s3test.Server
	at     session.Address
	key    session.Key
}

func open(ctx context.Context, p places, trace func(string)) (*postgres.Store, error) {
	pool, err := postgres.Open(ctx, pgtest.Admin(p.DSN), 8)
	if err != nil {
		return nil, err
	}
	inserts, err := queue.New(pool)
	if err != nil {
		return nil, err
	}
	dir, err := object.OpenDir(p.Dir)
	if err != nil {
		return nil, err
	}
	p.Bucket.Keys = s3test.Keys // which a process of its own is not told
	bucket, err := object.OpenBucket(p.Bucket)
	if err != nil {
		return nil, err
	}
	store := postgres.New(pool, inserts, nil)
	store.UseResultStores(persist.Stores{
		New: p.New, Outside: map[persist.Kind]object.Store{persist.File: dir, persist.S3: bucket}, Trace: trace,
	})
	return store, store.CheckResultStores(ctx)
}

var kinds = []persist.Kind{persist.Postgres, persist.File, persist.S3}

// onEach runs a test with new bodies in each kind of store.
func onEach(t *testing.T, test func(w *world)) {
	t.Helper()
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			test(newWorld(t, kind))
		})
	}
}

func newWorld(t testing.TB, kind persist.Kind) *world {
	t.Helper()
	w := &world{TB: t, server: s3test.New(t)}
	w.places = places{DSN: pgtest.New(t), Dir: filepath.Join(t.TempDir(), "results"), Bucket: w.server.BucketConfig, New: kind}
	w.Bucket.Prefix = "a/prefix"
	var err error
	if w.store, err = open(t.Context(), w.places, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.store.Pool().Close)
	tenant, err := w.store.CreateTenant(t.Context(), "acme", session.Policy{Trigger: 0.8, Hard: 0.95, Document: []byte(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	w.at = session.Address{Tenant: tenant.ID, ID: "s"}
	made, _, err := w.store.Create(t.Context(), w.at, session.Change{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.key = session.Key{Tenant: tenant.ID, Key: made.Session.Key}
	return w
}

// someResults returns results of one chunk, of several, and of several objects, two of them equal.
func someResults() []persist.NewResult { return resultsUpTo(9 << 20) }

// resultsUpTo returns results of which the largest has the given number of bytes.
func resultsUpTo(largest int) []persist.NewResult {
	return []persist.NewResult{
		result(1, 0, []byte("short")), result(2, 0, logLines(400_000)), result(2, 1, logLines(400_000)), result(3, 0, logLines(largest)), result(4, 0, nil),
	}
}

// mustRead fails the test unless the results are there, byte for byte.
func (w *world) mustRead(want []persist.NewResult) {
	w.Helper()
	for _, r := range want {
		ref, err := session.ParseResultRef(r.Ref)
		if err != nil {
			w.Fatal(err)
		}
		if _, body, err := w.store.Result(w.Context(), w.at, ref); err != nil || !bytes.Equal(body, r.Body) {
			w.Fatalf("%s: %d bytes, want %d, %v", r.Ref, len(body), len(r.Body), err)
		}
	}
}

// collect deletes what nothing names, however young it is.
func (w *world) collect() {
	w.Helper()
	if err := collect(w.Context(), w.store, func(string) {}); err != nil {
		w.Fatal(err)
	}
}

func collect(ctx context.Context, store *postgres.Store, trace func(string)) error {
	c := jobs.Collection{Store: store, Log: slog.New(slog.DiscardHandler), Grace: time.Nanosecond, Trace: trace}
	return c.Run(ctx)
}

// objects returns the names of the objects that are in the stores outside, and of those that rows name.
func (w *world) objects() (there, named []string) {
	w.Helper()
	for _, store := range w.store.ResultStores().Outside {
		for info, err := range store.List(w.Context(), "") {
			if err != nil {
				w.Fatal(err)
			}
			if strings.Contains(info.Name, "/") {
				there = append(there, info.Name)
			}
		}
	}
	err := postgres.InTenant(w.Context(), w.store.Pool(), w.key.Tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
		rows, err := tx.Query(w.Context(), `SELECT DISTINCT tenant_id || '/' || session_key || '/' || object FROM result_chunks WHERE object IS NOT NULL`)
		if err == nil {
			named, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
	slices.Sort(there)
	slices.Sort(named)
	return there, named
}

// mustBeTidy fails the test if there are objects that no row names, or rows that name none.
func (w *world) mustBeTidy() {
	w.Helper()
	if there, named := w.objects(); !slices.Equal(there, named) {
		w.Errorf("there are the objects %q, named are %q", there, named)
	}
}

func TestReadersOfARangeNeedNoOtherChunks(t *testing.T) {
	onEach(t, func(w *world) {
		r := someResults()[3]
		put(w.TB, w.store, w.key, r)
		ref, err := session.ParseResultRef(r.Ref)
		if err != nil {
			w.Fatal(err)
		}
		for _, want := range []persist.Want{{}, {FromLine: 50_000, LastLine: 50_200}, {FromByte: 5 << 20, ToByte: 5<<20 + 300_000}} {
			_, c, err := w.store.OpenResultAt(w.Context(), w.at, ref, want)
			if err != nil {
				w.Fatal(err)
			}
			line := int64(50_000)
			text, err := c.Chunk(w.Context(), c.AtLine(line))
			if at := c.Index()[c.AtLine(line)]; err != nil || !bytes.Equal(text, r.Body[at.At:at.At+int64(at.Size)]) || at.Line > line {
				w.Errorf("%+v: %v", at, err)
			}
			from := c.At(5 << 20)
			at := c.Index()[from].At
			for text, err := range c.From(w.Context(), from) {
				if err != nil || !bytes.Equal(text, r.Body[at:at+int64(len(text))]) {
					w.Fatal(err)
				}
				at += int64(len(text))
			}
			if at != c.Size() {
				w.Errorf("%d bytes in all, want %d", at, c.Size())
			}
		}
	})
}

func TestADamagedChunkIsNotServed(t *testing.T) {
	onEach(t, func(w *world) {
		r := result(1, 0, logLines(400_000))
		put(w.TB, w.store, w.key, r)
		w.damage()
		ref, err := session.ParseResultRef(r.Ref)
		if err != nil {
			w.Fatal(err)
		}
		var damaged *session.DamagedError
		if _, _, err := w.store.Result(w.Context(), w.at, ref); !errors.As(err, &damaged) || damaged.What != "result "+r.Ref {
			w.Errorf("%v", err)
		}
		_, c, err := w.store.OpenResult(w.Context(), w.at, ref)
		if err != nil {
			w.Fatal(err)
		}
		if text, err := c.Chunk(w.Context(), 0); err != nil || !bytes.Equal(text, r.Body[:len(text)]) {
			w.Errorf("the chunk before it: %v", err)
		}
		to := persist.S3
		if w.New == persist.S3 {
			to = persist.File
		}
		failed := 0
		err = tier.MoveResults(w.Context(), w.store, tier.ResultMove{Tenant: w.key.Tenant, To: to, Each: func(_ persist.Movable, _ int64, err error) {
			if errors.As(err, &damaged) {
				failed++
			}
		}})
		if err != nil || failed != 1 {
			w.Errorf("%d damaged bodies were not moved, %v", failed, err)
		}
	})
}

// damage changes a byte in the last chunk of the only body.
func (w *world) damage() {
	w.Helper()
	if w.New == persist.Postgres {
		err := postgres.InTenant(w.Context(), w.store.Pool(), w.key.Tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
			_, err := tx.Exec(w.Context(), `UPDATE result_chunks SET body = set_byte(body, 1000, get_byte(body, 1000) # 1) WHERE n = 3`)
			return err
		})
		if err != nil {
			w.Fatal(err)
		}
		return
	}
	there, _ := w.objects()
	file := filepath.Join(w.Dir, there[0])
	if w.New == persist.S3 {
		file = filepath.Join(w.server.Dir(), w.Bucket.Prefix, there[0])
	}
	body, err := os.ReadFile(file)
	if err != nil {
		w.Fatal(err)
	}
	body[len(body)-10] ^= 1
	if err := os.WriteFile(file, body, 0o600); err != nil {
		w.Fatal(err)
	}
}

func TestAMissingObjectIsDamageAndAStoreThatIsDownIsNot(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds[1:] {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, kind)
			r := result(1, 0, logLines(400_000))
			put(t, w.store, w.key, r)
			ref, err := session.ParseResultRef(r.Ref)
			if err != nil {
				t.Fatal(err)
			}
			there, _ := w.objects()
			store, err := w.store.ResultStores().Store(kind)
			if err != nil {
				t.Fatal(err)
			}
			if err := store.Delete(t.Context(), there[0]); err != nil {
				t.Fatal(err)
			}
			if _, _, err := w.store.Result(t.Context(), w.at, ref); !errors.Is(err, session.ErrDamaged) {
				t.Errorf("%v", err)
			}
			if err := errors.Join(w.server.Stop(), os.RemoveAll(w.Dir)); err != nil {
				t.Fatal(err)
			}
			if _, _, err := w.store.Result(t.Context(), w.at, ref); !errors.Is(err, session.ErrResultStore) || errors.Is(err, session.ErrDamaged) {
				t.Errorf("%v", err)
			}
			if _, err := w.store.PutResults(t.Context(), w.key, []persist.NewResult{result(2, 0, []byte("x"))}); !errors.Is(err, session.ErrResultStore) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestBodiesMoveUnderTheirReaders(t *testing.T) {
	onEach(t, func(w *world) {
		want := someResults()
		put(w.TB, w.store, w.key, want...)
		ctx, stop := context.WithCancel(w.Context())
		read := make(chan error, 1)
		go func() { read <- w.readOnAndOn(ctx, want) }()
		for i := range 2 * len(kinds) {
			to := kinds[(int(w.New)+1+i)%len(kinds)]
			mustMove(w, to)
			stats, err := tier.ResultStats(w.Context(), w.store, w.key.Tenant, &w.key.Key)
			if err != nil || len(stats) != 1 || stats[0].Store != to || stats[0].Bodies != 4 {
				w.Errorf("after the move to %s: %+v, %v", to, stats, err)
			}
			w.mustBeTidy()
		}
		stop()
		if err := <-read; err != nil {
			w.Errorf("a reader failed during the moves: %v", err)
		}
	})
}

func mustMove(w *world, to persist.Kind) {
	w.Helper()
	err := tier.MoveResults(w.Context(), w.store, tier.ResultMove{Tenant: w.key.Tenant, To: to, Each: func(b persist.Movable, _ int64, err error) {
		if err != nil {
			w.Errorf("body %s: %v", b.ID, err)
		}
	}})
	if err != nil {
		w.Fatal(err)
	}
}

// readOnAndOn reads the results, again and again, until ctx ends.
func (w *world) readOnAndOn(ctx context.Context, want []persist.NewResult) error {
	for {
		for _, r := range want {
			ref, err := session.ParseResultRef(r.Ref)
			if err != nil {
				return err
			}
			_, body, err := w.store.Result(ctx, w.at, ref)
			if ctx.Err() != nil {
				return nil
			}
			if err != nil || !bytes.Equal(body, r.Body) {
				return errors.Join(err, errors.New(r.Ref))
			}
		}
	}
}

func TestAStoreBelongsToOneDatabase(t *testing.T) {
	t.Parallel()
	w := newWorld(t, persist.File)
	other := w.places
	other.DSN = pgtest.New(t)
	cloned, err := open(t.Context(), other, nil) // of the same template
	if err != nil {
		t.Fatal(err)
	}
	defer cloned.Pool().Close()
	owner, err := pgx.Connect(t.Context(), pgtest.Owner(other.DSN))
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(t.Context())
	if _, err := owner.Exec(t.Context(), `UPDATE installation SET id = gen_random_uuid()`); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t.Context(), other, nil); err == nil || !strings.Contains(err.Error(), "another database") {
		t.Errorf("another database takes the stores: %v", err)
	}
	other = w.places
	other.Dir = filepath.Join(t.TempDir(), "empty")
	if _, err := open(t.Context(), other, nil); err == nil || !strings.Contains(err.Error(), "right directory") {
		t.Errorf("an empty directory is taken in the place of the one with bodies: %v", err)
	}
	if _, err := open(t.Context(), w.places, nil); err != nil {
		t.Error(err)
	}
}

func TestOnlyWhatIsOldAndUnnamedIsCollected(t *testing.T) {
	t.Parallel()
	w := newWorld(t, persist.File)
	want := someResults()
	put(t, w.store, w.key, want...)
	fresh := write(t, w.store, w.key, persist.File, logLines(300_000)[1:])
	half := newBody(t, w.store, w.key, persist.S3)
	half2 := writer(t, w.store, w.key, half)
	if err := errors.Join(half2.Write(t.Context(), logLines(300_000)), half2.Save(t.Context())); err != nil {
		t.Fatal(err)
	}
	c := jobs.Collection{Store: w.store, Log: slog.New(slog.DiscardHandler), Grace: time.Hour, Trace: func(string) {}}
	before, _ := w.objects()
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after, _ := w.objects(); !slices.Equal(before, after) || len(before) < 7 {
		t.Errorf("a collection with a grace period left %d of %d objects", len(after), len(before))
	}
	mustHave(t, w.store, w.key, fresh, logLines(300_000)[1:])
	w.collect()
	w.mustRead(want)
	w.mustBeTidy()
	if after, _ := w.objects(); len(after) != 5 {
		t.Errorf("left are %q", after)
	}
	if err := half2.Save(t.Context()); !errors.Is(err, session.ErrWritten) {
		t.Errorf("a body that was collected is written: %v", err)
	}
}

func TestAnErasedSessionLeavesNoObject(t *testing.T) {
	t.Parallel()
	w := newWorld(t, persist.S3)
	put(t, w.store, w.key, someResults()...)
	mustMoveSome(w)
	if _, err := w.store.Delete(t.Context(), w.at, nil); err != nil {
		t.Fatal(err)
	}
	client, err := jobs.NewClient(w.store.Pool(), jobs.Config{Store: w.store})
	if err != nil {
		t.Fatal(err)
	}
	events, unsubscribe := client.Subscribe("job_completed", "job_failed")
	defer unsubscribe()
	if err := client.Start(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.StopAndCancel(context.WithoutCancel(t.Context())) }() // the test is over
	for e := range events {
		if e.Job.Kind == "erasure" {
			if e.Kind != "job_completed" {
				t.Fatalf("%+v", e.Job.Errors)
			}
			break
		}
	}
	if there, named := w.objects(); len(there)+len(named) != 0 {
		t.Errorf("left are %q and %q", there, named)
	}
}

// mustMoveSome moves the first body to a directory.
func mustMoveSome(w *world) {
	w.Helper()
	ctx, stop := context.WithCancel(w.Context())
	err := tier.MoveResults(ctx, w.store, tier.ResultMove{Tenant: w.key.Tenant, To: persist.File, Each: func(persist.Movable, int64, error) { stop() }})
	if !errors.Is(err, context.Canceled) {
		w.Fatal(err)
	}
}
