// Package persist keeps full tool results, so that a view can name them instead of holding them. It owns the tables
// results, result_bodies and result_chunks; every function that takes a transaction runs in one of its caller's.
//
// A body is what a result says. It belongs to a session, which has equal bodies once: a body that is complete is found
// by its SHA-256. It lies in chunks of at most 128 KiB, cut after lines where that is possible, each compressed for
// itself with a digest of its own (chunk.go), so that a part of a body is read without the rest (content.go).
//
// A body is written whole by Put, which must be called before a checkpoint that names the results is committed, or as
// it arrives by a Writer (writer.go): what was stored is kept, and another process can go on after it.
//
// Start at Put and Content.
package persist

import (
	"context"
	"iter"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// Result is what is known of a persisted result without its body.
type Result struct {
	Ref       string
	Seq       int64
	Part      int
	Tool      string // as PostgreSQL's text can hold it
	CallID    string // as PostgreSQL's text can hold it
	Category  string
	MediaType string
	Bytes     int64
	Lines     int64
	Tokens    int64
	SHA256    []byte // of the body
	InLog     bool   // it has no body of its own: its message has the bytes
	CreatedAt time.Time
}

// NewResult is a result to persist. The Body of one that is InLog is only measured.
type NewResult struct {
	Result
	Body []byte
}

// Batches splits results into runs that one transaction each should carry.
func Batches(results []NewResult) iter.Seq[[]NewResult] {
	return func(yield func([]NewResult) bool) {
		for len(results) > 0 {
			n, size := 0, 0
			for n < len(results) && (n == 0 || size+len(results[n].Body) <= batchBytes) {
				size += len(results[n].Body)
				n++
			}
			if !yield(results[:n]) {
				return
			}
			results = results[n:]
		}
	}
}

// batchBytes bounds what one transaction carries.
const batchBytes = 8 << 20

// ResultColumns are the columns of a Result in a statement in which results is r.
const ResultColumns = `
	r.ref, r.seq, r.part, r.tool_name AS tool, r.call_id, r.category, r.media_type, r.bytes, r.lines, r.tokens,
	r.sha256, r.body_id IS NULL AS in_log, r.created_at`

// Dest returns where the ResultColumns are scanned to.
func (r *Result) Dest() []any {
	return []any{&r.Ref, &r.Seq, &r.Part, &r.Tool, &r.CallID, &r.Category, &r.MediaType, &r.Bytes, &r.Lines, &r.Tokens,
		&r.SHA256, &r.InLog, &r.CreatedAt}
}

// Place is a place in a session's list of results: what comes after part Part of message Seq.
type Place struct {
	Seq  int64
	Part int
}

// Filter says which results are wanted. A zero field lets all through.
type Filter struct {
	Tool     string
	Category string
	FromSeq  int64
	ToSeq    int64
}

// List reads those of a session's results that fit a filter, by seq and part: uploaded ones first.
func List(ctx context.Context, tx pgx.Tx, key session.Key, filter Filter, after Place, limit int) ([]Result, error) {
	sql, args := filter.conditions([]any{key.Tenant, key.Key, after.Seq, after.Part, limit})
	rows, err := tx.Query(ctx, `
		SELECT `+ResultColumns+`
		  FROM results r
		 WHERE r.tenant_id = $1
		   AND r.session_key = $2
		   AND (r.seq, r.part) > ($3, $4)`+sql+`
		 ORDER BY r.seq, r.part
		 LIMIT $5`, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[Result])
}

// conditions returns the SQL of a filter, and args with its own behind them. It has no conditions for what lets all
// through: with an OR around them, no index would be read from where they begin.
func (f Filter) conditions(args []any) (sql string, _ []any) {
	add := func(condition string, value any) {
		args = append(args, value)
		sql += `
		   AND ` + condition + ` $` + strconv.Itoa(len(args))
	}
	if f.Tool != "" {
		add(`r.tool_name =`, f.Tool)
	}
	if f.Category != "" {
		add(`r.category =`, f.Category)
	}
	if f.FromSeq > 0 {
		add(`r.seq >=`, f.FromSeq)
	}
	if f.ToSeq > 0 {
		add(`r.seq <=`, f.ToSeq)
	}
	return sql, args
}

// Nearest returns the refs of the results nearest to message seq.
func Nearest(ctx context.Context, tx pgx.Tx, key session.Key, seq int64, limit int) ([]string, error) {
	rows, err := tx.Query(ctx, `
		SELECT ref
		  FROM (( SELECT ref, seq, part
		            FROM results
		           WHERE tenant_id = $1 AND session_key = $2 AND seq >= $3
		           ORDER BY seq, part
		           LIMIT $4)
		        UNION ALL
		        (SELECT ref, seq, part
		           FROM results
		          WHERE tenant_id = $1 AND session_key = $2 AND seq < $3
		          ORDER BY seq DESC, part DESC
		          LIMIT $4)) near
		 ORDER BY abs(seq - $3), part
		 LIMIT $4`, key.Tenant, key.Key, seq, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
