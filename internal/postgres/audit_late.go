package postgres

import (
	"context"
	"math"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
)

// lateBlanked returns all rows that those of some rows have blanked which were written after began: rows before after
// may have been read before that. Rows that were removed since are there as stubs.
func lateBlanked(
	ctx context.Context, tx pgx.Tx, tenant uuid.UUID, rows []audit.Entry, after, began int64,
) (audit.Late, error) {
	var by []int64
	first := int64(math.MaxInt64)
	for i := range rows {
		if from := rows[i].Blanks(); rows[i].N > began && from > 0 && from <= after {
			by, first = append(by, rows[i].N), min(first, from)
		}
	}
	if by == nil {
		return nil, nil
	}
	removed, err := rowsIn(ctx, tx, scanStub, `
		SELECT n, blanked_by, sum
		  FROM audit_stubs
		 WHERE tenant_id = $1 AND blanked_by = ANY ($2)
		 ORDER BY n`, tenant, by)
	if err != nil {
		return nil, err
	}
	there, err := rowsIn(ctx, tx, scanBlanked, `
		SELECT `+auditColumns+`
		  FROM audit_trail
		 WHERE tenant_id = $1 AND n >= $2 AND n < $3 AND blanked_by = ANY ($4)
		 ORDER BY n`, tenant, first, by[len(by)-1], by)
	return append(removed, there...), err
}

// scanBlanked scans a row of the trail that is there and blanked.
func scanBlanked(row pgx.CollectableRow) (audit.Stub, error) {
	e, err := scanEntry(row)
	if err != nil {
		return audit.Stub{}, err
	}
	return audit.Stub{N: e.N, BlankedBy: *e.BlankedBy, Sum: e.Sum()}, nil
}
