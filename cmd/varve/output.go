package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"text/template"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/terminal"
)

//go:embed views.tmpl
var viewsText string

// views are the templates of what is printed for a person.
var views = template.Must(template.New("views").Funcs(terminal.Funcs).Funcs(template.FuncMap{
	"place": place, "lines": func(s string) []string { return strings.Split(s, "\n") }, "stages": stagesOf,
	"without": doneWithout,
	"n":       thousands, "percent": percent, "fewer": fewer, "base": filepath.Base, "lasting": lasting,
	"flags": flagsOf, "spent": spentOn, "megabytes": megabytes,
	"plus": func(a, b int64) int64 { return a + b }, "minus": func(a, b int64) int64 { return a - b },
}).Parse(viewsText))

// writeView writes a value as the view of that name.
func writeView(out io.Writer, name string, value any) error { return writeAligned(out, name, value, 0) }

// writeAligned writes a view whose columns are aligned as the flags of text/tabwriter say.
func writeAligned(out io.Writer, name string, value any, flags uint) error {
	return terminal.Table(out, views, name, value, flags)
}

// printValue writes a value that does not come from the API: as JSON, or as the view of that name.
func printValue(out io.Writer, asJSON bool, name string, value any) error {
	if asJSON {
		return command.WriteJSON(out, value)
	}
	return writeView(out, name, value)
}

// named returns the view of that name.
func named(name string) *template.Template { return views.Lookup(name) }

// show calls a route and prints its answer.
func show[T any](
	ctx context.Context, to *command.Console, name string, r client.Route[T], o client.Options, args ...any,
) error {
	a, err := r.With(ctx, to.API, o, args...)
	if err != nil {
		return err
	}
	return to.Print(named(name), a.Raw, &a.Value)
}

// showJSON calls a route and prints its answer as the API sent it.
func showJSON[T any](ctx context.Context, to *command.Console, r client.Route[T], o client.Options, args ...any) error {
	a, err := r.With(ctx, to.API, o, args...)
	if err != nil {
		return err
	}
	return to.PrintRaw(a.Raw)
}

// showList calls a route and prints up to limit entries of its list.
func showList[T any](
	ctx context.Context, to *command.Console, name string, r client.ListRoute[T], limit int, args ...any,
) error {
	return command.Find(ctx, to, named(name), r, client.Query{}, limit, args...)
}

// place names a part by its message and number, or the messages from one to another.
func place(seq, lastSeq int64, part int) string {
	switch {
	case lastSeq > seq:
		return fmt.Sprintf("%d–%d", seq, lastSeq)
	case part < 0:
		return strconv.FormatInt(seq, 10)
	}
	return fmt.Sprintf("%d.%d", seq, part)
}

// stagesOf returns what the stages of a run did.
func stagesOf(r *session.Run) (stages []compact.StageReport, err error) {
	if r.Stages != nil {
		err = json.Unmarshal(r.Stages, &stages)
	}
	return stages, err
}

// doneWithout returns why a run failed, or what failed in it that it was done without; nil for nothing.
func doneWithout(r *session.Run) (*string, error) {
	if r.Error != nil {
		return r.Error, nil
	}
	stages, err := stagesOf(r)
	for _, s := range stages {
		if s.Error != "" {
			return new(s.Stage + ": " + s.Error), err
		}
	}
	return nil, err
}

// thousands writes a whole number of any type.
func thousands(number any) string { return terminal.Thousands(reflect.ValueOf(number).Int()) }

// percent writes a share of 1.
func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }
