// Package command is what the commands of the HTTP API work with: the API, and where and how they print.
//
// Start at Console. Answers are printed as the API sent them with --json, else as a template of the command's own, with
// the functions of terminal.Funcs.
package command

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"text/template"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/terminal"
)

// Console is the API, and where and how a command prints.
type Console struct {
	API  *client.Client
	JSON bool // answers are printed as the API sent them
	Out  io.Writer
}

// Operators is a console with an operator's key.
type Operators struct{ *Console }

// Connecting is what a command works with that may need no API: a console if it asks for one, and how it prints.
type Connecting struct {
	Console func() (*Console, error)
	JSON    bool
	Out     io.Writer
}

// Usage is the error of a command line that makes no sense.
type Usage string

// Error returns the text.
func (e Usage) Error() string { return string(e) }

// View returns a template for Print.
func View(text string) *template.Template {
	return template.Must(template.New("view").Funcs(terminal.Funcs).Parse(text))
}

// Print prints an answer: as the API sent it with --json, else as a view.
func (c *Console) Print(view *template.Template, raw []byte, value any) error {
	if c.JSON {
		return c.PrintRaw(raw)
	}
	return terminal.Table(c.Out, view, view.Name(), value, 0)
}

// PrintRaw prints an answer as the API sent it.
func (c *Console) PrintRaw(raw []byte) error {
	_, err := c.Out.Write(append(raw, '\n'))
	return err
}

// List prints all entries of a list.
func List[T any](ctx context.Context, c *Console, view *template.Template, r client.ListRoute[T]) error {
	return Find(ctx, c, view, r, client.Query{}, math.MaxInt)
}

// Find prints up to limit entries of a list that a query asks for.
func Find[T any](
	ctx context.Context, c *Console, view *template.Template, r client.ListRoute[T], query client.Query, limit int,
	args ...any,
) error {
	found, err := r.Find(ctx, c.API, query, limit, args...)
	if err != nil {
		return err
	}
	return PrintList(c, view, found)
}

// PrintList prints entries of a list.
func PrintList[T any](c *Console, view *template.Template, found []client.Answer[T]) error {
	if c.JSON {
		return WriteJSON(c.Out, found)
	}
	values := make([]T, len(found))
	for i := range found {
		values[i] = found[i].Value
	}
	return terminal.Table(c.Out, view, view.Name(), values, 0)
}

// WriteJSON writes a value as a line of JSON.
func WriteJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}
