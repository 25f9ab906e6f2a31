package jobs_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/jobs/jobstest"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/readback"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

func TestMain(m *testing.M) {
	os.Exit(jobstest.Main(m, jobs.Config{Settle: time.Nanosecond}))
}

const (
	patience = jobstest.Patience
	beat     = jobstest.Beat
)

var turn = jobstest.Turn

// world is a store on a database of the test's own, with one tenant.
type world struct {
	*testing.T
	dsn    string
	store  *postgres.Store
	tenant uuid.UUID

	coldViews int // that were read from archives
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, dsn: pgtest.NewWarm(t)}
	w.store = jobstest.OpenStore(t, pgtest.Admin(w.dsn))
	policy := jobstest.Settled()
	tenant, err := w.store.CreateTenant(t.Context(), "acme", session.Policy{Trigger: policy.Trigger, Hard: policy.Hard, Document: policy.Document()})
	if err != nil {
		t.Fatal(err)
	}
	w.tenant = tenant.ID
	return w
}

func (w *world) session(id string) session.Address { return w.sessionOf(id, 10_000) }

func (w *world) sessionOf(id string, window int) session.Address {
	w.Helper()
	at := session.Address{Tenant: w.tenant, ID: id}
	if _, _, err := w.store.Create(w.Context(), at, session.Change{WindowTokens: &window}, nil); err != nil {
		w.Fatal(err)
	}
	return at
}

func (w *world) append(at session.Address, bodies ...[]byte) session.Appended {
	w.Helper()
	done, _, err := w.store.Append(context.WithoutCancel(w.Context()), jobstest.Batch(w, at, bodies...))
	if err != nil {
		w.Fatal(err)
	}
	return done
}

// fill appends turns until the session has crossed its trigger of 8,000 tokens.
func (w *world) fill(at session.Address) {
	w.Helper()
	w.append(at, []byte(`{"role":"user","content":"read all files"}`))
	for n := range 24 {
		w.append(at, turn(n, 500)...)
	}
}

// work starts a worker; stop it with the function that it returns, or let the test's end do it.
func (w *world) work(config jobs.Config) (*jobs.Client, func()) {
	w.Helper()
	store := jobstest.OpenStore(w, pgtest.Admin(w.dsn))
	store.UseResultStores(*w.store.ResultStores())
	config.Store = store
	if config.Log == nil {
		config.Log = slog.New(slog.NewTextHandler(w.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	client, err := jobs.NewClient(store.Pool(), config)
	if err != nil {
		w.Fatal(err)
	}
	if err := client.Start(context.Background()); err != nil {
		w.Fatal(err)
	}
	stopped := false
	stop := func() {
		if !stopped {
			stopped = true
			if err := client.StopAndCancel(context.Background()); err != nil {
				w.Error(err)
			}
		}
	}
	w.Cleanup(stop)
	return client, stop
}

// settle waits until no compaction job of the database is live.
func (w *world) settle() {
	w.Helper()
	listener, err := w.store.Pool().Acquire(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	defer listener.Release()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		var live int
		err := listener.QueryRow(ctx, `
			SELECT count(*)
			  FROM river_job
			 WHERE kind = 'compact' AND finalized_at IS NULL`).Scan(&live)
		if err != nil {
			w.Fatalf("waiting for the last job: %v", err)
		}
		if live == 0 {
			return
		}
		<-tick.C
	}
}

// check holds the session to its promises: the log is what was appended, the view covers it without gap, every result
// that left the view can be read back with its sha256, and the counters are right.
func (w *world) check(at session.Address, appended [][]byte) session.Session {
	w.Helper()
	found, bodies := jobstest.Check(w, w.store, at, appended)
	w.checkTokens(found, bodies)
	w.checkResults(at, found)
	return found
}

func (w *world) checkTokens(found session.Session, bodies [][]byte) {
	w.Helper()
	tokens := 0
	for _, body := range bodies {
		m, err := wire.Inspect(session.OpenAIChat, body)
		if err != nil {
			w.Fatal(err)
		}
		tokens += m.Tokens
	}
	if int64(tokens) != found.ContextTokens {
		w.Errorf("the view has %d tokens, context_tokens is %d", tokens, found.ContextTokens)
	}
}

// view returns the messages that a read returns.
func (w *world) view(at session.Address) [][]byte {
	w.Helper()
	_, bodies := w.read(at)
	return bodies
}

func (w *world) read(at session.Address) (postgres.View, [][]byte) {
	w.Helper()
	return jobstest.Read(w, w.store, at)
}

// checkResults reads back every result that a manifest of the session's checkpoints names.
func (w *world) checkResults(at session.Address, found session.Session) {
	w.Helper()
	ctx := context.WithoutCancel(w.Context())
	refs := map[string]bool{}
	err := postgres.InTenant(ctx, w.store.Pool(), w.tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			SELECT DISTINCT coalesce(a ->> 'ref', '')
			  FROM checkpoints c, jsonb_array_elements(c.manifest) a
			 WHERE c.tenant_id = $1 AND c.session_key = $2`, [16]byte(w.tenant), [16]byte(found.Key))
		if err != nil {
			return err
		}
		all, err := pgx.CollectRows(rows, pgx.RowTo[string])
		for _, ref := range all {
			refs[ref] = true
		}
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
	if found.Checkpoint > 0 && len(refs) == 0 {
		w.Error("a checkpoint was made, but no manifest has an action")
	}
	delete(refs, "") // as engines before version 4 wrote for whole messages
	for text := range refs {
		if of, ok := session.ParseMessagesRef(text); ok {
			if run, err := readback.Messages(ctx, w.store, at, of); err != nil || run.Ref != of {
				w.Errorf("messages %s: %+v, %v", text, run, err)
			}
		} else if _, err := w.bodyOf(at, text); err != nil {
			w.Errorf("result %s: %v", text, err)
		}
	}
	w.checkHandles(at)
}

// bodyOf returns what a ref of a result names, and an error if it is not what its row says.
func (w *world) bodyOf(at session.Address, ref string) ([]byte, error) {
	found, err := readback.Open(w.Context(), w.store, at, ref)
	if err != nil {
		return nil, err
	}
	body, err := found.Stored.All(w.Context())
	if err == nil && (found.Result.Ref != ref || sha256.Sum256(body) != [32]byte(found.Result.SHA256) ||
		int64(len(body)) != found.Result.Bytes) {
		err = errors.New("it is not what its row says")
	}
	return body, err
}

// checkHandles checks that every result of the log that the view does not show whole was persisted under the ref that
// its place and its content have.
func (w *world) checkHandles(at session.Address) {
	w.Helper()
	view, bodies := w.read(at)
	shown := map[session.ResultRef]int{} // by content alone
	for _, body := range bodies {
		for _, r := range w.results(view.Format, body, 0) {
			shown[session.ResultRef{Check: r.ref.Check}]++
		}
	}
	ctx := context.WithoutCancel(w.Context())
	_, log, err := w.store.Messages(ctx, at, postgres.Range{Limit: 10_000})
	if err != nil {
		w.Fatal(err)
	}
	for i := range log {
		if log[i].Format != view.Format {
			continue // its translation has other contents
		}
		for _, r := range w.results(view.Format, log[i].Body, log[i].Seq) {
			if shown[session.ResultRef{Check: r.ref.Check}] > 0 {
				continue
			}
			if _, _, err := w.store.Result(ctx, at, r.ref); err != nil {
				w.Errorf("%s has left the view without a row: %v", r.ref, err)
			}
			if body, err := w.bodyOf(at, r.ref.String()); err != nil || !bytes.Equal(body, r.content) {
				w.Errorf("%s has left the view without a handle: %v", r.ref, err)
			}
		}
	}
}

type loggedResult struct {
	ref     session.ResultRef
	content []byte
}

// results returns the results of a message that has a seq.
func (w *world) results(f session.Format, body []byte, seq int64) (list []loggedResult) {
	w.Helper()
	facts, err := wire.Inspect(f, body)
	if err != nil {
		w.Fatal(err)
	}
	for _, p := range facts.Parts {
		if content := wire.ResultText(f, body, p).Stored; p.Kind == wire.Result && len(content) > 0 {
			list = append(list, loggedResult{session.NewResultRef(seq, p.Index, sha256.Sum256(content)), content})
		}
	}
	return list
}

// asOwner runs a statement as the owner of the database.
func (w *world) asOwner(sql string, args ...any) {
	w.Helper()
	conn, err := pgx.Connect(w.Context(), w.dsn)
	if err != nil {
		w.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(w.Context()))
	if _, err := conn.Exec(w.Context(), sql, args...); err != nil {
		w.Fatal(err)
	}
}
