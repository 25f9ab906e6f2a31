package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

// writeDocs replaces the generated tables of a page. What was not measured, because there are no recorded conversations
// for example, stays as it is.
func (b *bench) writeDocs(path string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	tables := []struct{ name, text string }{{"measurements", b.rowsTable()}, {"profiles", b.livesTable(true)}, {"data-sets", b.livesTable(false)}}
	for _, table := range tables {
		if table.text == "" {
			continue
		}
		if page, err = replaceSection(page, table.name, table.text); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return os.WriteFile(path, page, 0o644)
}

// replaceSection replaces what stands between two comments that only a section's name tells apart from others.
func replaceSection(page []byte, name, text string) ([]byte, error) {
	begin, end := "<!-- bench: "+name+" -->\n", "<!-- end: "+name+" -->"
	before, rest, found := bytes.Cut(page, []byte(begin))
	_, after, closed := bytes.Cut(rest, []byte(end))
	if !found || !closed {
		return nil, fmt.Errorf("there is no section %q between %q and %q", name, begin, end)
	}
	return fmt.Appendf(nil, "%s%s\n%s\n%s%s", before, begin, text, end, after), nil
}

func (b *bench) rowsTable() string {
	rows := [][]string{}
	for _, r := range b.rows {
		rows = append(rows, r.cells())
	}
	table := markdown(rowHeads, rows)
	if len(b.notes) > 0 {
		table += "\n* " + strings.Join(b.notes, "\n* ") + "\n"
	}
	return table
}

// livesTable has the sums over all data sets, or the sets themselves.
func (b *bench) livesTable(sums bool) string {
	rows := [][]string{}
	for i := range b.lives {
		if l := &b.lives[i]; (l.Set == allSets) == sums {
			rows = append(rows, l.cells())
		}
	}
	return markdown(lifeHeads, rows)
}

// markdown is a table, "" for one without rows.
func markdown(heads []string, rows [][]string) string {
	if len(rows) == 0 {
		return ""
	}
	var text strings.Builder
	line := func(cells []string) { fmt.Fprintf(&text, "| %s |\n", strings.Join(cells, " | ")) }
	line(heads)
	line(strings.Fields(strings.Repeat("--- ", len(heads))))
	for _, cells := range rows {
		line(cells)
	}
	return text.String()
}
