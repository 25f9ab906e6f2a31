package cells

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/postgres"
)

// table is a table that has rows of tenants.
type table struct {
	Name     string
	Columns  []string // that are copied: neither generated ones nor numbers that the database gives
	Key      []string
	Numbered string // the column whose numbers the database gives, "" for none; rows are copied in its order
	Late     bool   // workers or operators find its rows without asking for the tenant: it comes last
}

// tablesSQL finds the tables of tenants in the catalogue, so that none is forgotten.
const tablesSQL = `
	SELECT c.relname::text,
	       ARRAY(SELECT a.attname::text
	               FROM pg_attribute a
	              WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
	                AND a.attidentity = ''
	              ORDER BY a.attnum),
	       ARRAY(SELECT a.attname::text
	               FROM pg_index i, unnest(i.indkey) WITH ORDINALITY k (attnum, n), pg_attribute a
	              WHERE i.indrelid = c.oid AND i.indisprimary AND a.attrelid = c.oid AND a.attnum = k.attnum
	              ORDER BY k.n),
	       coalesce((SELECT a.attname::text
	                   FROM pg_attribute a
	                  WHERE a.attrelid = c.oid AND a.attidentity <> ''), ''),
	       EXISTS (
	       SELECT
	         FROM pg_policy p
	        WHERE p.polrelid = c.oid AND pg_get_expr(p.polqual, p.polrelid) = 'true'
	          AND p.polroles && ARRAY[to_regrole($1), to_regrole($2)]::oid[])
	  FROM pg_class c
	  JOIN pg_attribute t ON t.attrelid = c.oid AND t.attname = 'tenant_id' AND NOT t.attisdropped
	 WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
	 ORDER BY c.relname`

// tablesOf returns the tables of tenants that a database has, and the version of its schema.
func tablesOf(ctx context.Context, pool *pgxpool.Pool) (tables []*table, version int, err error) {
	rows, _ := pool.Query(ctx, tablesSQL, postgres.WorkerRole, postgres.AdminRole)
	tables, err = pgx.CollectRows(rows, pgx.RowToAddrOfStructByPos[table])
	if err == nil {
		err = pool.QueryRow(ctx, `SELECT max(version) FROM schema_migrations`).Scan(&version)
	}
	for _, t := range tables {
		if len(t.Key) == 0 && err == nil {
			err = fmt.Errorf("table %s has no primary key: what changes of it cannot be followed", t.Name)
		}
	}
	return tables, version, err
}

func sameTables(a, b []*table) bool { return reflect.DeepEqual(a, b) }

// Tables returns the names of the tables that a move copies.
func Tables(ctx context.Context, pool *pgxpool.Pool) (names []string, err error) {
	tables, _, err := tablesOf(ctx, pool)
	for _, t := range tables {
		names = append(names, t.Name)
	}
	return names, err
}

// list returns columns with a comma between them.
func list(columns []string, prefix string) string {
	quoted := make([]string, len(columns))
	for i, name := range columns {
		quoted[i] = prefix + pgx.Identifier{name}.Sanitize()
	}
	return strings.Join(quoted, `, `)
}

// read returns the columns as they are to be at the destination. What lies outside of PostgreSQL lies there in a store
// that may be of another kind.
func (t *table) read(outside persist.Kind) string {
	values := make([]string, len(t.Columns))
	for i, name := range t.Columns {
		values[i] = pgx.Identifier{name}.Sanitize()
		if name == "store" {
			values[i] = fmt.Sprintf(`CASE store WHEN 0 THEN store ELSE %d::smallint END`, outside)
		}
	}
	return strings.Join(values, `, `)
}

// order returns the order in which rows are copied, so that new numbers follow each other as the old ones do.
func (t *table) order() string {
	if t.Numbered == "" {
		return ``
	}
	return ` ORDER BY ` + pgx.Identifier{t.Numbered}.Sanitize()
}
