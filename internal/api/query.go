package api

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/varve-dev/varve/internal/session"
)

// query is what stands behind the question mark. A parameter that the route does not know is an error, as a member of
// a body is: a misspelt max_tokens must not become none.
type query struct {
	values url.Values
	d      document
}

func (x *exchange) query(known ...string) *query { return x.parseQuery().check(known) }

func (x *exchange) parseQuery() *query {
	q := &query{}
	if x.r.URL.RawQuery == "" {
		return q
	}
	values, err := url.ParseQuery(x.r.URL.RawQuery)
	if err != nil {
		q.d.wrong("", invalidRequest, "the query cannot be read: %s", err)
		return q
	}
	q.values = values
	return q
}

// check finds what the route does not know and what is there more than once.
func (q *query) check(known []string) *query {
	for name, given := range q.values {
		if !slices.Contains(known, name) {
			q.d.wrong(shorten(name), unknownField, "the parameter is not known here%s", suggestion(name, known))
		}
		if len(given) > 1 {
			q.d.wrong(shorten(name), invalidRequest, "the parameter is there %d times", len(given))
		}
	}
	slices.SortFunc(q.d.problems, func(a, b session.Problem) int { return strings.Compare(a.Pointer, b.Pointer) })
	return q
}

func (q *query) err() error { return q.d.err() }

// text is a parameter, or otherwise.
func (q *query) text(name, otherwise string) string {
	if given := q.values[name]; len(given) > 0 {
		return given[0]
	}
	return otherwise
}

// integer is a parameter that is a whole number from least to most, or otherwise.
func (q *query) integer(name string, least, most, otherwise int64) int64 {
	text := q.text(name, "")
	if !q.values.Has(name) {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		q.d.wrong(name, invalidRequest, "a whole number from %d to %d is needed, this is %q", least, most, shorten(text))
	}
	return n
}

// choice is a parameter that is one of some words, the first one if it is not there.
func (q *query) choice(name string, words ...string) string {
	text := q.text(name, words[0])
	if !slices.Contains(words, text) {
		if words[0] == "" { // what leaving the parameter out says
			words = words[1:]
		}
		q.d.wrong(name, invalidRequest, "%s is needed, this is %q", strings.Join(words, " or "), shorten(text))
	}
	return text
}
