package tier

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tier/frozen"
)

// archivedTable is a table whose rows of a session go into its archive.
type archivedTable struct {
	name  string
	key   []string // of the row in its session, in which order rows are read
	large []string // columns that may be large
	skip  []string // columns that are not archived: they get their default when the row is restored, or another value
	from  string   // the rows of a session as t; those of the table itself if it is empty
	bytes string   // where the column body of a row lies, as persist.Row has it, if that may be outside

	// Columns that are compressed, and how. whole is, in SQL, whether a row t is what its own digests say; one that is
	// not is archived as it is. reseal makes the digests of rows t anew that came back as another compression of the
	// same bytes: $3 are values of their key's last column.
	codings map[string]frozen.Coding
	whole   string
	reseal  string
}

// archivedTables are the tables whose rows are archived, those first that others refer to.
var archivedTables = []archivedTable{
	{name: "messages", key: []string{"seq"}, large: []string{"body", "view_body"}},
	{
		name: "message_packs", key: []string{"first_seq"}, large: []string{"body"},
		codings: map[string]frozen.Coding{"body": frozen.Frame}, reseal: resealPacks,
		whole: `t.digest = sha256(t.body)`,
	},
	{name: "result_bodies", key: []string{"id"}, skip: []string{"store", "held_in", "objects_in"}},
	{
		name: "result_chunks", key: []string{"body_id", "n"}, large: []string{"body"}, from: chunksOfSession,
		bytes:   `t.codec, t.body, t.store, t.prefix, t.object, t.object_at, t.object_size`,
		skip:    []string{"object", "object_at", "object_size"},
		codings: map[string]frozen.Coding{"body": frozen.Frame}, // the digest is that of the content
	},
	{name: "results", key: []string{"ref"}},
	{
		name: "uploads", key: []string{"id"}, large: []string{"shown"},
		skip: []string{"searched_in", "searched_in_part"},
	},
	{
		name: "checkpoints", key: []string{"n"}, large: []string{"body", "state"},
		codings: map[string]frozen.Coding{"body": frozen.Blocks, "state": frozen.Frame}, reseal: resealCheckpoints,
		whole: `(t.body_digest IS NULL OR t.body_digest = ` + postgres.BodyDigestSQL(`t`) + `)
			AND (t.state_digest IS NULL OR t.state_digest = sha256(t.state))`,
	},
	{name: "runs", key: []string{"id"}},
	{name: "session_pins", key: []string{"ref"}, large: []string{"text"}},
	{
		name: "summaries", key: []string{"model", "digest"}, large: []string{"request", "summary"},
		codings: map[string]frozen.Coding{"request": frozen.Frame}, // no digest is of the request as it is stored
	},
	{name: modelAnswers, key: []string{"key"}, large: []string{"answer"}},
}

const resealPacks = `
	UPDATE message_packs t
	   SET digest = sha256(t.body)
	 WHERE t.tenant_id = $1 AND t.session_key = $2 AND t.first_seq = ANY ($3::bigint[])`

var resealCheckpoints = `
	UPDATE checkpoints t
	   SET body_digest = CASE WHEN t.body_digest IS NULL THEN NULL ELSE ` + postgres.BodyDigestSQL(`t`) + ` END,
	       state_digest = CASE WHEN t.state_digest IS NULL THEN NULL ELSE sha256(t.state) END
	 WHERE t.tenant_id = $1 AND t.session_key = $2 AND t.n = ANY ($3::bigint[])`

// modelAnswers are unique in their tenant: while a session was archived, another may have had the same answer.
const modelAnswers = "model_answers"

// chunksOfSession are the chunks of all bodies of a session, those included that another session holds for it.
const chunksOfSession = `(
	       SELECT c.*, h.store, coalesce(h.objects_in, h.session_key) AS prefix
	         FROM result_bodies b
	         JOIN result_bodies h
	           ON h.tenant_id = b.tenant_id AND h.session_key = coalesce(b.held_in, b.session_key) AND h.id = b.id
	         JOIN result_chunks c
	           ON c.tenant_id = h.tenant_id AND c.session_key = h.session_key AND c.body_id = h.id
	        WHERE b.tenant_id = $1 AND b.session_key = $2)`

// madeAnew are the tables whose rows of a session are deleted when it is archived, and made anew when it is restored.
var madeAnew = []string{"due_sessions", "session_failures", "search_blocks", "search_sessions"}

// StayWithSession are the tables whose rows of an archived session stay, as its own row does: they have nothing of what
// was said in it, or they are others'.
var StayWithSession = []string{
	"archive_parts", "session_archives", "session_holds", "session_metadata", "session_retention", "session_tokens",
	"policy_versions", "idempotency", "usage_sessions", "findings", "erasure_sessions", "import_lines",
	"recompaction_sessions", "replay_sessions", "replay_outcomes",
}

// Tables returns the tables whose rows of a session an archive has, and those that are made anew.
func Tables() (archived, anew []string) {
	for i := range archivedTables {
		archived = append(archived, archivedTables[i].name)
	}
	return archived, slices.Clone(madeAnew)
}

func archivedTableOf(name string) *archivedTable {
	for i := range archivedTables {
		if archivedTables[i].name == name {
			return &archivedTables[i]
		}
	}
	return nil
}

// columnType is a column of a table with its type.
type columnType struct{ Name, Type string }

// columns returns the columns of a table that are archived, in their order.
func (t *archivedTable) columns(ctx context.Context, tx pgx.Tx) ([]columnType, error) {
	return postgres.RowsIn(ctx, tx, pgx.RowToStructByPos[columnType], `
		SELECT attname::text, format_type(atttypid, atttypmod)
		  FROM pg_attribute
		 WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
		   AND attname <> ALL ($2)
		 ORDER BY attnum`, t.name, append([]string{"tenant_id", "session_key"}, t.skip...))
}

// chunks reports whether the rows are those of chunks, which go where new bodies go when they are restored.
func (t *archivedTable) chunks() bool { return t.from != "" }

// mayBeOutside reports whether the column body of a row may lie outside.
func (t *archivedTable) mayBeOutside() bool { return t.bytes != "" }

// The bounds of a page of rows: their number, and the bytes of their large columns but those of the last row.
const (
	archivedRows  = 500
	archivedBytes = 4 << 20
)

// pageSQL returns the statement that reads the next rows of a session, with where their bytes are if these may lie
// outside, and which columns it reads. after is the key of the last row that was read, nil for none; its values are the
// arguments from $3 on.
func (t *archivedTable) pageSQL(columns []columnType, after []string) (string, frozen.Table) {
	read := frozen.Table{Name: t.name}
	var values []string
	types := map[string]string{}
	for _, c := range columns {
		types[c.Name] = c.Type
		if t.mayBeOutside() && c.Name == "body" {
			continue
		}
		read.Columns = append(read.Columns, c.Name)
		values = append(values, `t.`+quoted(c.Name)+`::text`)
	}
	var keys, texts, args []string
	for i, name := range t.key {
		keys = append(keys, `t.`+quoted(name))
		texts = append(texts, `t.`+quoted(name)+`::text`)
		args = append(args, `$`+strconv.Itoa(i+3)+`::text::`+types[name])
	}
	order := strings.Join(keys, `, `)
	behind, more := ``, ``
	if after != nil {
		behind = ` AND (` + order + `) > (` + strings.Join(args, `, `) + `)`
	}
	if t.mayBeOutside() {
		read.Columns = append(read.Columns, "body")
		more = `, ` + t.bytes
	}
	whole := cmp.Or(t.whole, `true`)
	return `
		SELECT json_build_array(` + strings.Join(values, `, `) + `), ARRAY[` + strings.Join(texts, `, `) + `], ` +
		whole + ` IS TRUE` + more + `
		  FROM (SELECT t.*, coalesce(sum(` + t.sizeSQL() + `) OVER (
		                       ORDER BY ` + order + ` ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS "read"
		          FROM (SELECT t.*
		                  FROM ` + t.source() + `
		                 WHERE t.tenant_id = $1` + t.ofSession() + behind + `
		                 ORDER BY ` + order + `
		                 LIMIT ` + strconv.Itoa(archivedRows) + `) t) t
		 WHERE t."read" < ` + strconv.Itoa(archivedBytes) + `
		 ORDER BY ` + order, read
}

func (t *archivedTable) source() string {
	if t.chunks() {
		return t.from + ` t`
	}
	return t.name + ` t`
}

func (t *archivedTable) ofSession() string {
	if t.chunks() {
		return ``
	}
	return ` AND t.session_key = $2`
}

// sizeSQL returns the bytes of a row's large columns.
func (t *archivedTable) sizeSQL() string {
	size := `0`
	for _, name := range t.large {
		size += ` + coalesce(octet_length(t.` + quoted(name) + `), 0)`
	}
	if t.mayBeOutside() {
		size += ` + coalesce(t.object_size, 0)`
	}
	return size
}

func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }

// insertSQL returns the statement that restores rows, whose columns are the arguments from $3 on. constants are SQL
// expressions for other columns.
func (t *archivedTable) insertSQL(columns []columnType, constants map[string]string) string {
	var names, values, arrays, args []string
	for i, c := range columns {
		names = append(names, quoted(c.Name))
		values = append(values, `r.c`+strconv.Itoa(i)+`::`+c.Type)
		arrays = append(arrays, `$`+strconv.Itoa(i+3)+`::text[]`)
		args = append(args, `c`+strconv.Itoa(i))
	}
	for name, value := range constants {
		names, values = append(names, name), append(values, value)
	}
	sql := `
		INSERT INTO ` + t.name + ` (tenant_id, session_key, ` + strings.Join(names, `, `) + `)
		SELECT $1, $2, ` + strings.Join(values, `, `) + `
		  FROM unnest(` + strings.Join(arrays, `, `) + `) AS r (` + strings.Join(args, `, `) + `)`
	if t.name == modelAnswers {
		sql += `
		ON CONFLICT (tenant_id, key) DO NOTHING`
	}
	return sql
}

// typesOf returns the columns that an archive has of a table with the types that they have now, and an error if one of
// them is none of the table's any more: who drops a column says here what becomes of it.
func (t *archivedTable) typesOf(ctx context.Context, tx pgx.Tx, names []string) ([]columnType, error) {
	have, err := t.columns(ctx, tx)
	if err != nil {
		return nil, err
	}
	var found []columnType
	for _, name := range names {
		i := slices.IndexFunc(have, func(c columnType) bool { return c.Name == name })
		if i < 0 && !slices.Contains(t.skip, name) {
			return nil, fmt.Errorf("%w: the table %s has no column %s", frozen.ErrFormat, t.name, name)
		}
		if i < 0 { // where a chunk lies
			found = append(found, columnType{name, map[string]string{
				"object": "uuid", "object_at": "bigint", "object_size": "integer",
			}[name]})
			continue
		}
		found = append(found, have[i])
	}
	return found, nil
}

// rowsSumSQL sums up the rows of a session in the archived tables: any change of one gives another sum.
var rowsSumSQL = func() string {
	var tables []string
	for i := range archivedTables {
		t := &archivedTables[i]
		tables = append(tables, `
		SELECT '`+t.name+`' AS name, count(*) AS n,
		       coalesce(sum(hashtextextended(t.ctid::text || ' ' || t.xmin::text, 0)), 0) AS sum
		  FROM `+t.name+` t
		 WHERE t.tenant_id = $1 AND t.session_key = $2`)
	}
	return `
		SELECT string_agg(name || ' ' || n || ' ' || sum, ', ' ORDER BY name)
		  FROM (` + strings.Join(tables, `
		 UNION ALL`) + `) t`
}()

// sumOfRows returns what tells whether a row of a session in the archived tables has changed.
func sumOfRows(ctx context.Context, tx pgx.Tx, key session.Key) (string, error) {
	return postgres.RowIn(ctx, tx, pgx.RowTo[string], rowsSumSQL, key.Tenant, key.Key)
}

// countRowsSQL counts the rows of a session that an archive has, model answers aside.
var countRowsSQL = func() string {
	var tables []string
	for i := range archivedTables {
		if t := &archivedTables[i]; t.name != modelAnswers {
			tables = append(tables, `'`+t.name+`', (SELECT count(*) FROM `+t.source()+
				` WHERE t.tenant_id = $1`+t.ofSession()+`)`)
		}
	}
	return `SELECT jsonb_build_object(` + strings.Join(tables, `, `) + `)`
}()

// asText has PostgreSQL write values as text in one way, whatever the database is set to.
const asText = `
	SELECT set_config('datestyle', 'ISO, YMD', true), set_config('intervalstyle', 'postgres', true),
	       set_config('timezone', 'UTC', true), set_config('bytea_output', 'hex', true),
	       set_config('extra_float_digits', '1', true)`
