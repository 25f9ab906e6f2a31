package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/varve-dev/varve/internal/client"
	"github.com/varve-dev/varve/internal/terminal"
)

// show calls a route and prints its answer: as the API sent it with --json, else as text writes it.
func show[T any](
	ctx context.Context, to *console, text func(io.Writer, *T) error, r client.Route[T], o client.Options, args ...any,
) error {
	a, err := r.With(ctx, to.api, o, args...)
	if err != nil {
		return err
	}
	return to.print(a.Raw, func(out io.Writer) error { return text(out, &a.Value) })
}

// print prints an answer: as the API sent it with --json, else as text writes it.
func (to *console) print(raw []byte, text func(io.Writer) error) error {
	if to.JSON {
		return to.printRaw(raw)
	}
	return text(to.out)
}

// printRaw prints an answer as the API sent it.
func (to *console) printRaw(raw []byte) error {
	_, err := to.out.Write(append(raw, '\n'))
	return err
}

// showList calls a route and prints up to limit entries of its list, a row for each.
func showList[T any](
	ctx context.Context, to *console, header string, row func(*T) []any, r client.ListRoute[T], limit int, args ...any,
) error {
	found, err := r.All(ctx, to.api, limit, args...)
	if err != nil {
		return err
	}
	return writeTable(to.out, to.JSON, found, header, func(a *client.Answer[T]) []any { return row(&a.Value) })
}

// writeTable writes a list: as JSON, or as a table with one row for each entry below a header. Tabs separate columns.
func writeTable[T any](out io.Writer, asJSON bool, list []T, header string, row func(*T) []any) error {
	if asJSON {
		return writeJSON(out, list)
	}
	table := newTable(out)
	fmt.Fprintln(table, header)
	for i := range list {
		cells := row(&list[i])
		texts := make([]string, len(cells))
		for n, cell := range cells {
			texts[n] = cellText(cell)
		}
		fmt.Fprintln(table, strings.Join(texts, "\t"))
	}
	return table.Flush()
}

// newTable returns a writer that aligns columns, which tabs separate.
func newTable(out io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(out, 0, 0, 2, ' ', 0) }

// cellText returns a value as a table shows it: "-" for a nil pointer, times to the second.
func cellText(cell any) string {
	if v := reflect.ValueOf(cell); v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return "-"
		}
		cell = v.Elem().Interface()
	}
	switch v := cell.(type) {
	case string:
		return terminal.Printable(v)
	case time.Time:
		return v.Format(time.RFC3339)
	}
	return fmt.Sprint(cell)
}

// writeJSON writes a value as a line of JSON.
func writeJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}
