package terminal

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"text/tabwriter"
	"text/template"
	"time"
)

// Funcs are what templates of tables have: row and cell for their cells, joined for lists, cut and printable.
var Funcs = template.FuncMap{
	"row": row, "cell": Cell, "joined": joined, "cut": Cut, "printable": Printable, "rate": rate,
}

// Table writes a value as the template of that name, whose columns are aligned as the flags of text/tabwriter say.
func Table(out io.Writer, from *template.Template, name string, value any, flags uint) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', flags)
	if err := from.ExecuteTemplate(table, name, value); err != nil {
		return err
	}
	return table.Flush()
}

// row returns the cells of a line of a table.
func row(cells ...any) string {
	texts := make([]string, len(cells))
	for i := range cells {
		texts[i] = Cell(cells[i])
	}
	return strings.Join(texts, "\t")
}

// Cell returns a value as a table shows it: "-" for a nil pointer, times to the second.
func Cell(value any) string {
	if v := reflect.ValueOf(value); v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return "-"
		}
		value = v.Elem().Interface()
	}
	switch v := value.(type) {
	case string:
		return Printable(v)
	case time.Time:
		return v.Format(time.RFC3339)
	}
	return fmt.Sprint(value)
}

// joined returns the elements of a slice with commas, or none for an empty one.
func joined(slice any, none string) string {
	v := reflect.ValueOf(slice)
	if v.Len() == 0 {
		return none
	}
	texts := make([]string, v.Len())
	for i := range texts {
		texts[i] = Cell(v.Index(i).Interface())
	}
	return strings.Join(texts, ",")
}

// rate returns a rate, or that there is nothing to divide by.
func rate(of *float64) string {
	if of == nil {
		return "-"
	}
	return fmt.Sprintf("%.4g", *of)
}
