package postgres

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/session"
)

// auditEntry is what an action writes into the audit trail, besides who did it.
type auditEntry struct {
	action        audit.Action
	object        audit.Object
	id            string          // of the object; "" for none
	detail        any             // written as JSON; nil for none
	before, after json.RawMessage // of a policy or limits
}

// record writes a row of the tenant's audit trail in the transaction of the action. It locks the chain's head until the
// commit, so the tenant's other actions wait: call it last, after every other lock of the transaction.
func record(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, d auditEntry) error {
	detail, err := json.Marshal(d.detail)
	if err != nil {
		return err
	}
	before, err := json.Marshal(d.before)
	if err != nil {
		return err
	}
	after, err := json.Marshal(d.after)
	if err != nil {
		return err
	}
	by := audit.From(ctx)
	return Exec(ctx, tx, `
		INSERT INTO audit_trail (tenant_id, actor, actor_id, request, address, action, object, object_id,
		                         detail, before, after)
		VALUES ($1, $2, nullif($3, '00000000-0000-0000-0000-000000000000'::uuid),
		        nullif($4, ''), nullif($5, ''), $6, $7, nullif($8, ''), $9, $10, $11)`,
		tenant, by.Kind, by.ID, Text(by.Request), Text(by.Address), d.action, d.object, d.id,
		jsonOrNone(detail), jsonOrNone(before), jsonOrNone(after))
}

// jsonOrNone returns a document, nil for null.
func jsonOrNone(document json.RawMessage) json.RawMessage {
	if bytes.Equal(document, []byte("null")) {
		return nil
	}
	return document
}

// RecordOperator writes a row of the operators' chain. The transaction sees nothing of its tenant any more.
func RecordOperator(
	ctx context.Context, tx pgx.Tx, action audit.Action, object audit.Object, id string, detail any,
) error {
	if err := SeeTenant(ctx, tx, audit.Operator); err != nil {
		return err
	}
	return Record(ctx, tx, audit.Operator, action, object, id, detail)
}

// recordSession writes a row about a session.
func recordSession(ctx context.Context, tx pgx.Tx, at session.Address, action audit.Action, detail any) error {
	return record(ctx, tx, at.Tenant, auditEntry{action: action, object: audit.Session, id: at.ID, detail: detail})
}

// about is a detail: what a row has to say of its object beside its id.
type about map[string]any

// RecordExport records that a session, or with no id the whole tenant, is about to be read out.
func (s *Store) RecordExport(ctx context.Context, at session.Address) error {
	d := auditEntry{action: audit.Export, object: audit.Session, id: at.ID}
	if at.ID == "" {
		d.object, d.id = audit.Tenant, at.Tenant.String()
	}
	return s.InTenant(ctx, at.Tenant, func(tx pgx.Tx) error {
		if at.ID != "" { // an erasure waits for the row, or nothing names its session any more
			err := ExecOne(ctx, tx, session.ErrNotFound, `
				SELECT
				  FROM sessions
				 WHERE tenant_id = $1 AND id = $2
				   FOR KEY SHARE`, at.Tenant, at.ID)
			if err != nil {
				return err
			}
		}
		return record(ctx, tx, at.Tenant, d)
	})
}

const auditColumns = `
	tenant_id, n, at, login, actor, actor_id, request, address, action, object, object_id, detail::text, before::text,
	after::text, content, previous, hash, blanked_by`

func scanEntry(row pgx.CollectableRow) (e audit.Entry, err error) {
	var detail, before, after *string
	var content, previous, hash []byte
	err = row.Scan(&e.TenantID, &e.N, &e.At, &e.Login, &e.Actor, &e.ActorID, &e.Request, &e.Address, &e.Action,
		&e.Object, &e.ObjectID, &detail, &before, &after, &content, &previous, &hash, &e.BlankedBy)
	e.Detail = document(detail)
	e.Before = document(before)
	e.After = document(after)
	copy(e.Content[:], content)
	copy(e.Previous[:], previous)
	copy(e.Hash[:], hash)
	return e, err
}

func document(text *string) json.RawMessage {
	if text == nil {
		return nil
	}
	return json.RawMessage(*text)
}

// TrailFilter is which rows of an audit trail to read. What is zero does not matter.
type TrailFilter struct {
	Action       audit.Action
	ObjectID     string
	Actor        uuid.UUID
	Since, Until time.Time
	Oldest       bool  // first; else the newest
	Place        int64 // of the last row that was read
	Limit        int
}

// sql returns the statement that reads the rows, and its arguments. It has a condition for what matters only, so that
// the index of that condition serves it. Times only grow along a chain: the bounds are looked up as rows.
func (f *TrailFilter) sql(tenant uuid.UUID) (string, []any) {
	args := []any{tenant, f.Limit}
	var where strings.Builder
	add := func(matters bool, condition string, value any) {
		if matters {
			args = append(args, value)
			where.WriteString(strings.ReplaceAll(condition, "?", "$"+strconv.Itoa(len(args))))
		}
	}
	order := ` DESC`
	if f.Oldest {
		order = ``
	}
	add(f.Action != "", ` AND action = ?`, f.Action)
	add(f.ObjectID != "", ` AND object_id = ?`, f.ObjectID)
	add(f.Actor != uuid.Nil, ` AND actor_id = ?`, f.Actor)
	add(!f.Since.IsZero(), ` AND n >= (SELECT n FROM audit_trail WHERE tenant_id = $1 AND at >= ?
		              ORDER BY at, n LIMIT 1)`, f.Since)
	add(!f.Until.IsZero(), ` AND n <= (SELECT n FROM audit_trail WHERE tenant_id = $1 AND at < ?
		              ORDER BY at DESC, n DESC LIMIT 1)`, f.Until)
	add(f.Place != 0 && f.Oldest, ` AND n > ?`, f.Place)
	add(f.Place != 0 && !f.Oldest, ` AND n < ?`, f.Place)
	return `
		SELECT ` + auditColumns + `
		  FROM audit_trail
		 WHERE tenant_id = $1` + where.String() + `
		 ORDER BY n` + order + `
		 LIMIT $2`, args
}

// Trail reads rows of a tenant's audit trail, or of the operators'.
func (s *Store) Trail(ctx context.Context, tenant uuid.UUID, f TrailFilter) ([]audit.Entry, error) {
	sql, args := f.sql(tenant)
	return QueryRows(ctx, s, tenant, scanEntry, sql, args...)
}

// TrailPage reads the rows of a tenant's audit trail after a place, oldest first, and the head of the chain as it was
// at the same moment: a page with fewer rows than limit ends there.
func (s *Store) TrailPage(
	ctx context.Context, tenant uuid.UUID, after int64, limit int,
) (page audit.Page, err error) {
	err = s.inSnapshot(ctx, tenant, func(tx pgx.Tx) error {
		f := TrailFilter{Oldest: true, Place: after, Limit: limit}
		sql, args := f.sql(tenant)
		if page.Rows, err = RowsIn(ctx, tx, scanEntry, sql, args...); err != nil {
			return err
		}
		var hash []byte
		err := tx.QueryRow(ctx, `
			SELECT n, hash
			  FROM audit_heads
			 WHERE tenant_id = $1`, tenant).Scan(&page.Head.N, &hash)
		copy(page.Head.Hash[:], hash)
		if errors.Is(err, pgx.ErrNoRows) { // nothing was done yet
			err = nil
		}
		return err
	})
	return page, err
}
