package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/varve-dev/varve/internal/client"
	"github.com/varve-dev/varve/internal/terminal"
)

// writeAnswer writes an answer: as the API sent it if asJSON, else as text writes it.
func writeAnswer[T any](out io.Writer, asJSON bool, a client.Answer[T], text func(io.Writer, *T) error) error {
	if asJSON {
		return writeRaw(out, a.Raw)
	}
	return text(out, &a.Value)
}

// writeRaw writes an answer with the bytes that the API sent.
func writeRaw(out io.Writer, raw []byte) error {
	_, err := out.Write(append(raw, '\n'))
	return err
}

// writeList writes a list: its entries as the API sent them if asJSON, else a table with one row for each.
func writeList[T any](out io.Writer, asJSON bool, found []client.Answer[T], header string, row func(*T) []any) error {
	if asJSON {
		return writeJSON(out, found)
	}
	rows := make([][]any, len(found))
	for i := range found {
		rows[i] = row(&found[i].Value)
	}
	return writeTable(out, header, rows)
}

// writeTable writes rows below a header, whose columns are separated by tabs.
func writeTable(out io.Writer, header string, rows [][]any) error {
	table := newTable(out)
	fmt.Fprintln(table, header)
	for _, cells := range rows {
		texts := make([]string, len(cells))
		for i, cell := range cells {
			texts[i] = cellText(cell)
		}
		fmt.Fprintln(table, strings.Join(texts, "\t"))
	}
	return table.Flush()
}

func newTable(out io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(out, 0, 0, 2, ' ', 0) }

// cellText returns a value as a table shows it: "-" where there is none, times to the second.
func cellText(cell any) string {
	switch v := cell.(type) {
	case string:
		return terminal.Printable(v)
	case *string:
		return deref(v)
	case *int:
		return deref(v)
	case *int64:
		return deref(v)
	case time.Time:
		return v.Format(time.RFC3339)
	case *time.Time:
		return deref(v)
	}
	return fmt.Sprint(cell)
}

func deref[T any](v *T) string {
	if v == nil {
		return "-"
	}
	return cellText(*v)
}

func writeJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// first returns the first n characters of a hexadecimal digest.
func first(n int, digest string) string { return digest[:min(n, len(digest))] }

func change(from, to int64) string {
	return strconv.FormatInt(from, 10) + " → " + strconv.FormatInt(to, 10)
}
