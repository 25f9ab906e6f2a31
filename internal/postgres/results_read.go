package postgres

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/session"
)

// openResultSQL opens the result with the ref $3 of the session with the id $2, openBodiesSQL the bodies $3 of the
// session with the key $2.
var (
	openResultSQL = statement("open_body",
		"{columns}", persist.ResultColumns+",",
		"{from}", `
  FROM sessions s
  JOIN results r ON r.tenant_id = s.tenant_id AND r.session_key = s.key
  LEFT JOIN result_bodies b ON b.tenant_id = r.tenant_id AND b.session_key = r.session_key AND b.id = r.body_id`,
		"{where}", `
 WHERE s.tenant_id = $1 AND s.id = $2 AND r.ref = $3`)
	openBodiesSQL = statement("open_body",
		"{columns}", "",
		"{from}", `
  FROM result_bodies b`,
		"{where}", `
 WHERE b.tenant_id = $1 AND b.session_key = $2 AND b.id = ANY ($3)`)
)

// OpenResult returns a result and its content, which is read chunk by chunk. The content is nil of a result that lies
// in the log: its message has it. It is one round trip, and a body of one chunk needs no other.
//
// Errors: ErrNotFound for the session and the result, DamagedError. The check digits of a ref make a miscopied one a
// miss instead of another result.
func (s *Store) OpenResult(ctx context.Context, at session.Address, ref session.ResultRef) (
	persist.Result, *persist.Content, error,
) {
	return s.OpenResultAt(ctx, at, ref, persist.Want{})
}

// OpenResultAt does what OpenResult does for a reader that knows what it will read first, which comes along in the same
// round trip.
func (s *Store) OpenResultAt(ctx context.Context, at session.Address, ref session.ResultRef, want persist.Want) (
	r persist.Result, c *persist.Content, err error,
) {
	var body persist.Opened
	args := append([]any{at.Tenant, at.ID, ref.String()}, want.Args()...)
	err = s.query(ctx, at.Tenant, openResultSQL, args, one(append(r.Dest(), body.Dest()...)...))
	if err != nil {
		return r, nil, fmt.Errorf("result %s: %w", ref, err)
	}
	if body.ID == nil {
		return r, nil, nil
	}
	what := "result " + ref.String()
	if !body.Is(&r) {
		return r, nil, &session.DamagedError{What: what, Cause: persist.ErrOtherBody}
	}
	c, err = s.content(at.Tenant, &body, what)
	return r, c, err
}

// OpenBody returns the content of a complete body; ErrNotFound, DamagedError.
func (s *Store) OpenBody(ctx context.Context, key session.Key, id uuid.UUID) (*persist.Content, error) {
	var body persist.Opened
	err := s.query(ctx, key.Tenant, openBodiesSQL, openBodiesArgs(key, id), one(body.Dest()...))
	if err == nil && !body.Complete() {
		err = session.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("body %s: %w", id, err)
	}
	return s.content(key.Tenant, &body, "body "+id.String())
}

func openBodiesArgs(key session.Key, ids ...uuid.UUID) []any {
	return append([]any{key.Tenant, key.Key, ids}, persist.Want{}.Args()...)
}

// openBodies returns the contents of those of some bodies that are there, complete, and can be read.
func (s *Store) openBodies(
	ctx context.Context, key session.Key, ids []uuid.UUID,
) (map[uuid.UUID]*persist.Content, error) {
	scan := func(row pgx.CollectableRow) (body persist.Opened, err error) {
		err = row.Scan(body.Dest()...)
		return body, err
	}
	bodies, err := QueryRows(ctx, s, key.Tenant, scan, openBodiesSQL, openBodiesArgs(key, ids...)...)
	contents := map[uuid.UUID]*persist.Content{}
	for i := range bodies {
		body := &bodies[i]
		if !body.Complete() {
			continue
		}
		if content, err := s.content(key.Tenant, body, "body "+body.ID.String()); err == nil {
			contents[*body.ID] = content
		}
	}
	return contents, err
}

// content returns the content of a body that was opened.
func (s *Store) content(tenant uuid.UUID, body *persist.Opened, what string) (*persist.Content, error) {
	key := session.Key{Tenant: tenant, Key: *body.Session}
	return body.Content(what, func(ctx context.Context, first, limit int) ([]persist.StoredChunk, error) {
		return s.Chunks(ctx, key, *body.ID, first, limit)
	})
}

// Chunks reads chunks of a body as they are stored. What a move takes away between the row and the object is looked for
// again; what is missing then is damaged.
//
// Errors: ErrNotFound if the body is gone, ErrResultStore.
func (s *Store) Chunks(ctx context.Context, key session.Key, body uuid.UUID, first, limit int) (
	[]persist.StoredChunk, error,
) {
	const attempts = 3
	for attempt := 1; ; attempt++ {
		rows, err := s.chunkRows(ctx, key, body, first, limit)
		if err != nil {
			return nil, err
		}
		found, err := s.results.Load(ctx, key.Tenant, rows)
		if !persist.IsMissing(err) {
			return found, err
		}
		if attempt == attempts {
			return nil, nil
		}
	}
}

func (s *Store) chunkRows(ctx context.Context, key session.Key, body uuid.UUID, first, limit int) (
	[]persist.Row, error,
) {
	rows, err := QueryRows(ctx, s, key.Tenant, pgx.RowToStructByPos[persist.Row], `
		SELECT c.codec, c.body, b.store, coalesce(b.objects_in, b.session_key), c.object, c.object_at, c.object_size
		  FROM result_chunks c
		  JOIN result_bodies b ON b.tenant_id = c.tenant_id AND b.session_key = c.session_key AND b.id = c.body_id
		 WHERE c.tenant_id = $1 AND c.session_key = $2 AND c.body_id = $3 AND c.n >= $4 AND c.n < $5
		 ORDER BY c.n`, key.Tenant, key.Key, body, first, first+limit)
	if err == nil && len(rows) == 0 {
		err = fmt.Errorf("body %s: %w", body, session.ErrNotFound)
	}
	return rows, err
}

// Result reads one result of a session with its whole body, which is nil if the result lies in the log.
//
// Errors: those of OpenResult.
func (s *Store) Result(ctx context.Context, at session.Address, ref session.ResultRef) (
	found persist.Result, body []byte, err error,
) {
	found, content, err := s.OpenResult(ctx, at, ref)
	if err != nil || content == nil {
		return found, nil, err
	}
	body, err = content.All(ctx)
	return found, body, err
}
