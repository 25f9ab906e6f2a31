package postgres

import (
	"context"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Follower is what a feature makes of what sessions store, behind the requests.
type Follower struct {
	// Behind is the condition, in SQL, that Changed has to be told of a session s of the tenant $1: the sweep's round
	// through all sessions finds those of which a process has died that was to tell.
	Behind string

	// Changed is told of sessions that have stored something, each more or less often.
	Changed func(ctx context.Context, tx pgx.Tx, s *Store, tenant uuid.UUID, ids []string) error
}

// Follow has followers told of what is stored from now on. Call it before anything is.
func (s *Store) Follow(followers []Follower) { s.followers = followers }

// changed tells the followers of sessions that have stored something.
func (s *Store) changed(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, ids []string) error {
	for _, f := range s.followers {
		if err := f.Changed(ctx, tx, s, tenant, ids); err != nil {
			return err
		}
	}
	return nil
}

// auditSQL returns the statement of audit.
func (s *Store) auditSQL() string {
	var behind strings.Builder
	for _, f := range s.followers {
		behind.WriteString(" OR " + f.Behind)
	}
	conditions := strings.NewReplacer(
		"{over trigger}", overTrigger, "{over window}", overWindow, "{or behind}", behind.String(),
	)
	return conditions.Replace(auditStatement)
}
