package tier

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
	"github.com/varve-dev/varve/internal/postgres"
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
	*Work
	table *archivedTable
	of    frozen.Table
	held  [][]*string
	other []string // the keys of those that came back as another compression of the same bytes
	bytes int
}

// Thaw checks an archive, brings its rows back, and shows the session. It calls trace after each step. It may be
// stopped at any time: only its last transaction changes what the session is.
//
// Errors: ErrNotFound and ErrEnded if the attempt is not the archive's any more; ErrMoved: it must begin anew;
// ErrResultStore, *session.DamagedError.
func (w *Work) Thaw(ctx context.Context, trace func(step string)) error {
	put := func(body []byte) error {
		err := w.RestorePart(ctx, body)
		trace("part restored")
		return err
	}
	if err := w.each(ctx, trace, put); err != nil {
		return err
	}
	var objects []object // of the archive, which nothing names any more
	err := underLock(ctx, w.store, w.Key, func(tx pgx.Tx) (err error) {
		if err := w.goOn(ctx, tx, 0); err != nil {
			return err
		}
		if err := expectRows(ctx, tx, w.Key, w.tables); err != nil {
			return err
		}
		if _, objects, err = end(ctx, w.store, tx, w.Key); err != nil || w.Cold {
			return err
		}
		return emit(ctx, tx, w.Key, session.EventRestored)
	})
	if err != nil {
		return err
	}
	trace("session restored")
	forget(ctx, w.store, w.Tenant, objects)
	trace("objects forgotten")
	return nil
}

// each calls put with the parts of an archive once all of them are known to be whole. One part is read once.
func (w *Work) each(ctx context.Context, trace func(step string), put func(body []byte) error) error {
	var only []byte
	keep := func(body []byte) {
		if w.parts == 1 {
			only = body
		}
	}
	if err := w.expectWhole(ctx, keep); err != nil {
		return err
	}
	trace("archive checked")
	if only != nil {
		return put(only)
	}
	_, _, err := w.EachPart(ctx, put)
	return err
}

// RestorePart restores the rows of a part, some of them in a transaction; nobody sees the session meanwhile.
//
// Errors: ErrEnded if the attempt is not the archive's any more; frozen.ErrFormat, ErrResultStore.
func (w *Work) RestorePart(ctx context.Context, body []byte) error {
	r := &restoring{Work: w}
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
	if len(r.held) < restoredRows && r.bytes < restoredBytes {
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
	r.held = append(r.held, texts)
	if at := slices.Index(r.of.Columns, r.table.key[len(r.table.key)-1]); !same && at >= 0 && texts[at] != nil {
		r.other = append(r.other, *texts[at])
	}
}

// flush restores the rows that are held.
func (r *restoring) flush(ctx context.Context) error {
	if len(r.held) == 0 {
		return nil
	}
	put := time.Now()
	of, objects, err := r.putChunks(ctx)
	if err != nil {
		return err
	}
	columns := make([][]*string, len(of))
	for i := range of {
		for _, row := range r.held {
			columns[i] = append(columns[i], row[i])
		}
	}
	err = r.store.InTenant(ctx, r.Tenant, func(tx pgx.Tx) error {
		if err := persist.InTime(put); err != nil {
			return err
		}
		if err := r.goOn(ctx, tx, int64(len(r.held))); err != nil {
			return err
		}
		if err := r.insert(ctx, tx, of, columns); err != nil || len(r.other) == 0 || r.table.reseal == "" {
			return err
		}
		return postgres.Exec(ctx, tx, r.table.reseal, r.Tenant, r.Key.Key, r.other)
	})
	if err != nil { // the session may be erased, and the attempt has failed
		forget(context.WithoutCancel(ctx), r.store, r.Tenant, objects)
	}
	r.held, r.bytes = nil, 0
	r.other = nil
	return err
}

func (r *restoring) insert(ctx context.Context, tx pgx.Tx, of []string, values [][]*string) error {
	if err := postgres.Exec(ctx, tx, asText); err != nil {
		return err
	}
	columns, err := r.table.typesOf(ctx, tx, of)
	if err != nil {
		return err
	}
	constants := map[string]string{}
	if r.table.name == "result_bodies" {
		constants["store"] = strconv.Itoa(int(r.store.ResultStores().New)) + `::smallint`
	}
	args := []any{r.Tenant, r.Key.Key}
	for _, column := range values {
		args = append(args, column)
	}
	return postgres.Exec(ctx, tx, r.table.insertSQL(columns, constants), args...)
}

// putChunks puts the bytes of chunks where new bodies go, and has their rows say where. It returns the columns that the
// rows have, and the objects.
func (r *restoring) putChunks(ctx context.Context) (columns []string, objects []object, err error) {
	columns = r.of.Columns
	at := slices.Index(columns, "body")
	if !r.table.chunks() || at < 0 || r.store.ResultStores().New == persist.Postgres {
		return columns, nil, nil
	}
	stored := make([][]byte, len(r.held))
	for i, row := range r.held {
		var text string
		if row[at] != nil {
			text = *row[at]
		}
		if stored[i], err = hex.DecodeString(strings.TrimPrefix(text, `\x`)); err != nil {
			return nil, nil, fmt.Errorf("%w: %v", frozen.ErrFormat, err)
		}
	}
	spots, err := r.store.ResultStores().PutAway(ctx, session.Key{Tenant: r.Tenant, Key: r.Key.Key}, stored)
	if err != nil {
		return nil, nil, err
	}
	for i, spot := range spots {
		objects = append(objects, object{r.store.ResultStores().New, r.Key.Key, spot.Object})
		r.held[i][at] = nil
		r.held[i] = append(r.held[i], new(spot.Object.String()), new(strconv.FormatInt(spot.At, 10)),
			new(strconv.FormatInt(spot.Size, 10)))
	}
	return append(slices.Clone(columns), "object", "object_at", "object_size"), objects, nil
}
