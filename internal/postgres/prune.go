package postgres

import (
	"context"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/varve-dev/varve/internal/session"
)

// Retention is how long what a tenant's sessions do not need is kept.
type Retention struct {
	Runs  time.Duration // after their end; 0 for ever
	Audit time.Duration // of rows of the audit trail, at least 30 days; 0 for ever
}

// DefaultRetention is the retention of a store that no other was set for.
var DefaultRetention = Retention{Runs: 90 * 24 * time.Hour}

// RecompactionRetention is how long a recompaction is kept after its end.
const RecompactionRetention = 30 * 24 * time.Hour

// IdempotencyRetention is how long an Idempotency-Key is kept.
const IdempotencyRetention = 7 * 24 * time.Hour

const (
	replayRetention   = 30 * 24 * time.Hour // after its end
	importRetention   = 30 * 24 * time.Hour // after its last line
	answerRetention   = 7 * 24 * time.Hour  // of a model's answer that belongs to no session
	spendingRetention = 400 * 24 * time.Hour

	// keptPolicyVersions is how many versions of a layer of policies are kept: older ones go when a new one is
	// written.
	keptPolicyVersions = 1000
)

// The bounds of one call of Prune: transactions, and what each deletes of a table. A recompaction, replay or import
// has its parts, which are deleted before it.
const (
	PruneBatch = 1000 // rows

	pruneRounds = 10
	pruneWholes = 100
)

// KeepFor sets how long the store keeps what is pruned.
func (s *Store) KeepFor(r Retention) { s.retention = r }

// Prune deletes a tenant's Idempotency-Keys, runs, recompactions, replays and imports whose time is over, but not the
// sessions that the imports wrote; its old events; of models the
// answers that belong to no session, and what was spent; and the oldest rows of its audit trail. It deletes a bounded
// number in a transaction, in a bounded number of them: what is left goes next time. What it looks for is at the
// beginning of an index. What a feature prunes comes first: before the events that it is about.
func (s *Store) Prune(ctx context.Context, tenant uuid.UUID, first ...Pruning) error {
	for range pruneRounds {
		more, err := InTx(ctx, s, tenant, func(tx pgx.Tx) (bool, error) {
			return s.prune(ctx, tx, tenant, first)
		})
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}
	return s.pruneTrail(ctx, tenant)
}

// prune deletes the next rows of each table, and reports whether there may be more.
func (s *Store) prune(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, first []Pruning) (more bool, err error) {
	batch := &pgx.Batch{}
	queue := func(p Pruning, args ...any) {
		batch.Queue(p.SQL, append([]any{tenant}, args...)...).Exec(func(deleted pgconn.CommandTag) error {
			more = more || deleted.RowsAffected() == p.Limit
			return nil
		})
	}
	// A foreign key looks for what still names a row that is deleted. Where one recompaction has nearly all rows of
	// its table, it would read the whole table for each row of another. The indexes are in the order that is asked for:
	// where statistics are old, a sort of all rows would seem as cheap.
	batch.Queue(`SELECT set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'off', true)`)
	queue(pruneIdempotency, IdempotencyRetention)
	if kept := s.retention.Runs; kept > 0 {
		queue(pruneRuns, kept, FirstIDOf(time.Now().Add(-kept)))
	}
	for _, p := range pruneRecompactions {
		queue(p, RecompactionRetention)
	}
	for _, p := range pruneReplays {
		queue(p, replayRetention)
	}
	for _, p := range pruneImports {
		queue(p, importRetention)
	}
	for _, p := range first {
		queue(p, p.Kept)
	}
	queue(pruneEvents, session.EventRetention)
	queue(pruneAnswers, answerRetention)
	queue(pruneSpending, spendingRetention)
	err = tx.SendBatch(ctx, batch).Close()
	return more, err
}

// FirstIDOf returns the smallest id that a row can have which was made at a time or later: ids begin with the time.
func FirstIDOf(at time.Time) (id uuid.UUID) {
	for i, ms := 5, at.UnixMilli(); i >= 0; i-- {
		id[i] = byte(ms)
		ms >>= 8
	}
	return id
}

// Pruning is a statement that deletes the next rows of a table, and how many at most. $1 is the tenant, and $2 how long
// they are kept.
type Pruning struct {
	SQL   string
	Limit int64
	Kept  time.Duration // of one of a feature
}

func pruneRows(table, expired string, limit int64) Pruning {
	return Pruning{Limit: limit, SQL: `
	DELETE FROM ` + table + `
	 WHERE tenant_id = $1 AND ctid = ANY (ARRAY(` + expired + `
	        LIMIT ` + strconv.FormatInt(limit, 10) + `))`}
}

var pruneIdempotency = pruneRows("idempotency", `
	       SELECT ctid
	         FROM idempotency
	        WHERE tenant_id = $1 AND created_at < now() - $2::interval
	        ORDER BY created_at`, PruneBatch)

// Runs by their ids, which begin with the time when they were asked for.
var pruneRuns = pruneRows("runs", `
	       SELECT ctid
	         FROM runs
	        WHERE tenant_id = $1 AND id < $3 AND finished_at < now() - $2::interval
	        ORDER BY id`, PruneBatch)

var pruneAnswers = pruneRows("model_answers", `
	       SELECT ctid
	         FROM model_answers
	        WHERE tenant_id = $1 AND session_key IS NULL AND created_at < now() - $2::interval
	        ORDER BY created_at`, PruneBatch)

var pruneSpending = pruneRows("model_spending", `
	       SELECT ctid
	         FROM model_spending
	        WHERE tenant_id = $1 AND day < (now() - $2::interval)::date
	        ORDER BY day`, PruneBatch)

var (
	pruneRecompactions = pruneWholesOf("recompactions", "finished_at",
		part{"recompaction_sessions", "recompaction_id"}, answersOfWhole)
	pruneReplays = pruneWholesOf("replays", "finished_at",
		part{"replay_outcomes", "replay_id"}, part{"replay_sessions", "replay_id"}, answersOfWhole)
	pruneImports = pruneWholesOf("imports", "updated_at", part{"import_lines", "import_id"})
)

// part is a table whose rows name a whole by its id, in a column.
type part struct{ table, id string }

// answersOfWhole are the answers that were kept of requests for a whole. An erasure finds those that name a session by
// the whole.
var answersOfWhole = part{"idempotency", "session_key"}

// pruneWholesOf returns the statements that delete the rows of a table which have not changed since their time ended,
// and before them the rows of other tables that name them. What was changed long ago was created long ago: the index
// on the time of creation finds it. The parts of each are looked for in order, and not joined: a join would read all
// parts that there are.
func pruneWholesOf(table, changed string, parts ...part) (list []Pruning) {
	oldest := `
	         FROM (SELECT r.ctid, r.id
	                 FROM ` + table + ` r
	                WHERE r.tenant_id = $1 AND r.created_at < now() - $2::interval
	                  AND r.` + changed + ` < now() - $2::interval
	                ORDER BY r.created_at, r.id
	                LIMIT ` + strconv.Itoa(pruneWholes) + `) r`
	whole := `true`
	for _, p := range parts {
		of := `
	                FROM ` + p.table + ` l
	               WHERE l.tenant_id = $1 AND l.` + p.id + ` >= r.id AND l.` + p.id + ` <= r.id
	               ORDER BY l.` + p.id
		list = append(list, pruneRows(p.table, `
	       SELECT p.ctid`+oldest+`
	        CROSS JOIN LATERAL (
	              SELECT l.ctid`+of+`
	              OFFSET 0) p`, PruneBatch))
		whole += `
	          AND (SELECT count(*)
	                 FROM (SELECT` + of + `
	                        LIMIT 1) l) = 0`
	}
	return append(list, pruneRows(table, `
	       SELECT r.ctid`+oldest+`
	        WHERE `+whole, pruneWholes))
}
