package request

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/spelling"
)

// Query is the query of a request. A parameter that the route does not know is an error, as a member of a body is: a
// misspelt max_tokens must not be ignored.
type Query struct {
	Document // its problems
	Values   url.Values
	read     bool
}

// Query returns the query. When it is read, its parameters must be among known, and come once.
func (req *Request) Query(known ...string) *Query {
	q := &req.query
	if q.read || req.R.URL.RawQuery == "" {
		return q
	}
	q.read = true
	values, err := url.ParseQuery(req.R.URL.RawQuery)
	if err != nil {
		q.Wrong("", InvalidRequest, "the query cannot be read: %s", err)
		return q
	}
	if req.OpenAI { // its clients ask for what is stored anyway, with any request
		delete(values, "include")
		delete(values, "include[]")
	}
	q.Values = values
	for name, given := range values {
		if !slices.Contains(known, name) {
			q.Wrong(spelling.Shorten(name), UnknownField, "the parameter is not known here%s", spelling.Hint(name,
				known))
		}
		if len(given) > 1 {
			q.Wrong(spelling.Shorten(name), InvalidRequest, "the parameter must come once, not %d times", len(given))
		}
	}
	slices.SortFunc(q.Problems, func(a, b session.Problem) int { return strings.Compare(a.Pointer, b.Pointer) })
	return q
}

// Text returns a parameter, or the fallback if it is not there.
func (q *Query) Text(name, fallback string) string {
	if given := q.Values[name]; len(given) > 0 {
		return given[0]
	}
	return fallback
}

// Integer returns a parameter that must be a whole number from lowest to highest, or the fallback if it is not there.
func (q *Query) Integer(name string, lowest, highest, fallback int64) int64 {
	text := q.Text(name, "")
	if !q.Values.Has(name) {
		return fallback
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < lowest || n > highest {
		q.Wrong(name, InvalidRequest, "must be a whole number from %d to %d, not %q", lowest, highest,
			spelling.Shorten(text))
	}
	return n
}

// Time returns a parameter that must be a time in the form of RFC 3339, or the fallback if it is not there.
func (q *Query) Time(name string, fallback time.Time) time.Time {
	if !q.Values.Has(name) {
		return fallback
	}
	text := q.Text(name, "")
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || len(text) > maxTimestampBytes {
		q.Wrong(name, InvalidRequest, "must be a time such as 2026-01-31T12:00:00Z, not %q", spelling.Shorten(text))
	}
	return at
}

// Day returns a parameter that is a day in UTC, or a time of one.
func (q *Query) Day(name string, fallback time.Time) time.Time {
	if day, err := time.Parse(time.DateOnly, q.Text(name, "")); err == nil {
		return day
	}
	return q.Time(name, fallback)
}

// Seconds returns a parameter that counts seconds, from 0 to limit; 0 if it is not there.
func (q *Query) Seconds(name string, limit int64) time.Duration {
	return time.Duration(q.Integer(name, 0, limit, 0)) * time.Second
}

// Choice returns a parameter that must be one of some words, or the first word if it is not there.
func (q *Query) Choice(name string, words ...string) string {
	text := q.Text(name, words[0])
	if !slices.Contains(words, text) {
		if words[0] == "" { // the parameter is left out
			words = words[1:]
		}
		q.Wrong(name, InvalidRequest, "must be %s, not %q", strings.Join(words, " or "), spelling.Shorten(text))
	}
	return text
}

// Flag returns a parameter that must be true or false; false if it is not there.
func (q *Query) Flag(name string) bool { return q.Choice(name, "false", "true") == "true" }
