package postgres

import (
	"context"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// Indexed is a message of a view without its body.
type Indexed struct {
	Seq, Tokens int64
	Format      session.Format
}

// indexStatement reads the messages of a view from two ranges of the log, and the units of its checkpoint. A message
// that was removed after the view was read is still one of it.
//
//	$1 tenant  $2 session key  $3 checkpoint  $4 the ranges begin after these seqs  $5 and end with these
//	$6 the view's last seq  $7 whether the view is the log itself, in which nothing is capped
const indexStatement = `
	SELECT c.units::text, m.seqs, m.tokens, m.formats
	  FROM sessions s
	  LEFT JOIN LATERAL (
	       SELECT units
	         FROM checkpoints
	        WHERE tenant_id = $1 AND session_key = $2 AND n = $3
	       OFFSET 0) c ON true
	 CROSS JOIN LATERAL (
	       SELECT array_agg(l.seq) AS seqs, array_agg(l.tokens) AS tokens, array_agg(l.format) AS formats
	         FROM unnest($4::bigint[], $5::bigint[]) AS r (after, through)
	        CROSS JOIN LATERAL (
	              SELECT seq, format,
	                     CASE WHEN $7::boolean THEN tokens ELSE coalesce(view_tokens, tokens) END AS tokens
	                FROM messages
	               WHERE tenant_id = $1 AND session_key = $2 AND seq > r.after AND seq <= r.through
	                 AND (removed_at IS NULL OR removed_seq > $6)
	               ORDER BY seq) l) m
	 WHERE s.tenant_id = $1 AND s.key = $2`

// Index adds to a view from View what each of its messages is, and the units of its checkpoint. It reads no bodies.
// ErrNotFound if the session was deleted meanwhile.
func (s *Store) Index(ctx context.Context, at session.Address, v *View) error {
	return s.index(ctx, at, v, false)
}

func (s *Store) index(ctx context.Context, at session.Address, v *View, isLog bool) error {
	var seqs, tokens []int64
	var formats []int16
	err := query(ctx, s.pool, at.Tenant, indexStatement, indexArgs(at.Tenant, v, isLog),
		one((*reused)(&v.Units), &seqs, &tokens, &formats))
	if err != nil {
		return err
	}
	for i, seq := range seqs {
		m := Indexed{Seq: seq, Tokens: tokens[i], Format: formatName(formats[i])}
		if seq <= v.separate() {
			v.SystemIndex = append(v.SystemIndex, m)
		} else {
			v.TailIndex = append(v.TailIndex, m)
		}
	}
	return nil
}

func indexArgs(tenant uuid.UUID, v *View, isLog bool) []any {
	after := []int64{0, max(v.Through, v.separate())}
	through := []int64{v.separate(), v.LastSeq}
	return []any{[16]byte(tenant), [16]byte(v.Key), v.Checkpoint, after, through, v.LastSeq, isLog}
}

// separate returns the last seq of the separate system prompt, 0 if there is none: pinnedElsewhere of the view.
func (v *View) separate() int64 {
	if provider.SeparatesSystem(v.Format) {
		return v.Pinned
	}
	return 0
}
