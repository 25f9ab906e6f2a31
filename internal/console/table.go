package console

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/terminal"
)

// table is a page of a list with the forms that go with it. Pages that show no more than that share its template.
type table struct {
	Of          *sessionHead // nil but for pages of a session
	Title, Says string
	Tabs        []link
	Secret      string // of what was just made, which is shown once
	Facts       []fact
	Forms       []form
	Head        []heading
	Rows        [][]cell
	Empty       string // what a list without rows says
	Picture     string // the address of one, below the list
	RawOf       string // what Raw is, "" for JSON
	Raw         string // a document below the list
	Next        string
}

// fact is a term with its value.
type fact struct {
	Term string
	Is   cell
}

// heading is the head of a column.
type heading struct {
	Word string
	Num  bool // of numbers
}

// heads returns headings; # is before those of numbers.
func heads(words ...string) (list []heading) {
	for _, word := range words {
		name, isNumber := strings.CutPrefix(word, "#")
		list = append(list, heading{name, isNumber})
	}
	return list
}

// cell is a field of a row: a text, a number or a time, or forms.
type cell struct {
	Text, Link string
	Num        bool
	Bad        bool
	ID         bool // people copy it
	At         *time.Time
	Forms      []form
}

func text(of any) cell              { return cell{Text: fmt.Sprint(of)} }
func linked(of any, to string) cell { return cell{Text: fmt.Sprint(of), Link: to} }
func idOf(of any) cell              { return cell{Text: fmt.Sprint(of), ID: true} }
func number(n int64) cell           { return cell{Text: terminal.Thousands(n), Num: true} }
func when(at *time.Time) cell       { return cell{At: at} }
func doing(forms ...form) cell      { return cell{Forms: forms} }

// linkedID returns an id that leads to a page.
func linkedID(of any, to string) cell { return cell{Text: fmt.Sprint(of), Link: to, ID: true} }

// since returns a time that leads to a page.
func since(at time.Time, to string) cell { return cell{At: &at, Link: to} }

// optional returns a text that may not be there.
func optional(of *string) cell {
	if of == nil {
		return cell{}
	}
	return cell{Text: *of}
}

// form changes something, and says before what it does.
type form struct {
	To, Word, Does string
	Danger         bool
	Inputs         []input
}

// input is a field of a form.
type input struct {
	Name, Label, Value, Example string
	Choices                     []string // of a choice
	Needed                      bool
}

// Hidden reports whether nobody fills the field in.
func (i input) Hidden() bool { return i.Label == "" }

// sure returns the field into which a person writes what will be lost.
func sure(what string) input {
	return input{Name: "sure", Label: "To be sure, write " + what, Needed: true}
}

// isSure reports whether a form has what sure asks for.
func (v *visit) isSure(what string) bool { return v.r.PostFormValue("sure") == what }

// notSure answers a form that lacks it.
func (v *visit) notSure(what string) error {
	v.showError(422, protocol.Problem{Detail: "Nothing was done: the form asks for " + what + " in its field."})
	return nil
}

// count reads a positive number of a form; an empty field is 0.
func (v *visit) count(name string) (n int64, ok bool) {
	text := strings.TrimSpace(v.r.PostFormValue(name))
	if text == "" {
		return 0, true
	}
	n, err := strconv.ParseInt(text, 10, 32)
	return n, err == nil && n > 0
}

// listed returns the words of a field that has several, between commas, spaces or lines.
func listed(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' })
}

// list reads the page of a list that a request names.
func list[T any](v *visit, route client.ListRoute[T], q client.Query, args ...any) ([]T, string, error) {
	asked := v.r.URL.Query()
	if q == nil {
		q = client.Query{}
	}
	q["cursor"] = asked.Get("cursor")
	read, err := client.Route[protocol.List[T]]("GET "+route).With(v.ctx, v.api, client.Options{Query: q}, args...)
	return read.Value.Data, nextPage(asked, read.Value.NextCursor), err
}

// nextPage returns the address of the same page behind a cursor, "" without one.
func nextPage(q url.Values, cursor *string) string {
	if cursor == nil {
		return ""
	}
	q.Set("cursor", *cursor)
	return "?" + q.Encode()
}

// fill puts what a list has into the rows of a table.
func fill[T any](v *visit, t *table, route client.ListRoute[T], row func(*T) []cell, args ...any) error {
	found, next, err := list(v, route, client.Query{"limit": 50}, args...)
	for i := range found {
		t.Rows = append(t.Rows, row(&found[i]))
	}
	t.Next = next
	return err
}

// table shows a table.
func (v *visit) table(section string, t *table) error {
	return v.show(section, t.Title, "table.html", t)
}
