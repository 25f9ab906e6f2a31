package postgres

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/session"
)

// firstRejections is the number of an import's rejected lines that are read with it.
const firstRejections = 10

const importColumns = `
	i.id, i.state, i.wanted, i.source, i.session, i.attempt, i.done, i.total, i.bytes, i.digest,
	i.sessions, i.messages, i.duplicates, i.rejected, i.report, i.error, i.created_at, i.updated_at, i.finished_at`

// importsSQL reads a tenant's imports.
const importsSQL = `
	SELECT ` + importColumns + `
	  FROM imports i
	 WHERE i.tenant_id = $1`

var scanImport = pgx.RowToStructByNameLax[session.Import]

// BeginImport creates an import of a source into the session id, either of which may be "", or resumes the import that
// has this Idempotency-Key; "" is no key.
//
// Errors: ErrIdempotencyReused if the import of this key has another source or session.
func (s *Store) BeginImport(ctx context.Context, tenant uuid.UUID, key, wanted, id string) (session.Import, error) {
	return InTx(ctx, s, tenant, func(tx pgx.Tx) (session.Import, error) {
		created := uuid.Must(uuid.NewV7())
		err := Exec(ctx, tx, `
			INSERT INTO imports (tenant_id, id, key, wanted, session)
			VALUES ($1, $2, nullif($3, ''), $4, $5)
			ON CONFLICT (tenant_id, key) WHERE key IS NOT NULL DO NOTHING`, tenant, created, key, wanted, id)
		if err != nil {
			return session.Import{}, err
		}
		found, err := attemptImport(ctx, tx, tenant, created, key)
		if err == nil && (found.Wanted != wanted || found.Session != id) {
			err = fmt.Errorf("Idempotency-Key %q: %w", key, session.ErrIdempotencyReused)
		}
		if err != nil {
			return found, err
		}
		return found, recordAttempt(ctx, tx, tenant, found)
	})
}

// ResumeImport starts the next attempt of an import. The request of an earlier attempt gets ErrImportTaken from then
// on. ErrNotFound.
func (s *Store) ResumeImport(ctx context.Context, tenant, id uuid.UUID) (session.Import, error) {
	return InTx(ctx, s, tenant, func(tx pgx.Tx) (session.Import, error) {
		found, err := attemptImport(ctx, tx, tenant, id, "")
		if err != nil {
			return found, err
		}
		return found, recordAttempt(ctx, tx, tenant, found)
	})
}

// recordAttempt records that an import begins or continues, unless it has ended.
func recordAttempt(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, i session.Import) error {
	if i.State.Ended() {
		return nil
	}
	action := audit.ImportResume
	if i.Attempt == 1 {
		action = audit.ImportStart
	}
	return record(ctx, tx, tenant, auditEntry{
		action: action, object: audit.Import, id: i.ID.String(),
		detail: about{"from": i.Wanted, "session": i.Session, "attempt": i.Attempt},
	})
}

// attemptImport starts the next attempt of the import that has this id or this key. It does not change one that has
// ended.
func attemptImport(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID, key string) (session.Import, error) {
	return RowIn(ctx, tx, scanImport, `
		UPDATE imports i
		   SET attempt = CASE WHEN finished_at IS NULL THEN attempt + 1 ELSE attempt END,
		       state = CASE WHEN finished_at IS NULL THEN 'running' ELSE state END,
		       error = CASE WHEN finished_at IS NULL THEN NULL ELSE error END,
		       updated_at = now()
		 WHERE i.tenant_id = $1
		   AND i.id = coalesce((SELECT k.id FROM imports k WHERE k.tenant_id = $1 AND k.key = nullif($3, '')), $2)
		RETURNING `+importColumns, tenant, id, key)
}

// EndAttempt ends an attempt: with ImportQueued before the import's last line, otherwise together with the import,
// which takes no more lines then. reason is the error that ended it, "" if there was none. ErrImportTaken.
func (s *Store) EndAttempt(
	ctx context.Context, tenant uuid.UUID, i session.Import, state session.ImportState, reason string,
) (session.Import, error) {
	return InTx(ctx, s, tenant, func(tx pgx.Tx) (session.Import, error) {
		err := ExecOne(ctx, tx, session.ErrImportTaken, `
			UPDATE imports
			   SET state = $4,
			       error = nullif($5, ''),
			       total = CASE WHEN $4 = 'succeeded' THEN done ELSE total END,
			       finished_at = CASE WHEN $4 <> 'queued' THEN now() END,
			       updated_at = now()
			 WHERE tenant_id = $1 AND id = $2 AND attempt = $3 AND finished_at IS NULL`,
			tenant, i.ID, i.Attempt, state, Text(reason))
		if err != nil {
			return session.Import{}, err
		}
		return readImport(ctx, tx, tenant, i.ID)
	})
}

// Import reads an import with its first rejected lines; ErrNotFound.
func (s *Store) Import(ctx context.Context, tenant, id uuid.UUID) (session.Import, error) {
	return ReadTx(ctx, s, tenant, func(tx pgx.Tx) (session.Import, error) {
		return readImport(ctx, tx, tenant, id)
	})
}

func readImport(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID) (session.Import, error) {
	found, err := RowIn(ctx, tx, scanImport, importsSQL+` AND i.id = $2`, tenant, id)
	if err != nil || found.Rejected == 0 {
		return found, err
	}
	first := session.ImportedRange{From: 1, Outcome: session.LineRejected, Limit: firstRejections}
	found.Rejections, err = readImportLines(ctx, tx, tenant, id, first)
	return found, err
}

// Imports lists a tenant's imports, newest first, without their lines.
func (s *Store) Imports(ctx context.Context, tenant uuid.UUID, page session.Page) ([]session.Import, error) {
	sql := importsSQL + NewestFirst(`i.created_at`, `i.id`)
	return QueryRows(ctx, s, tenant, scanImport, sql, PageArgs(tenant, page)...)
}

// ImportLines reads the outcomes of an import's lines; ErrNotFound.
func (s *Store) ImportLines(
	ctx context.Context, tenant, id uuid.UUID, r session.ImportedRange,
) ([]session.ImportedLine, error) {
	return ReadTx(ctx, s, tenant, func(tx pgx.Tx) ([]session.ImportedLine, error) {
		found, err := readImportLines(ctx, tx, tenant, id, r)
		if err == nil && len(found) == 0 {
			_, err = readImport(ctx, tx, tenant, id)
		}
		return found, err
	})
}

// The statements that read all lines of an import, and those with one outcome.
var (
	importLinesSQL = statement("import_lines",
		"{key}", `l.n`, "{newest}", `l.n DESC`, "{outcome}", ``, "{last}", ``, "{first}", ``)
	importOutcomeSQL = statement("import_lines",
		"{key}", `l.outcome, l.n`, "{newest}", `l.outcome DESC, l.n DESC`, "{outcome}", `@outcome, `,
		"{last}", ` AND l.outcome <= @outcome`, "{first}", ` AND l.outcome >= @outcome`)
)

func readImportLines(
	ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID, r session.ImportedRange,
) ([]session.ImportedLine, error) {
	sql := importLinesSQL
	if r.Outcome != "" {
		sql = importOutcomeSQL
	}
	return RowsIn(ctx, tx, pgx.RowToStructByPos[session.ImportedLine], sql, pgx.NamedArgs{
		"tenant": tenant, "import": id, "from": r.From, "outcome": string(r.Outcome), "limit": r.Limit,
	})
}
