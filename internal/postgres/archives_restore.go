package postgres

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tier/frozen"
)

// The bounds of what one transaction restores, the last row aside.
const (
	restoredRows  = 500
	restoredBytes = 4 << 20
)

// restoring are rows of a table that are about to be restored.
type restoring struct {
	store *Store
	work  *ArchiveWork
	table *archivedTable
	of    frozen.Table
	rows  [][]*string
	other []string // the keys of those that came back as another compression of the same bytes
	bytes int
}

// RestorePart restores the rows of a part, some of them in a transaction; nobody sees the session meanwhile.
//
// Errors: ErrEnded if the attempt is not the archive's any more; frozen.ErrFormat, ErrResultStore.
func (s *Store) RestorePart(ctx context.Context, w *ArchiveWork, body []byte) error {
	r := &restoring{store: s, work: w}
	err := frozen.Read(body, func(of *frozen.Table, row frozen.Row) error { return r.add(ctx, of, row) })
	if err != nil {
		return err
	}
	return r.flush(ctx)
}

func (r *restoring) add(ctx context.Context, of *frozen.Table, row frozen.Row) error {
	if r.of.Name != of.Name || !slices.Equal(r.of.Columns, of.Columns) {
		if err := r.flush(ctx); err != nil {
			return err
		}
		r.of = *of
		if r.table = archivedTableOf(of.Name); r.table == nil {
			return fmt.Errorf("%w: there is no table %s", frozen.ErrFormat, of.Name)
		}
	}
	r.hold(row)
	if len(r.rows) < restoredRows && r.bytes < restoredBytes {
		return nil
	}
	return r.flush(ctx)
}

// hold holds a row to be restored with others.
func (r *restoring) hold(row frozen.Row) {
	texts, same := make([]*string, len(row)), true
	for i := range row {
		text, is := row[i].Text()
		if text != nil {
			r.bytes += len(*text)
		}
		texts[i], same = text, same && is
	}
	r.rows = append(r.rows, texts)
	if at := slices.Index(r.of.Columns, r.table.key[len(r.table.key)-1]); !same && at >= 0 && texts[at] != nil {
		r.other = append(r.other, *texts[at])
	}
}

// flush restores the rows that are held.
func (r *restoring) flush(ctx context.Context) error {
	if len(r.rows) == 0 {
		return nil
	}
	put := time.Now()
	of, objects, err := r.putChunks(ctx)
	if err != nil {
		return err
	}
	columns := make([][]*string, len(of))
	for i := range of {
		for _, row := range r.rows {
			columns[i] = append(columns[i], row[i])
		}
	}
	err = r.store.Seeing(AllSessions).InTenant(ctx, r.work.Tenant, func(tx pgx.Tx) error {
		if err := persist.InTime(put); err != nil {
			return err
		}
		if err := r.work.goOn(ctx, tx, int64(len(r.rows))); err != nil {
			return err
		}
		if err := r.insert(ctx, tx, of, columns); err != nil || len(r.other) == 0 || r.table.reseal == "" {
			return err
		}
		return Exec(ctx, tx, r.table.reseal, r.work.Tenant, r.work.Key.Key, r.other)
	})
	if err != nil { // the session may be erased, and the attempt has failed
		r.store.ForgetObjects(context.WithoutCancel(ctx), r.work.Tenant, objects)
	}
	r.rows, r.bytes = nil, 0
	r.other = nil
	return err
}

func (r *restoring) insert(ctx context.Context, tx pgx.Tx, of []string, values [][]*string) error {
	if err := Exec(ctx, tx, asText); err != nil {
		return err
	}
	columns, err := r.table.typesOf(ctx, tx, of)
	if err != nil {
		return err
	}
	constants := map[string]string{}
	if r.table.name == "result_bodies" {
		constants["store"] = strconv.Itoa(int(r.store.results.New)) + `::smallint`
	}
	args := []any{r.work.Tenant, r.work.Key.Key}
	for _, column := range values {
		args = append(args, column)
	}
	return Exec(ctx, tx, r.table.insertSQL(columns, constants), args...)
}

// putChunks puts the bytes of chunks where new bodies go, and has their rows say where. It returns the columns that the
// rows have, and the objects.
func (r *restoring) putChunks(ctx context.Context) (columns []string, objects []AwayObject, err error) {
	columns = r.of.Columns
	at := slices.Index(columns, "body")
	if !r.table.chunks() || at < 0 || r.store.results.New == persist.Postgres {
		return columns, nil, nil
	}
	stored := make([][]byte, len(r.rows))
	for i, row := range r.rows {
		var text string
		if row[at] != nil {
			text = *row[at]
		}
		if stored[i], err = hex.DecodeString(strings.TrimPrefix(text, `\x`)); err != nil {
			return nil, nil, fmt.Errorf("%w: %v", frozen.ErrFormat, err)
		}
	}
	spots, err := r.store.results.PutAway(ctx, session.Key{Tenant: r.work.Tenant, Key: r.work.Key.Key}, stored)
	if err != nil {
		return nil, nil, err
	}
	for i, spot := range spots {
		objects = append(objects, AwayObject{r.store.results.New, r.work.Key.Key, spot.Object})
		r.rows[i][at] = nil
		r.rows[i] = append(r.rows[i], new(spot.Object.String()), new(strconv.FormatInt(spot.At, 10)),
			new(strconv.FormatInt(spot.Size, 10)))
	}
	return append(slices.Clone(columns), "object", "object_at", "object_size"), objects, nil
}
