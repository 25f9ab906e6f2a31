package postgres_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/erasure"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// described has sessions with random metadata, and knows what each has.
type described struct {
	*testing.T
	store  *postgres.Store
	tenant uuid.UUID
	random *rand.Rand
	has    map[string]map[string]any
}

// object returns a random object with few pairs, and with nested members, which only other programs write, if they may be.
func (d *described) object(nested bool) map[string]any {
	object := map[string]any{}
	for range d.random.IntN(4) {
		key := string("abc"[d.random.IntN(3)])
		object[key] = string("xyzw"[d.random.IntN(4)])
		if nested && d.random.IntN(4) == 0 {
			object[key] = []any{nil, 1.0, map[string]any{"a": object[key]}, []any{object[key], "x"}, map[string]any{}}[d.random.IntN(5)]
		}
	}
	return object
}

// contains reports whether metadata contain others, as @> of jsonb does.
func contains(has, wanted any) bool {
	switch wanted := wanted.(type) {
	case map[string]any:
		object, ok := has.(map[string]any)
		for key, value := range wanted {
			member, there := object[key]
			ok = ok && there && contains(member, value)
		}
		return ok
	case []any:
		list, ok := has.([]any)
		for _, value := range wanted {
			ok = ok && slices.ContainsFunc(list, func(member any) bool { return contains(member, value) })
		}
		return ok
	}
	return has == wanted
}

// fill makes, changes and forks sessions.
func (d *described) fill() {
	for i := range 80 {
		id := fmt.Sprintf("s%02d", i)
		at := session.Address{Tenant: d.tenant, ID: id}
		d.has[id] = d.object(false)
		if i > 0 && i%5 == 0 {
			from := fmt.Sprintf("s%02d", i-1)
			if _, _, err := d.store.Fork(d.Context(), session.Fork{From: session.Address{Tenant: d.tenant, ID: from}, ID: id}); err != nil {
				d.Fatal(err)
			}
			d.has[id] = maps.Clone(d.has[from])
		} else if _, _, err := d.store.Create(d.Context(), at, session.Change{Metadata: d.json(d.has[id])}, nil); err != nil {
			d.Fatal(err)
		}
		if i%3 == 0 {
			d.has[id] = d.object(false)
			if _, _, err := d.store.Update(d.Context(), at, session.Change{Metadata: d.json(d.has[id])}, nil); err != nil {
				d.Fatal(err)
			}
		}
		if i%7 == 0 {
			d.has[id] = d.object(true)
			d.exec(`UPDATE sessions SET metadata = $2 WHERE tenant_id = $1 AND id = $3`, d.tenant, d.json(d.has[id]), id)
		}
		mustAppend(d, d.store, batch(at, texts("hello")...))
		mustCount(d, d.store, d.tenant, session.Reading{Session: id})
	}
}

func (d *described) json(object map[string]any) json.RawMessage {
	text, err := json.Marshal(object)
	if err != nil {
		d.Fatal(err)
	}
	return text
}

func (d *described) exec(sql string, args ...any) {
	d.Helper()
	if err := execInTenant(d, d.store, d.tenant, sql, args...); err != nil {
		d.Fatal(err)
	}
}

// check compares what each reader of metadata finds with the sessions that have it.
func (d *described) check(wanted map[string]any) {
	d.Helper()
	var want []string
	for id, has := range d.has {
		if contains(has, wanted) {
			want = append(want, id)
		}
	}
	slices.Sort(want)
	metadata := d.json(wanted)
	for _, byAppend := range []bool{false, true} {
		found := d.pages(session.Search{Metadata: metadata, ByAppend: byAppend})
		if !slices.IsSortedFunc(found, func(a, b string) int { return strings.Compare(b, a) }) {
			d.Errorf("%s, by append %t: %v is no order", metadata, byAppend, found)
		}
		slices.Sort(found)
		if !slices.Equal(found, want) {
			d.Errorf("%s, by append %t, finds %v, not %v", metadata, byAppend, found, want)
		}
	}
	filtered, err := countFiltered(d.Context(), d.store, d.tenant, session.SessionFilter{Metadata: metadata})
	if err != nil || filtered != len(want) {
		d.Errorf("%s filters %d sessions, not %d: %v", metadata, filtered, len(want), err)
	}
	begun, _, err := erasure.OfSubject(d.Context(), d.store, d.tenant, metadata, nil)
	if err != nil {
		d.Fatal(err)
	}
	work, err := erasure.Start(d.Context(), d.store, d.tenant, begun.ID)
	if err != nil {
		d.Fatal(err)
	}
	due, err := work.Next(d.Context(), 1000)
	if err != nil || len(due) != len(want) {
		d.Errorf("%s erases %d sessions, not %d: %v", metadata, len(due), len(want), err)
	}
}

var countFilteredSQL = postgres.Filtered(`
	SELECT count(*)
	  FROM sessions s
	 WHERE s.tenant_id = @tenant AND {paired} AND {filter}`)

// countFiltered counts the sessions that a filter finds, cold ones, too.
func countFiltered(ctx context.Context, s *postgres.Store, tenant uuid.UUID, f session.SessionFilter) (int, error) {
	return postgres.ReadTx(ctx, s.Seeing(postgres.WithCold), tenant, func(tx pgx.Tx) (int, error) {
		sql, args, err := countFilteredSQL.In(ctx, tx, tenant, f)
		if err != nil {
			return 0, err
		}
		return postgres.RowIn(ctx, tx, pgx.RowTo[int], sql, args)
	})
}

// pages returns the ids of all pages of a search.
func (d *described) pages(search session.Search) (ids []string) {
	for page := (session.Page{Limit: 7}); ; {
		found, beyond, err := d.store.FindSessions(d.Context(), d.tenant, search, page)
		if err != nil || beyond != nil {
			d.Fatal(beyond, err)
		}
		for _, s := range found {
			ids = append(ids, s.ID)
			page.Time, page.ID = s.At, s.Key
		}
		if len(found) < page.Limit {
			return ids
		}
	}
}

// differences counts the pairs that are there and should not be, and those that are missing.
func (d *described) differences() int {
	d.Helper()
	sql := `
		WITH should AS (
			SELECT s.key, p.pair, s.created_at
			  FROM sessions s
			 CROSS JOIN LATERAL metadata_pairs(s.metadata) AS p (pair)
			 WHERE s.tenant_id = $1
		), are AS (
			SELECT session_key, pair, created_at
			  FROM session_metadata
			 WHERE tenant_id = $1
		)
		SELECT (SELECT count(*) FROM (TABLE should EXCEPT TABLE are) m)
		     + (SELECT count(*) FROM (TABLE are EXCEPT TABLE should) m)`
	return readInTenant[int](d, d.store, d.tenant, sql, d.tenant)
}

// readInTenant returns the one value of a statement, like execInTenant.
func readInTenant[T any](t testing.TB, store *postgres.Store, tenant uuid.UUID, sql string, args ...any) (value T) {
	t.Helper()
	err := postgres.InTenant(t.Context(), store.Pool(), tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), sql, args...).Scan(&value)
	})
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// TestEveryFilterOnMetadataFindsWhatHasIt compares filters with the sessions themselves: by the pairs that a trigger has
// written, without any as long as the sweep writes those of old sessions, and by what it wrote.
func TestEveryFilterOnMetadataFindsWhatHasIt(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	d := &described{t, store, tenant, rand.New(rand.NewPCG(1, 2)), map[string]map[string]any{}}
	d.fill()
	checkAll := func() {
		t.Helper()
		for range 40 {
			d.check(d.object(d.random.IntN(3) == 0))
		}
	}
	if n := d.differences(); n != 0 {
		t.Errorf("%d pairs are wrong", n)
	}
	checkAll()

	d.exec(`DELETE FROM session_metadata WHERE tenant_id = $1`, tenant)
	d.exec(`INSERT INTO tenant_tasks (tenant_id, kind) VALUES ($1, $2)`, tenant, postgres.TaskMetadata)
	checkAll()
	for range 5 {
		tasks, err := store.Tasks(t.Context(), postgres.TaskMetadata, 10)
		if err != nil || len(tasks) != 1 {
			t.Fatal(tasks, err)
		}
		if looked, err := store.IndexMetadata(t.Context(), tasks[0], 19); err != nil || looked == 0 {
			t.Fatal(looked, err)
		}
	}
	if left, err := store.Tasks(t.Context(), postgres.TaskMetadata, 10); err != nil || len(left) != 0 {
		t.Errorf("%v is left: %v", left, err)
	}
	if n := d.differences(); n != 0 {
		t.Errorf("%d pairs are wrong", n)
	}
	checkAll()
}

// TestAnAppendDoesNotTouchThePairs looks at which rows an append, a change of the model and an erasure leave.
func TestAnAppendDoesNotTouchThePairs(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := session.Address{Tenant: tenant, ID: "s"}
	change := session.Change{Metadata: []byte(`{"user":"u1","app":"x"}`)}
	if _, _, err := store.Create(t.Context(), at, change, nil); err != nil {
		t.Fatal(err)
	}
	rows := func() string {
		t.Helper()
		return readInTenant[string](t, store, tenant, `
			SELECT coalesce(string_agg(ctid || ' ' || pair, ';' ORDER BY pair), '')
			  FROM session_metadata
			 WHERE tenant_id = $1`, tenant)
	}
	before, model := rows(), "gpt-4o"
	mustAppend(t, store, batch(at, texts("hello")...))
	change.Model = &model // with the same metadata
	if _, _, err := store.Update(t.Context(), at, change, nil); err != nil {
		t.Fatal(err)
	}
	if after := rows(); after != before || strings.Count(after, ";") != 1 {
		t.Errorf("%s became %s", before, after)
	}
	if _, err := store.Delete(t.Context(), at, nil); err != nil {
		t.Fatal(err)
	}
	if left := rows(); left != "" {
		t.Errorf("%s is left of an erased session", left)
	}
}
