package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/rivertype"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/session"
)

// ChangeJobs does one thing to some jobs of any tenants, for an operator, all or none: audit.JobRetry or
// audit.JobCancel.
//
// Errors: ErrNotFound; *session.InvalidError if a retry would be the second of a live job.
func (s *Store) ChangeJobs(ctx context.Context, do audit.Action, jobs []int64) error {
	change := s.queue.Retry
	if do == audit.JobCancel {
		change = s.queue.Cancel
	}
	return s.InTenant(ctx, uuid.Nil, func(tx pgx.Tx) error {
		for _, job := range jobs {
			err := change(ctx, tx, job)
			switch {
			case errors.Is(err, rivertype.ErrNotFound):
				return fmt.Errorf("job %d: %w", job, session.ErrNotFound)
			case hasCode(err, "23505"): // unique_violation
				return session.Invalid("/ids", "invalid_request", "job %d would be the second of its kind", job)
			case err != nil:
				return err
			}
			if err := RecordOperator(ctx, tx, do, audit.Job, strconv.FormatInt(job, 10), nil); err != nil {
				return err
			}
		}
		return nil
	})
}
