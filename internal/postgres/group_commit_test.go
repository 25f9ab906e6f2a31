package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

// answer is what an append was answered.
type answer struct {
	session.Appended
	replayed bool
	err      error
}

// groupStore has appends arrive together.
type groupStore struct {
	*postgres.Store
	owner  *pgx.Conn // sees all tenants
	tenant uuid.UUID
}

// newGroupStore returns a store with few connections; dial is how they are made, nil for the usual way.
func newGroupStore(t *testing.T, dial func(context.Context, string, string) (net.Conn, error)) *groupStore {
	t.Helper()
	dsn := pgtest.New(t)
	config, err := pgxpool.ParseConfig(pgtest.Admin(dsn))
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 3
	config.ConnConfig.RuntimeParams["lock_timeout"] = "0" // what waits for a lock for ever is noticed
	if dial != nil {
		config.ConnConfig.DialFunc = dial
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	inserts, err := queue.New(pool)
	if err != nil {
		t.Fatal(err)
	}
	s := &groupStore{Store: postgres.New(pool, inserts, nil)}
	if s.owner, err = pgx.Connect(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.owner.Close(context.Background()) })
	s.tenant = newTenant(t, s.Store, "acme")
	return s
}

// sessions makes sessions of the tenant.
func (s *groupStore) sessions(t *testing.T, ids ...string) (made []session.Address) {
	t.Helper()
	for _, id := range ids {
		made = append(made, newSession(t, s.Store, s.tenant, id))
	}
	return made
}

// start has appends arrive together, in this order, and calls meanwhile before they can go on.
func (s *groupStore) start(t *testing.T, meanwhile func(), all ...session.Append) (wait func() []answer) {
	t.Helper()
	contexts := make([]context.Context, len(all))
	for i := range contexts {
		contexts[i] = t.Context()
	}
	return s.startWith(t, contexts, meanwhile, all...)
}

func (s *groupStore) startWith(
	t *testing.T, contexts []context.Context, meanwhile func(), all ...session.Append,
) (wait func() []answer) {
	t.Helper()
	release, err := postgres.HoldAppends(t.Context(), s.Store)
	if err != nil {
		t.Fatal(err)
	}
	answers := make([]answer, len(all))
	var group sync.WaitGroup
	for i, a := range all {
		group.Go(func() {
			answers[i].Appended, answers[i].replayed, answers[i].err = s.Append(contexts[i], a)
		})
		until(t, fmt.Sprintf("append %d arrives", i), func() bool {
			return postgres.ArrivedAppends(s.Store) > i
		})
	}
	if meanwhile != nil {
		meanwhile()
	}
	release()
	return func() []answer {
		group.Wait()
		return answers
	}
}

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for start := time.Now(); !is(); time.Sleep(time.Millisecond) {
		if time.Since(start) > time.Minute {
			t.Fatalf("a minute has passed until %s", what)
		}
	}
}

// transactions returns how many transactions have written the messages of sessions that are named, all if none is.
func (s *groupStore) transactions(t *testing.T, of ...session.Address) (n int) {
	t.Helper()
	var ids []string
	for _, at := range of {
		ids = append(ids, at.ID)
	}
	err := s.owner.QueryRow(t.Context(), `
		SELECT count(DISTINCT m.xmin::text)
		  FROM messages m
		  JOIN sessions s ON s.tenant_id = m.tenant_id AND s.key = m.session_key
		 WHERE $1::text[] IS NULL OR s.id = ANY ($1)`, ids).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// state returns what the tables have of the sessions and their messages, apart from keys and times.
func (s *groupStore) state(t *testing.T) string {
	t.Helper()
	rows, err := s.owner.Query(t.Context(), `
		SELECT concat_ws(' ', s.id, s.last_seq, s.tail_bytes, s.pinned, s.context_tokens, s.total_tokens, s.format,
		                 s.calibration, s.unseen_tokens, s.counted_tokens, s.exact_tokens, s.last_usage, '|', m.seq,
		                 m.role, m.format, m.tokens, m.client_id, m.calls, m.answers, m.flags, m.item_id, m.shape,
		                 encode(m.body, 'escape'), encode(m.digest, 'hex'), '|', i.route, i.key, i.answer)
		  FROM sessions s
		  LEFT JOIN messages m ON m.tenant_id = s.tenant_id AND m.session_key = s.key
		  LEFT JOIN idempotency i ON i.tenant_id = s.tenant_id AND i.session_key = s.key
		 ORDER BY s.tenant_id, s.id, m.seq, i.key`)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

// kinds returns appends of every kind, to sessions of their own.
func kinds(at []session.Address) (all []session.Append) {
	for i, address := range at {
		one, two := message("one", 10+i), message("two", 20)
		a := batch(address, one, two)
		switch i % 7 {
		case 1:
			a.Usage = &session.Usage{Model: "m", InputTokens: 40, OutputTokens: 3}
			a.Messages[1].Role = "assistant"
		case 2:
			a.ExactTokens = new(int64(33))
		case 3:
			a.Idempotency = &session.Idempotency{Route: "r", Key: fmt.Sprint("key", i)}
		case 4:
			a.Messages[0].ClientID, a.Messages[1].ClientID = "c0", "c1"
			a.Messages[1].ItemID = "item"
		case 5:
			a.Messages[0].Pinned = true
			a.Messages[0].Calls, a.Messages[1].Answers = []string{"call", ""}, []string{"call"}
		case 6:
			a.ExpectedSeq = new(int64(0))
			a.Format = session.Anthropic
		}
		all = append(all, a)
	}
	return all
}

func TestAppendsThatArriveTogetherAreOneTransaction(t *testing.T) {
	t.Parallel()
	var ids []string
	for i := range 16 {
		ids = append(ids, fmt.Sprintf("s%02d", i))
	}
	grouped, single := newGroupStore(t, nil), newGroupStore(t, nil)
	others := newTenant(t, grouped.Store, "others")
	all := kinds(grouped.sessions(t, ids...))
	all = append(all, batch(newSession(t, grouped.Store, others, "s00"), message("of others", 1)))
	all = append(all, batch(all[0].Session, message("behind", 1)))
	got := grouped.start(t, nil, all...)()
	if n := grouped.transactions(t); n != 1 {
		t.Errorf("%d transactions", n)
	}
	alone := kinds(single.sessions(t, ids...))
	alone = append(alone, batch(newSession(t, single.Store, newTenant(t, single.Store, "others"), "s00"), message("of others", 1)))
	alone = append(alone, batch(alone[0].Session, message("behind", 1)))
	for i, a := range alone {
		want, replayed, err := single.Append(t.Context(), a)
		if diff := cmp.Diff(want, got[i].Appended); diff != "" || err != nil || got[i].err != nil || replayed || got[i].replayed {
			t.Errorf("append %d: %v, alone %v; replayed %t:\n%s", i, got[i].err, err, got[i].replayed, diff)
		}
	}
	if diff := cmp.Diff(strings.Split(single.state(t), "\n"), strings.Split(grouped.state(t), "\n")); diff != "" {
		t.Error(diff)
	}
}

func TestAMemberThatTheStatementRefusesGoesItsOwnWay(t *testing.T) {
	t.Parallel()
	s := newGroupStore(t, nil)
	at := s.sessions(t, "a", "due", "stale", "replay", "resend", "z")
	key := &session.Idempotency{Route: "r", Key: "k"}
	known := message("known", 5)
	known.ClientID = "c"
	replay, resend := batch(at[3], message("once", 5)), batch(at[4], known)
	replay.Idempotency = key
	mustAppend(t, s.Store, replay)
	mustAppend(t, s.Store, resend)
	stale := batch(at[2], message("x", 1))
	stale.ExpectedSeq = new(int64(7))
	got := s.start(t, nil, batch(at[0], message("a", 1)), batch(at[1], message("large", 801)), stale, replay, resend,
		batch(session.Address{Tenant: s.tenant, ID: "none"}, message("x", 1)), batch(at[5], message("z", 1)))()
	var staleErr *session.StaleError
	switch {
	case got[0].err != nil || got[6].err != nil || got[0].LastSeq != 1 || got[6].LastSeq != 1:
		t.Errorf("the others: %+v, %+v", got[0], got[6])
	case got[1].err != nil || got[1].Compaction != session.CompactionQueued:
		t.Errorf("over the trigger: %+v", got[1])
	case !errors.As(got[2].err, &staleErr):
		t.Errorf("expected_seq: %v", got[2].err)
	case got[3].err != nil || !got[3].replayed || got[3].LastSeq != 1:
		t.Errorf("a known Idempotency-Key: %+v", got[3])
	case got[4].err != nil || !got[4].Replayed || got[4].LastSeq != 1:
		t.Errorf("known client ids: %+v", got[4])
	case !errors.Is(got[5].err, session.ErrNotFound):
		t.Errorf("no session: %v", got[5].err)
	}
	if n := s.transactions(t, at[0], at[5]); n != 1 {
		t.Errorf("the others were %d transactions", n)
	}
}

// Each of these ends the transaction, and then everybody is alone.
func TestAMemberThatFailsFailsAlone(t *testing.T) {
	t.Parallel()
	s := newGroupStore(t, nil)
	at := s.sessions(t, "a", "b", "bad", "c", "z")
	one, other := batch(at[1], message("one", 5)), batch(at[3], message("other", 5))
	one.Idempotency = &session.Idempotency{Route: "r", Key: "k"}
	other.Idempotency = &session.Idempotency{Route: "r", Key: "k", Digest: [32]byte{1}}
	bad := batch(at[2], message("x", 1))
	bad.Messages[0].ClientID = "\xff"
	for name, failing := range map[string][]session.Append{"one Idempotency-Key twice": {one, other}, "no text": {bad}} {
		before := s.transactions(t, at[0], at[4])
		got := s.start(t, nil, slices.Concat([]session.Append{batch(at[0], message("a", 1))}, failing,
			[]session.Append{batch(at[4], message("z", 1))})...)()
		var errs []error
		for _, a := range got {
			if a.err != nil {
				errs = append(errs, a.err)
			}
		}
		if got[0].err != nil || got[len(got)-1].err != nil || len(errs) != 1 {
			t.Errorf("%s: %v", name, errs)
		}
		if n := s.transactions(t, at[0], at[4]); n != before+2 {
			t.Errorf("%s: the others were %d transactions: nothing failed", name, n-before)
		}
	}
	total := int64(0)
	for i, want := range []int64{2, -1, 0, -1, 2} {
		found, err := s.Session(t.Context(), at[i])
		if total += found.LastSeq; err != nil || want >= 0 && found.LastSeq != want {
			t.Errorf("session %s has %d messages, %v; want %d", at[i].ID, found.LastSeq, err, want)
		}
	}
	if total != 5 {
		t.Errorf("%d messages; of the two with one key, one has its message", total)
	}
}

// What comes second in a transaction sees what the first one wrote.
func TestTheSameTwiceTogetherIsDoneOnce(t *testing.T) {
	t.Parallel()
	s := newGroupStore(t, nil)
	at := s.sessions(t, "key", "ids")
	keyed := batch(at[0], message("once", 5))
	keyed.Idempotency = &session.Idempotency{Route: "r", Key: "k"}
	named := batch(at[1], message("once", 5))
	named.Messages[0].ClientID = "c"
	got := s.start(t, nil, keyed, named, keyed, named)()
	for i := range at {
		first, second := got[i], got[i+2]
		replays := first.replayed != second.replayed || first.Replayed != second.Replayed
		if first.err != nil || second.err != nil || !replays || first.LastSeq != 1 || second.LastSeq != 1 {
			t.Errorf("%s twice: %+v, %+v", at[i].ID, first, second)
		}
	}
	if n := s.transactions(t); n != 1 {
		t.Errorf("%d transactions", n)
	}
}

func TestAMemberWhoseSessionIsLockedHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	s := newGroupStore(t, nil)
	at := s.sessions(t, "a", "locked", "z")
	var unlock pgx.Tx
	wait := s.start(t, func() {
		var err error
		if unlock, err = s.owner.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := unlock.Exec(t.Context(), `SELECT FROM sessions WHERE id = 'locked' FOR UPDATE`); err != nil {
			t.Fatal(err)
		}
	}, batch(at[0], message("a", 1)), batch(at[1], message("b", 1)), batch(at[2], message("z", 1)))
	for _, i := range []int{0, 2} {
		until(t, "the others are done while the session is locked", func() bool {
			found, err := s.Session(t.Context(), at[i])
			return err == nil && found.LastSeq == 1
		})
	}
	if err := unlock.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, a := range wait() {
		if a.err != nil && i != 1 { // that one may have waited for longer than lock_timeout
			t.Errorf("append %d: %v", i, a.err)
		}
	}
}

// Whoever changed the session commits while the appends wait for the lock, or when they have given it up.
func TestAMemberWhoseSessionChangesMeanwhileIsDoneOnce(t *testing.T) {
	t.Parallel()
	s := newGroupStore(t, nil)
	at := s.sessions(t, "a", "b", "z")
	for round := range int64(5) {
		var other pgx.Tx
		wait := s.start(t, func() {
			var err error
			if other, err = s.owner.Begin(t.Context()); err != nil {
				t.Fatal(err)
			}
			_, err = other.Exec(t.Context(), `UPDATE sessions SET context_tokens = context_tokens + 1 WHERE id = 'b'`)
			if err != nil {
				t.Fatal(err)
			}
		}, batch(at[0], message("a", 1)), batch(at[1], message("b", 1)), batch(at[2], message("z", 1)))
		time.Sleep(time.Duration(round) * 5 * time.Millisecond)
		if err := other.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, a := range wait() {
			if want := (round + 1) * (1 + int64(i%2)); a.err != nil || a.LastSeq != round+1 || a.ContextTokens != want {
				t.Errorf("round %d, append %d: %+v", round, i, a)
			}
		}
	}
}

func TestACallerWhoGoesTakesNobodyAlong(t *testing.T) {
	t.Parallel()
	s := newGroupStore(t, nil)
	at := s.sessions(t, "a", "b", "c")
	for gone := range 2 { // the one who leads, and one who waits
		contexts := []context.Context{t.Context(), t.Context(), t.Context()}
		ctx, cancel := context.WithCancel(t.Context())
		contexts[gone] = ctx
		before := postgres.ArrivedAppends(s.Store)
		got := s.startWith(t, contexts, func() {
			cancel()
			if gone > 0 {
				until(t, "the caller has gone", func() bool { return postgres.ArrivedAppends(s.Store) == before+2 })
			}
		}, batch(at[0], message("a", 1)), batch(at[1], message("b", 1)), batch(at[2], message("c", 1)))()
		for i, a := range got {
			if isGone := errors.Is(a.err, context.Canceled); isGone != (i == gone) || !isGone && a.err != nil {
				t.Errorf("caller %d has gone: append %d: %v", gone, i, a.err)
			}
		}
	}
}

// cutConn loses the next answer of the server when cut says so, and its connection with it.
type cutConn struct {
	net.Conn
	cut *atomic.Bool
}

func (c cutConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.cut.CompareAndSwap(true, false) {
		c.Close()
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

// The answer to the commit is lost: nobody may try again.
func TestNobodyIsTriedAgainIfTheCommitMayHaveHappened(t *testing.T) {
	t.Parallel()
	var cut atomic.Bool
	s := newGroupStore(t, func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return cutConn{conn, &cut}, err
	})
	at := s.sessions(t, "a", "b", "c")
	all := []session.Append{batch(at[0], message("a", 1)), batch(at[1], message("b", 1)), batch(at[2], message("c", 1))}
	const before = 20 // appends, after which every connection has the statement
	for range before {
		s.start(t, nil, all...)()
	}
	got := s.start(t, func() { cut.Store(true) }, all...)()
	cut.Store(false)
	for i, a := range got {
		if a.err == nil || errors.Is(a.err, session.ErrNotFound) {
			t.Errorf("append %d: %v", i, a.err)
		}
		until(t, "the server has done what it was sent, once", func() bool {
			found, err := s.Session(t.Context(), at[i])
			return err == nil && found.LastSeq > before
		})
		if found, err := s.Session(t.Context(), at[i]); err != nil || found.LastSeq != before+1 {
			t.Errorf("session %s has %d messages, %v", at[i].ID, found.LastSeq, err)
		}
	}
}

// Row-level security compares each statement of a transaction with the tenant that is set just before it.
func TestEachStatementOfATransactionIsBoundToItsTenant(t *testing.T) {
	t.Parallel()
	s := newGroupStore(t, nil)
	at := []session.Address{s.sessions(t, "s")[0], newSession(t, s.Store, newTenant(t, s.Store, "others"), "s")}
	found := func(set, of int, many bool) (rows int) {
		b := &pgx.Batch{}
		for _, tenant := range []int{1 - set, set} { // the other one was set before in the same transaction
			sql, args := postgres.TenantStatement(at[tenant].Tenant)
			b.Queue(sql, args...)
		}
		sql, args := postgres.AppendStatement(batch(at[of], message("x", 1)))
		if many {
			sql, args = postgres.ManyStatement(batch(at[of], message("x", 1)))
		}
		b.Queue(sql, args...)
		results := s.Pool().SendBatch(t.Context(), b)
		defer results.Close()
		for range 2 {
			if _, err := results.Exec(); err != nil {
				t.Fatal(err)
			}
		}
		tag, err := results.Exec()
		if err != nil {
			t.Fatal(err)
		}
		return int(tag.RowsAffected())
	}
	for _, many := range []bool{false, true} {
		for tenant := range at {
			if found(tenant, tenant, many) != 1 || found(tenant, 1-tenant, many) != 0 {
				t.Errorf("tenant %d, many %t: its own session must be found, and the other's must not", tenant, many)
			}
		}
	}
}

func TestSessionsAreLockedInOneOrder(t *testing.T) {
	t.Parallel()
	one, two := uuid.UUID{1}, uuid.UUID{2}
	want := []string{"a", "z", "a", "b", "z"}
	at := []session.Address{{Tenant: one, ID: "a"}, {Tenant: one, ID: "z"}, {Tenant: two, ID: "a"}, {Tenant: two, ID: "b"}, {Tenant: two, ID: "z"}}
	for range 10 {
		at = append(at[2:], at[:2]...)
		if got := postgres.InLockOrder(at...); !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
	}
}
