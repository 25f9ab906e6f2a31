package imports

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// store has the SQL of imports.
type store struct{ *postgres.Store }

// firstRejections is the number of an import's rejected lines that are read with it.
const firstRejections = 10

const columns = `
	i.id, i.state, i.wanted, i.source, i.session AS named, i.attempt, i.done, i.total, i.bytes, i.digest,
	i.sessions, i.messages, i.duplicates, i.rejected, i.report, i.error, i.created_at, i.updated_at, i.finished_at`

// importsSQL reads a tenant's imports.
const importsSQL = `
	SELECT ` + columns + `
	  FROM imports i
	 WHERE i.tenant_id = $1`

var scanStored = pgx.RowToStructByNameLax[stored]

// begin creates an import of a source into the session id, either of which may be "", or resumes the import that
// has this Idempotency-Key; "" is no key.
//
// Errors: ErrIdempotencyReused if the import of this key has another source or session.
func (s store) begin(ctx context.Context, tenant uuid.UUID, key, wanted, id string) (stored, error) {
	return postgres.InTx(ctx, s.Store, tenant, func(tx pgx.Tx) (stored, error) {
		created := uuid.Must(uuid.NewV7())
		err := postgres.Exec(ctx, tx, `
			INSERT INTO imports (tenant_id, id, key, wanted, session)
			VALUES ($1, $2, nullif($3, ''), $4, $5)
			ON CONFLICT (tenant_id, key) WHERE key IS NOT NULL DO NOTHING`, tenant, created, key, wanted, id)
		if err != nil {
			return stored{}, err
		}
		found, err := attemptImport(ctx, tx, tenant, created, key)
		if err == nil && (found.Wanted != wanted || found.Named != id) {
			err = fmt.Errorf("Idempotency-Key %q: %w", key, session.ErrIdempotencyReused)
		}
		if err != nil {
			return found, err
		}
		return found, recordAttempt(ctx, tx, tenant, found)
	})
}

// resume starts the next attempt of an import. The request of an earlier attempt gets errTaken from then
// on. ErrNotFound.
func (s store) resume(ctx context.Context, tenant, id uuid.UUID) (stored, error) {
	return postgres.InTx(ctx, s.Store, tenant, func(tx pgx.Tx) (stored, error) {
		found, err := attemptImport(ctx, tx, tenant, id, "")
		if err != nil {
			return found, err
		}
		return found, recordAttempt(ctx, tx, tenant, found)
	})
}

// recordAttempt records that an import begins or continues, unless it has ended.
func recordAttempt(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, i stored) error {
	if i.State.Ended() {
		return nil
	}
	action := audit.ImportResume
	if i.Attempt == 1 {
		action = audit.ImportStart
	}
	return postgres.Record(ctx, tx, tenant, action, audit.Import, i.ID.String(),
		map[string]any{"from": i.Wanted, "session": i.Named, "attempt": i.Attempt})
}

// attemptImport starts the next attempt of the import that has this id or this key. It does not change one that has
// ended.
func attemptImport(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID, key string) (stored, error) {
	return postgres.RowIn(ctx, tx, scanStored, `
		UPDATE imports i
		   SET attempt = CASE WHEN finished_at IS NULL THEN attempt + 1 ELSE attempt END,
		       state = CASE WHEN finished_at IS NULL THEN 'running' ELSE state END,
		       error = CASE WHEN finished_at IS NULL THEN NULL ELSE error END,
		       updated_at = now()
		 WHERE i.tenant_id = $1
		   AND i.id = coalesce((SELECT k.id FROM imports k WHERE k.tenant_id = $1 AND k.key = nullif($3, '')), $2)
		RETURNING `+columns, tenant, id, key)
}

// endAttempt ends an attempt: with ImportQueued before the import's last line, otherwise together with the import,
// which takes no more lines then. reason is the error that ended it, "" if there was none. errTaken.
func (s store) endAttempt(
	ctx context.Context, tenant uuid.UUID, i stored, state protocol.ImportState, reason string,
) (stored, error) {
	return postgres.InTx(ctx, s.Store, tenant, func(tx pgx.Tx) (stored, error) {
		err := postgres.ExecOne(ctx, tx, errTaken, `
			UPDATE imports
			   SET state = $4,
			       error = nullif($5, ''),
			       total = CASE WHEN $4 = 'succeeded' THEN done ELSE total END,
			       finished_at = CASE WHEN $4 <> 'queued' THEN now() END,
			       updated_at = now()
			 WHERE tenant_id = $1 AND id = $2 AND attempt = $3 AND finished_at IS NULL`,
			tenant, i.ID, i.Attempt, state, postgres.Text(reason))
		if err != nil {
			return stored{}, err
		}
		return readOne(ctx, tx, tenant, i.ID)
	})
}

// read reads an import with its first rejected lines; ErrNotFound.
func (s store) read(ctx context.Context, tenant, id uuid.UUID) (stored, error) {
	return postgres.ReadTx(ctx, s.Store, tenant, func(tx pgx.Tx) (stored, error) {
		return readOne(ctx, tx, tenant, id)
	})
}

func readOne(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID) (stored, error) {
	found, err := postgres.RowIn(ctx, tx, scanStored, importsSQL+` AND i.id = $2`, tenant, id)
	if err != nil || found.Rejected == 0 {
		return found, err
	}
	first := selected{From: 1, Outcome: protocol.LineRejected, Limit: firstRejections}
	found.Rejections, err = readLines(ctx, tx, tenant, id, first)
	return found, err
}

// list lists a tenant's imports, newest first, without their lines.
func (s store) list(ctx context.Context, tenant uuid.UUID, page session.Page) ([]stored, error) {
	sql := importsSQL + postgres.NewestFirst(`i.created_at`, `i.id`)
	return postgres.QueryRows(ctx, s.Store, tenant, scanStored, sql, postgres.PageArgs(tenant, page)...)
}

// lines reads the outcomes of an import's lines; ErrNotFound.
func (s store) lines(ctx context.Context, tenant, id uuid.UUID, r selected) ([]protocol.ImportedLine, error) {
	return postgres.ReadTx(ctx, s.Store, tenant, func(tx pgx.Tx) ([]protocol.ImportedLine, error) {
		found, err := readLines(ctx, tx, tenant, id, r)
		if err == nil && len(found) == 0 {
			_, err = readOne(ctx, tx, tenant, id)
		}
		return found, err
	})
}

//go:embed lines.sql
var selectLines string

// The statements that read all lines of an import, and those with one outcome.
var (
	linesSQL = strings.NewReplacer(
		"{key}", `l.n`, "{newest}", `l.n DESC`, "{outcome}", ``, "{last}", ``, "{first}", ``).Replace(selectLines)
	outcomeSQL = strings.NewReplacer(
		"{key}", `l.outcome, l.n`, "{newest}", `l.outcome DESC, l.n DESC`, "{outcome}", `@outcome, `,
		"{last}", ` AND l.outcome <= @outcome`, "{first}", ` AND l.outcome >= @outcome`).Replace(selectLines)
)

func readLines(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID, r selected) ([]protocol.ImportedLine, error) {
	sql, args := linesOf(tenant, id, r)
	return postgres.RowsIn(ctx, tx, pgx.RowToStructByPos[protocol.ImportedLine], sql, args)
}

// linesOf returns the statement that reads lines of an import, and its arguments.
func linesOf(tenant, id uuid.UUID, r selected) (sql string, args pgx.NamedArgs) {
	sql = linesSQL
	if r.Outcome != "" {
		sql = outcomeSQL
	}
	return sql, pgx.NamedArgs{
		"tenant": tenant, "import": id, "from": r.From, "outcome": string(r.Outcome), "limit": r.Limit,
	}
}
