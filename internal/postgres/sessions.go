package postgres

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/due"
	"github.com/varve-dev/varve/internal/session"
)

// Create creates a session, or reads the one that has this id, which change does not change. Any number of callers may
// do so at once: one of them creates it.
//
// Errors: ErrIdempotencyReused.
func (s *Store) Create(
	ctx context.Context, at session.Address, change session.Change, id *session.Idempotency,
) (session.Created, bool, error) {
	return Once(ctx, s, at.Tenant, id, func(tx pgx.Tx) (session.Created, uuid.UUID, error) {
		found, err := readSession(ctx, tx, at)
		if err == nil || !errors.Is(err, session.ErrNotFound) {
			return session.Created{Session: found}, found.Key, err
		}
		made, err := createSession(ctx, tx, at, change)
		return made, made.Session.Key, err
	})
}

// createSession makes a session, or reads the one that another request has made meanwhile.
func createSession(
	ctx context.Context, tx pgx.Tx, at session.Address, change session.Change,
) (made session.Created, err error) {
	if made.Created, err = InsertSession(ctx, tx, at, change); err != nil {
		return made, err
	}
	if made.Session, err = readSession(ctx, tx, at); err != nil || !made.Created {
		return made, err
	}
	return made, recordCreated(ctx, tx, at, change, made.Session)
}

// recordCreated records a new session, with its own policy if it has one.
func recordCreated(
	ctx context.Context, tx pgx.Tx, at session.Address, change session.Change, made session.Session,
) error {
	d := auditEntry{action: audit.SessionCreate, object: audit.Session, id: at.ID}
	if change.ChangesPolicy() {
		own, err := ownPatch(ctx, tx, session.Key{Tenant: at.Tenant, Key: made.Key})
		if err != nil {
			return err
		}
		d.after = own
	}
	return record(ctx, tx, at.Tenant, d)
}

// ownPatch reads the own layer of a session's policy, nil if it has none.
func ownPatch(ctx context.Context, tx pgx.Tx, key session.Key) (json.RawMessage, error) {
	return RowIn(ctx, tx, pgx.RowTo[json.RawMessage], `
		SELECT CASE WHEN p.session_version > 0 THEN p.patch END
		  FROM sessions s
		  JOIN policies p ON p.tenant_id = $1 AND p.id = s.policy_id
		 WHERE s.tenant_id = $1 AND s.key = $2`, key.Tenant, key.Key)
}

// InsertSession makes a session, unless there is one of this id. Errors: ErrArchived; those of its settings.
func InsertSession(
	ctx context.Context, tx pgx.Tx, at session.Address, change session.Change,
) (created bool, err error) {
	key := session.Key{Tenant: at.Tenant, Key: uuid.Must(uuid.NewV7())}
	tag, err := tx.Exec(ctx, `
		INSERT INTO sessions (tenant_id, key, id, format, model, window_tokens, overhead_tokens, metadata, policy_id,
		                      window_source)
		VALUES ($1, $2, $3, $4, coalesce($5::text, ''), coalesce($6::int, $7::int), coalesce($8::int, 0),
		        coalesce($9::jsonb, '{}'), $10, $11)
		ON CONFLICT (tenant_id, id) DO NOTHING`,
		at.Tenant, key.Key, at.ID, formatNumber(change.Format), change.Model, change.WindowTokens,
		session.DefaultWindowTokens, change.OverheadTokens, change.Metadata, uuid.Nil,
		windowSource(change, session.WindowOfDefault))
	if err != nil {
		return false, err
	}
	if tag.RowsAffected() == 0 {
		return false, refuseArchived(ctx, tx, at)
	}
	if err := changePolicy(ctx, tx, key, uuid.Nil, change); err != nil {
		return true, err
	}
	return true, setOwnRetention(ctx, tx, key, change)
}

// refuseArchived returns ErrArchived if the session of an id that is taken is archived.
func refuseArchived(ctx context.Context, tx pgx.Tx, at session.Address) error {
	if err := Exec(ctx, tx, seeMore, AllSessions); err != nil {
		return err
	}
	archived, err := RowIn(ctx, tx, pgx.RowTo[bool], `
		SELECT archived
		  FROM sessions
		 WHERE tenant_id = $1 AND id = $2`, at.Tenant, at.ID)
	switch {
	case err == nil && archived:
		return session.ErrArchived
	case err != nil && !errors.Is(err, session.ErrNotFound):
		return err
	}
	return Exec(ctx, tx, seeMore, Served)
}

// windowSource returns the source of a session's window after a change; fallback is the source before it.
func windowSource(change session.Change, fallback session.WindowSource) session.WindowSource {
	switch {
	case change.WindowTokens == nil:
		return fallback
	case change.WindowSource == "":
		return session.WindowOfRequest
	}
	return change.WindowSource
}

func formatNumber(f *session.Format) int16 {
	if f == nil {
		return 0
	}
	return f.Number()
}

const sessionColumns = `
	s.id, s.key, s.format, s.model, s.window_tokens, s.window_source, s.overhead_tokens, s.metadata, s.last_seq,
	s.context_tokens, s.total_tokens, s.checkpoint_n, s.created_at, s.last_append_at, p.trigger_ratio, p.hard_ratio,
	p.cache_ttl, p.document, p.tenant_version, p.session_version, s.calibration, s.unseen_tokens, s.last_usage,
	CASE WHEN s.forked_from IS NOT NULL
	     THEN jsonb_build_object('session', s.forked_from, 'seq', s.forked_seq, 'checkpoint', s.forked_checkpoint)
	END, ` + layersSQL

func scanSession(row pgx.CollectableRow) (session.Session, error) { return scanSessionAnd(row) }

// scanListed scans a session with its place in a list behind its columns.
func scanListed(row pgx.CollectableRow) (l session.Listed, err error) {
	l.Session, err = scanSessionAnd(row, &l.At)
	return l, err
}

// scanSessionAnd scans a session, and more columns behind its own.
func scanSessionAnd(row pgx.CollectableRow, more ...any) (session.Session, error) {
	var s session.Session
	var outdated *layers
	err := row.Scan(append([]any{&s.ID, &s.Key, &s.Format, &s.Model, &s.WindowTokens, &s.WindowSource,
		&s.OverheadTokens,
		&s.Metadata, &s.LastSeq, &s.ContextTokens, &s.TotalTokens, &s.Checkpoint, &s.CreatedAt, &s.LastAppendAt,
		&s.Policy.Trigger, &s.Policy.Hard, &s.Policy.CacheTTL, &s.Policy.Document, &s.Policy.Version.Tenant,
		&s.Policy.Version.Session, &s.Calibration, &s.UnseenTokens, &s.LastUsage, &s.Forked, &outdated,
		&s.Failing, &s.Expiry}, more...)...)
	if err != nil {
		return s, err
	}
	return s, outdated.merge(&s.Policy)
}

// sessionSQL reads a tenant's session with the id $2.
var sessionSQL = `
	SELECT ` + sessionColumns + `,
	       (SELECT jsonb_build_object('session', s.id, 'key', f.session_key, 'run', f.run_id, 'failures', f.failures,
	                                  'deaths', f.deaths, 'error', f.error, 'since', f.since, 'failed_at', f.failed_at,
	                                  'next_try_at', f.next_try_at, 'quarantined_at', f.quarantined_at)
	          FROM session_failures f
	         WHERE f.tenant_id = $1 AND f.session_key = s.key),
	       jsonb_build_object('own', (
	       SELECT jsonb_build_object('idle_seconds', coalesce(r.idle_seconds, r.archive_idle_seconds),
	                                 'max_age_seconds', coalesce(r.age_seconds, r.archive_age_seconds),
	                                 'then', CASE WHEN r.archives THEN 'archive' ELSE 'erase' END,
	                                 'archive_max_age_seconds', r.archive_kept_seconds)
	         FROM session_retention r
	        WHERE r.tenant_id = $1 AND r.session_key = s.key),
	       'expires_at', ` + ExpiresAt + `)
	  FROM sessions s
	  JOIN policies p ON p.tenant_id = s.tenant_id AND p.id = s.policy_id
	 WHERE s.tenant_id = $1 AND s.id = $2`

// sessionsSQL reads a page of a tenant's sessions, without what is of single ones only.
var sessionsSQL = `
	SELECT ` + sessionColumns + `, NULL::jsonb, NULL::jsonb
	  FROM (SELECT *
	          FROM sessions
	         WHERE tenant_id = $1` + NewestFirst(`created_at`, `key`) + `) s` + joinPolicy + `
	 ORDER BY s.created_at DESC, s.key DESC`

// joinPolicy joins the policies of a page of sessions s as p. It keeps the planner from every other order: a plan that
// begins with the policies, or reads all of them into a hash, costs what the tenant has and not what the page has.
const joinPolicy = `
	 CROSS JOIN LATERAL (
	       SELECT p.*
	         FROM policies p
	        WHERE p.tenant_id = $1 AND p.id = s.policy_id
	       OFFSET 0) p`

func readSession(ctx context.Context, tx pgx.Tx, at session.Address) (session.Session, error) {
	return RowIn(ctx, tx, scanSession, sessionSQL, at.Tenant, at.ID)
}

// Session reads a session; ErrNotFound.
func (s *Store) Session(ctx context.Context, at session.Address) (session.Session, error) {
	return QueryRow(ctx, s.Seeing(WithCold), at.Tenant, scanSession, sessionSQL, at.Tenant, at.ID)
}

// Basis reads the basis of a session, whose format is "" before its first message; ErrNotFound.
func (s *Store) Basis(ctx context.Context, at session.Address) (session.Basis, error) {
	return QueryRow(ctx, s.Seeing(WithCold), at.Tenant, pgx.RowToStructByPos[session.Basis], basisSQL, at.Tenant, at.ID)
}

const basisSQL = `
	SELECT format, model, window_tokens
	  FROM sessions
	 WHERE tenant_id = $1 AND id = $2`

// LastSeq reads the newest seq of a session; ErrNotFound.
func (s *Store) LastSeq(ctx context.Context, at session.Address) (int64, error) {
	return QueryRow(ctx, s, at.Tenant, pgx.RowTo[int64], `
		SELECT last_seq
		  FROM sessions
		 WHERE tenant_id = $1 AND id = $2`, at.Tenant, at.ID)
}

// Sessions lists a tenant's sessions, newest first.
func (s *Store) Sessions(ctx context.Context, tenant uuid.UUID, page session.Page) ([]session.Session, error) {
	return QueryRows(ctx, s.Seeing(WithCold), tenant, scanSession, sessionsSQL, PageArgs(tenant, page)...)
}

// Update changes a session. If a smaller window or a lower trigger makes it due, a compaction is queued.
//
// Errors: ErrNotFound, ErrIdempotencyReused.
func (s *Store) Update(
	ctx context.Context, at session.Address, change session.Change, id *session.Idempotency,
) (session.Session, bool, error) {
	return onceInSession(ctx, s, at, id, func(tx pgx.Tx, row lockedSession) (session.Session, error) {
		before, err := readSession(ctx, tx, at)
		if err != nil {
			return before, err
		}
		d := auditEntry{action: audit.SessionChange, object: audit.Session, id: at.ID}
		if change.ChangesPolicy() {
			if d.before, err = ownPatch(ctx, tx, row.Key); err != nil {
				return before, err
			}
		}
		if err := s.update(ctx, tx, row, change, calibrationAfter(before, change)); err != nil {
			return before, err
		}
		after, err := readSession(ctx, tx, at)
		if err != nil {
			return after, err
		}
		if change.ChangesPolicy() {
			if d.after, err = ownPatch(ctx, tx, row.Key); err != nil {
				return after, err
			}
		}
		return after, recordChanged(ctx, tx, at.Tenant, d, before, after)
	})
}

// recordChanged records a change of a session by the names of what is another now, if anything is.
func recordChanged(
	ctx context.Context, tx pgx.Tx, tenant uuid.UUID, d auditEntry, before, after session.Session,
) error {
	changed := []string{}
	add := func(name string, differs bool) {
		if differs {
			changed = append(changed, name)
		}
	}
	add("format", before.Format != after.Format)
	add("model", before.Model != after.Model)
	add("window_tokens", before.WindowTokens != after.WindowTokens)
	add("overhead_tokens", before.OverheadTokens != after.OverheadTokens)
	add("metadata", !bytes.Equal(before.Metadata, after.Metadata))
	add("policy", !bytes.Equal(d.before, d.after))
	add("retention", !before.Expiry.SameOwn(after.Expiry))
	add("calibration", before.Calibration != after.Calibration)
	if len(changed) == 0 {
		return nil
	}
	if slices.Equal(changed, []string{"policy"}) {
		d.action = audit.PolicyChange
	}
	d.detail = about{"changed": changed}
	return record(ctx, tx, tenant, d)
}

// calibrationAfter returns the session's calibration after a change that tells of a refusal, nil for as it was.
func calibrationAfter(before session.Session, change session.Change) *float64 {
	if !change.Refused {
		return nil
	}
	if change.WindowTokens != nil {
		before.WindowTokens = *change.WindowTokens
	}
	return new(before.CalibrationOfRefused(change.RefusedTokens))
}

func (s *Store) update(
	ctx context.Context, tx pgx.Tx, row lockedSession, change session.Change, calibration *float64,
) error {
	if err := roomy(row, change); err != nil {
		return err
	}
	if err := updateSession(ctx, tx, row, change, calibration); err != nil {
		return err
	}
	if err := changePolicy(ctx, tx, row.Key, row.policy, change); err != nil {
		return err
	}
	if err := setOwnRetention(ctx, tx, row.Key, change); err != nil {
		return err
	}
	if err := s.compactIfDue(ctx, tx, row.Key, causes[due.Trigger]); err != nil {
		return err
	}
	if change.ChangesPolicy() {
		return s.runQueuedNow(ctx, tx, row.Key)
	}
	return nil
}

// runQueuedNow starts the job that waits until the session's cache is cold: the new policy may not want it to wait.
func (s *Store) runQueuedNow(ctx context.Context, tx pgx.Tx, key session.Key) error {
	job, err := RowIn(ctx, tx, pgx.RowTo[int64], `
		SELECT job_id
		  FROM runs
		 WHERE tenant_id = $1 AND session_key = $2 AND state = 'queued'
		 LIMIT 1`, key.Tenant, key.Key)
	if errors.Is(err, session.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.queue.RunNow(ctx, tx, job)
}

// roomy returns an error if a change would leave no room in the window beside the overhead.
func roomy(row lockedSession, change session.Change) error {
	window, overhead := int(row.rule.Window), int(row.overhead)
	if change.WindowTokens != nil {
		window = *change.WindowTokens
	}
	if change.OverheadTokens != nil {
		overhead = *change.OverheadTokens
	}
	if overhead < window {
		return nil
	}
	return session.Invalid("/overhead_tokens", "invalid_request",
		"the session would have %d overhead_tokens in %d window_tokens: they must be fewer", overhead, window)
}

// updateSession changes the row. Another window or calibration resets the floor and arms the trigger: both were set for
// the old one. What was counted exactly was counted too low if the provider has refused it.
func updateSession(
	ctx context.Context, tx pgx.Tx, row lockedSession, change session.Change, calibration *float64,
) error {
	return Exec(ctx, tx, `
		UPDATE sessions
		   SET format = CASE WHEN format = 0 THEN $3::smallint ELSE format END,
		       model = coalesce($4::text, model),
		       window_tokens = coalesce($5::int, window_tokens),
		       window_source = coalesce(nullif($9, ''), window_source),
		       overhead_tokens = coalesce($6::int, overhead_tokens),
		       metadata = coalesce($7::jsonb, metadata),
		       calibration = coalesce($10::float8, calibration),
		       exact_tokens = greatest(exact_tokens, ceil(counted_tokens * $10::float8)),
		       floor_tokens = CASE WHEN $8 THEN 0 ELSE floor_tokens END,
		       armed_threshold = CASE WHEN $8 THEN 1 ELSE armed_threshold END,
		       idle_asked = idle_asked AND NOT $8
		 WHERE tenant_id = $1 AND key = $2`,
		row.Tenant, row.Key.Key, formatNumber(change.Format), change.Model, change.WindowTokens,
		change.OverheadTokens, change.Metadata,
		change.WindowTokens != nil || change.OverheadTokens != nil || change.Refused,
		windowSource(change, ""), calibration)
}
