package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// countRecallsSQL looks at the manifests of at most 200 checkpoints of a lineage.
var countRecallsSQL = statement("count_recalls", "{depth}", "200", "{in_view}", session.InView,
	"{uploaded}", session.Uploaded)

// CountRecalls adds to the counts of what was read back of a tenant's sessions, and returns by what it had left the
// views. It passes over sessions that are gone, and refs that name nothing.
func (s *Store) CountRecalls(ctx context.Context, tenant uuid.UUID, recalled []session.Recalled) (
	[]session.Attributed, error,
) {
	var c recallColumns
	for i := range recalled {
		c.add(&recalled[i])
	}
	return queryRows(ctx, s, tenant, pgx.RowToStructByName[session.Attributed], countRecallsSQL,
		tenant, c.sessions, c.refs, c.firsts, c.lasts, c.parts, c.vias, c.reads, c.times)
}

// recallColumns are recalls by column, as unnest takes them.
type recallColumns struct {
	sessions, refs, vias []string
	firsts, lasts, reads []int64
	parts                []int32
	times                []time.Time
}

func (c *recallColumns) add(r *session.Recalled) {
	messages, part, ok := r.Place()
	if !ok {
		return
	}
	c.sessions = append(c.sessions, r.Session)
	c.refs = append(c.refs, r.Ref)
	c.firsts = append(c.firsts, messages.First)
	c.lasts = append(c.lasts, messages.Last)
	c.parts = append(c.parts, int32(part))
	c.vias = append(c.vias, string(r.Via))
	c.reads = append(c.reads, r.Reads)
	c.times = append(c.times, r.Last)
}

// ReadsOf returns how often results of a session were read back, those that were.
func (s *Store) ReadsOf(ctx context.Context, at session.Address, refs []string) ([]session.Reads, error) {
	return queryRows(ctx, s, at.Tenant, pgx.RowToStructByName[session.Reads], `
		SELECT r.ref, sum(r.reads)::bigint AS reads, max(r.last_read_at) AS last
		  FROM sessions s
		  JOIN recalls r ON r.tenant_id = s.tenant_id AND r.session_key = s.key
		 WHERE s.tenant_id = $1 AND s.id = $2
		   AND r.ref = ANY ($3)
		 GROUP BY r.ref`, at.Tenant, at.ID, refs)
}

var recallSQL = statement("recall")

// Recall returns what left a tenant's views from one time to another and how much of it was read back since, by tool,
// action and rule: those with the most parts that were read back first, at most limit.
func (s *Store) Recall(ctx context.Context, tenant uuid.UUID, from, to time.Time, limit int) ([]session.Recall, error) {
	scan := func(row pgx.CollectableRow) (r session.Recall, err error) {
		var found session.Regret
		err = row.Scan(&r.Tool, &r.Action, &r.Rule, &found.Left.Parts, &found.Left.Tokens, &found.ReadBack.Parts,
			&found.ReadBack.Reads, &found.ReadBack.Tokens)
		r.Add(found)
		return r, err
	}
	return queryRows(ctx, s, tenant, scan, recallSQL, tenant, from, to, limit)
}
