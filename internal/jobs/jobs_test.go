package jobs_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/readback"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
	"github.com/varve-dev/varve/internal/zframe"
)

func TestMain(m *testing.M) {
	if dsn := os.Getenv(victimDSN); dsn != "" {
		os.Exit(victim(dsn, os.Getenv(victimStep)))
	}
	os.Exit(pgtest.Main(m))
}

// patience is how long a test waits for a worker before it fails: long enough for a machine that has much else to do.
const patience = 15 * time.Minute

// world is a store on a database of the test's own, with one tenant.
type world struct {
	*testing.T
	dsn    string
	store  *postgres.Store
	tenant uuid.UUID

	coldViews int // that were read from archives
}

// settled returns the default policy with numbers of its own, which the tests know: in a window of 10,000 tokens the
// trigger is at 8,000 and the hard limit at 9,500, nothing waits, and results leave by their age.
func settled() policy.Policy {
	p := policy.Default()
	p.Trigger, p.Target, p.Hard = 0.8, 0.5, 0.95
	p.Idle.Enabled, p.Economy.Enabled, p.Cache.TTLSeconds = false, false, 0
	p.Trim.Enabled, p.Arguments.Enabled = true, true
	p.Summarise.WordsRatio, p.Summarise.NamesRatio, p.Summarise.LinesRatio = 0, 0, 0
	return p
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, dsn: pgtest.New(t)}
	w.store = openStore(t, w.dsn)
	policy := settled()
	tenant, err := w.store.CreateTenant(t.Context(), "acme", session.Policy{Trigger: policy.Trigger, Hard: policy.Hard, Document: policy.Document()})
	if err != nil {
		t.Fatal(err)
	}
	w.tenant = tenant.ID
	return w
}

func openStore(t *testing.T, dsn string) *postgres.Store {
	t.Helper()
	pool, err := postgres.Open(context.Background(), pgtest.Admin(dsn), 12)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	inserts, err := queue.New(pool)
	if err != nil {
		t.Fatal(err)
	}
	return postgres.New(pool, inserts, nil)
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

// turn returns a call of a tool and its result of about this many tokens, as two messages.
func turn(n, tokens int) [][]byte {
	line := fmt.Sprintf("line of file %d with some text in it\\n", n)
	text := strings.Repeat(line, tokens*4/len(line)+1)
	return [][]byte{
		fmt.Appendf(nil, `{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":"Read","arguments":"{\"path\":\"f%d\"}"}}]}`, n, n),
		fmt.Appendf(nil, `{"role":"tool","tool_call_id":"c%d","content":"%s"}`, n, text),
	}
}

func (w *world) append(at session.Address, bodies ...[]byte) session.Appended {
	w.Helper()
	done, _, err := w.store.Append(context.WithoutCancel(w.Context()), w.batch(at, bodies...))
	if err != nil {
		w.Fatal(err)
	}
	return done
}

func (w *world) batch(at session.Address, bodies ...[]byte) session.Append {
	w.Helper()
	a := session.Append{Session: at, Format: session.OpenAIChat}
	for _, body := range bodies {
		m, err := wire.Inspect(a.Format, body)
		if err != nil {
			w.Fatal(err)
		}
		a.Messages = append(a.Messages, session.NewMessage{Body: body, Role: m.Role, Tokens: m.Tokens, StartsUnit: m.StartsUnit})
	}
	return a
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
	store := openStore(w.T, w.dsn)
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
	ctx := context.WithoutCancel(w.Context())
	found, err := w.store.Session(ctx, at)
	if err != nil {
		w.Fatal(err)
	}
	_, log, err := w.store.Messages(ctx, at, postgres.Range{Removed: true, Limit: 1_000_000})
	if err != nil {
		w.Fatal(err)
	}
	if len(log) != len(appended) || int(found.LastSeq) != len(appended) {
		w.Fatalf("%d messages were acknowledged, %d are in the log, last_seq is %d", len(appended), len(log), found.LastSeq)
	}
	for i := range log {
		if log[i].Seq != int64(i+1) || !bytes.Equal(log[i].Body, appended[i]) {
			w.Fatalf("message %d is not what was appended", i+1)
		}
	}
	view, bodies := w.read(at)
	tail := appended[view.Through:]
	if len(bodies) < len(tail) || !slices.EqualFunc(bodies[len(bodies)-len(tail):], tail, bytes.Equal) {
		w.Fatalf("the view's %d messages do not end with the %d that no checkpoint covers", len(bodies), len(tail))
	}
	if violations := wiretest.Validate(session.OpenAIChat, bodies, wire.Options{}); len(violations) > 0 {
		w.Errorf("the view breaks its provider's rules: %v", violations)
	}
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
	view, err := w.store.View(context.WithoutCancel(w.Context()), at, postgres.Version{})
	if err != nil {
		w.Fatal(err)
	}
	joined, err := zframe.Decompress(nil, view.Body, view.Size)
	if err != nil {
		w.Fatal(err)
	}
	if len(joined) > 0 && len(view.Tail) > 0 {
		joined = append(joined, ',')
	}
	var messages []json.RawMessage
	if err := json.Unmarshal(slicesConcat("[", joined, view.Tail, "]"), &messages); err != nil {
		w.Fatal(err)
	}
	bodies := make([][]byte, len(messages))
	for i := range messages {
		bodies[i] = messages[i]
	}
	return view, bodies
}

func slicesConcat(open string, a, b []byte, end string) []byte {
	return append(append(append([]byte(open), a...), b...), end...)
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
