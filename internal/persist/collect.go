package persist

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/varve-dev/varve/internal/session"
)

// The counters of this process's collections.
var (
	collectedTotal = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "varve_results_collected_total",
		Help: "Bodies that nothing named, objects that no row named (orphan) and those of erased sessions (erased).",
	}, []string{"kind"})
	collectedBytes = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "varve_results_collected_bytes_total", Help: "Stored bytes of what was collected.",
	}, []string{"kind"})
)

// Collected counts what was collected, of a kind of the counters.
func Collected(kind string, n int, bytes int64) {
	collectedTotal.WithLabelValues(kind).Add(float64(n))
	collectedBytes.WithLabelValues(kind).Add(float64(bytes))
}

// Waste is a body that was collected: its rows are gone, its objects are not yet.
type Waste struct {
	Key     session.Key
	Store   Kind
	Bytes   int64 // of its chunks, as they were stored
	Objects []uuid.UUID
}

// Collect deletes the rows of at most limit bodies of a tenant that nothing names and nobody has written to for grace.
// Sessions that are archived or restored now are left alone. What names a body is known from the foreign keys to
// result_bodies.
func Collect(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, grace time.Duration, limit int) ([]Waste, error) {
	unnamed, err := unnamedSQL(ctx, tx)
	if err != nil {
		return nil, err
	}
	// Once they are locked, no transaction can begin to name them.
	ids, err := rowsOf(ctx, tx, pgx.RowTo[uuid.UUID], `
		SELECT b.id
		  FROM result_bodies b
		 WHERE b.tenant_id = $1 AND b.touched_at < now() - $2::interval
		   AND NOT EXISTS (
		       SELECT
		         FROM session_archives a
		        WHERE a.tenant_id = $1 AND a.session_key = b.session_key)`+unnamed+`
		 LIMIT $3
		   FOR UPDATE SKIP LOCKED`, tenant, grace, limit)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	// One that was named just before is seen by a second look only.
	return deleteBodies(ctx, tx, `
		SELECT b.session_key, b.id, b.store
		  FROM result_bodies b
		 WHERE b.tenant_id = $1 AND b.id = ANY ($2)`+unnamed, tenant, ids)
}

// deleteBodies deletes the rows of the bodies that a statement selects.
func deleteBodies(ctx context.Context, tx pgx.Tx, sql string, tenant uuid.UUID, ids []uuid.UUID) ([]Waste, error) {
	rows, err := tx.Query(ctx, sql, tenant, ids)
	if err != nil {
		return nil, err
	}
	var found []Waste
	var bodies []uuid.UUID
	w := Waste{Key: session.Key{Tenant: tenant}}
	var id uuid.UUID
	if _, err := pgx.ForEachRow(rows, []any{&w.Key.Key, &id, &w.Store}, func() error {
		found = append(found, w)
		bodies = append(bodies, id)
		return nil
	}); err != nil {
		return nil, err
	}
	for i := range found {
		if err := found[i].delete(ctx, tx, bodies[i]); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// delete deletes the rows of a body.
func (w *Waste) delete(ctx context.Context, tx pgx.Tx, id uuid.UUID) error {
	err := tx.QueryRow(ctx, `
		SELECT coalesce(sum(coalesce(object_size, octet_length(body))), 0)
		  FROM result_chunks
		 WHERE tenant_id = $1 AND session_key = $2 AND body_id = $3`, w.Key.Tenant, w.Key.Key, id).Scan(&w.Bytes)
	if err != nil {
		return err
	}
	w.Objects, err = Drop(ctx, tx, w.Key, id)
	return err
}

// unnamedSQL returns the condition that no row has a foreign key to the body b, chunks aside.
func unnamedSQL(ctx context.Context, tx pgx.Tx) (string, error) {
	type namer struct {
		Table   string
		Columns []string // for tenant_id, session_key and id
	}
	namers, err := rowsOf(ctx, tx, pgx.RowToStructByPos[namer], `
		SELECT c.conrelid::regclass::text,
		       (SELECT array_agg(a.attname::text
		                         ORDER BY array_position(ARRAY['tenant_id', 'session_key', 'id'], f.attname::text))
		          FROM unnest(c.conkey, c.confkey) k (own, theirs)
		          JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.own
		          JOIN pg_attribute f ON f.attrelid = c.confrelid AND f.attnum = k.theirs)
		  FROM pg_constraint c
		 WHERE c.contype = 'f' AND c.confrelid = 'result_bodies'::regclass AND c.conrelid <> 'result_chunks'::regclass`)
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(namers, func(n namer) bool { return n.Table == "results" }) {
		return "", fmt.Errorf("no foreign key from results to their bodies: nothing is collected")
	}
	var sql strings.Builder
	for _, n := range namers {
		column := func(i int) string { return pgx.Identifier{n.Columns[i]}.Sanitize() }
		fmt.Fprintf(&sql, `
		   AND NOT EXISTS (
		       SELECT
		         FROM %s n
		        WHERE n.%s = b.tenant_id AND n.%s = b.session_key AND n.%s = b.id)`,
			n.Table, column(0), column(1), column(2))
	}
	return sql.String(), nil
}

func rowsOf[T any](ctx context.Context, tx pgx.Tx, scan pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
}

// ObjectOf returns what the name of an object says: whose it is and its id, which is the same for what a Put that was
// killed left behind. ok is false for what is no object of a session.
func ObjectOf(name string) (key session.Key, id uuid.UUID, ok bool) {
	words := strings.Split(name, "/")
	if len(words) != 3 {
		return key, id, false
	}
	object, _, _ := strings.Cut(words[2], ".")
	for i, word := range []string{words[0], words[1], object} {
		parsed, err := uuid.Parse(word)
		if err != nil || parsed.String() != word {
			return key, id, false
		}
		*[]*uuid.UUID{&key.Tenant, &key.Key, &id}[i] = parsed
	}
	return key, id, true
}

// Named returns which of some objects of a tenant are named by a chunk or an archive. They lie under the
// prefixes of these sessions; those of an archive lie under its own session's.
func Named(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, prefixes, objects []uuid.UUID) ([]uuid.UUID, error) {
	return rowsOf(ctx, tx, pgx.RowTo[uuid.UUID], `
		SELECT object
		  FROM result_chunks
		 WHERE tenant_id = $1 AND object = ANY ($2)
		 UNION
		SELECT object
		  FROM session_archives, unnest(objects) object
		 WHERE tenant_id = $1 AND session_key = ANY ($3) AND object = ANY ($2)`, tenant, objects, prefixes)
}
