package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// everyRoute is the name of the part that attacks with every route that reads.
const everyRoute = "every route that reads"

// request is what clients send at once: half of them read the answers of a GET, half do not.
type request struct {
	Method, Path string
	Body         json.RawMessage `json:",omitempty"`
}

const clientsOfRoute = 100

// attackOf returns the attack whose name is a request as JSON, if it is one.
func attackOf(name string) (a attack, ok bool) {
	var r request
	if json.Unmarshal([]byte(name), &r) != nil {
		return a, false
	}
	turn := make(chan bool, clientsOfRoute)
	for n := range clientsOfRoute {
		turn <- n%2 == 0 || r.Method != http.MethodGet
	}
	return attack{name, clientsOfRoute, nil, func(ctx context.Context, c client, key string) (int, error) {
		reads := <-turn
		defer func() { turn <- reads }()
		if reads {
			return c.ask(ctx, key, r.Method, r.Path, r.Body)
		}
		return c.unread(ctx, key, r.Path)
	}}, true
}

// operation is what a generator needs of the API's description.
type operation struct {
	Parameters []parameter           `json:"parameters"`
	Security   []map[string][]string `json:"security"`
}

type parameter struct {
	Ref      string `json:"$ref"`
	Name     string `json:"name"`
	In       string `json:"in"`
	Required bool   `json:"required"`
	Schema   schema `json:"schema"`
}

type schema struct {
	Ref     string `json:"$ref"`
	Type    any    `json:"type"` // a name or several
	Enum    []any  `json:"enum"`
	Maximum *int64 `json:"maximum"`
	Minimum *int64 `json:"minimum"`
}

// nameOf returns the last part of a reference.
func nameOf(ref string) string { return ref[strings.LastIndex(ref, "/")+1:] }

// asked are the bodies of the routes that read although they are no GET.
var asked = map[string]string{
	"POST /v1/sessions/{id}/preview":      `{"from":"log"}`,
	"POST /v1/sessions/{id}/tools/{tool}": `{"arguments":{"pattern":"nothing has this","ref":"m1-1000","regexp":true}}`,
	"POST /v1/policy/check":               `{"trigger":0.5}`,
	"POST /v1/tools/names":                `{"format":"openai-chat","names":["read"]}`,
	"POST /mcp": `{"jsonrpc":"2.0","id":1,"method":"tools/call",
		"params":{"name":"get_context","arguments":{}}}`,
}

// shown are values of parameters that a schema does not name: the worst that are known, or what there is.
var shown = map[string][]string{
	"id": {"long"}, "ref": {"m1-400"}, "n": {"1"}, "tool": {"grep_results"}, "session": {"long"},
	"pattern": {"nothing has this", "(a+)+b"}, "q": {"view", "view or large or agent"},
	"refs": {"m1-1000"}, "to": {"0"},
	"as_of_seq": {"500"}, "metadata": {`{"a":"b"}`}, "as": {"session"},
}

// absent are routes of what the attacker's session is not. Those of a parameter that shown does not name have none of
// their things, either; every other route must answer.
var absent = []string{"GET /v1/sessions/{id}/archive", "GET /v1/sessions/{id}/hold"}

// late are parameters that make a request wait: its time is no work.
var late = []string{"wait", "cursor", "min_seq"}

// requests returns the worst request of each route that reads, as far as trying its parameters one by one finds it, and
// the routes that had no answer.
func (s *server) requests() (found []request, silent []string, err error) {
	var d struct {
		Paths      map[string]map[string]json.RawMessage
		Components struct {
			Parameters map[string]parameter
			Schemas    map[string]schema
		}
	}
	body, err := s.get("/openapi.json")
	if err == nil {
		err = json.Unmarshal(body, &d)
	}
	for path, methods := range d.Paths {
		var ofAll []parameter
		if raw, ok := methods["parameters"]; ok {
			err = errors.Join(err, json.Unmarshal(raw, &ofAll))
		}
		for method, raw := range methods {
			name := strings.ToUpper(method) + " " + path
			body, isAsked := asked[name]
			var op operation
			if method != "get" && !isAsked || json.Unmarshal(raw, &op) != nil || !ofTenants(op) {
				continue
			}
			op.Parameters = append(op.Parameters, ofAll...)
			for i := range op.Parameters {
				p := &op.Parameters[i]
				if p.Ref != "" {
					*p = d.Components.Parameters[nameOf(p.Ref)]
				}
				if p.Schema.Ref != "" {
					p.Schema = d.Components.Schemas[nameOf(p.Schema.Ref)]
				}
			}
			r := request{strings.ToUpper(method), path, json.RawMessage(body)}
			if r, ok := s.worst(r, op.Parameters); ok {
				found = append(found, r)
			} else {
				silent = append(silent, name)
			}
		}
	}
	slices.SortFunc(found, func(a, b request) int { return strings.Compare(a.Path+a.Method, b.Path+b.Method) })
	slices.Sort(silent)
	return found, silent, err
}

func ofTenants(op operation) bool {
	return slices.ContainsFunc(op.Security, func(s map[string][]string) bool { _, ok := s["key"]; return ok })
}

// worst adds those values of parameters that make an answer later.
func (s *server) worst(r request, parameters []parameter) (request, bool) {
	query := url.Values{}
	for _, p := range parameters {
		if p.In == "path" {
			r.Path = strings.Replace(r.Path, "{"+p.Name+"}", first(shown[p.Name]), 1)
		}
		if values := valuesOf(p); p.In == "query" && p.Required && len(values) > 0 {
			query.Set(p.Name, values[0])
		}
	}
	path := r.Path
	at := func() request {
		r.Path = path
		if len(query) > 0 {
			r.Path += "?" + query.Encode()
		}
		return r
	}
	slowest, ok := s.takes(at())
	for _, p := range parameters {
		for _, value := range valuesOf(p) {
			if before := query.Get(p.Name); p.In == "query" && !slices.Contains(late, p.Name) {
				query.Set(p.Name, value)
				took, answered := s.takes(at())
				if answered && (!ok || took > slowest*11/10) {
					slowest, ok = took, true
				} else if query.Del(p.Name); before != "" {
					query.Set(p.Name, before)
				}
			}
		}
	}
	return at(), ok
}

func first(values []string) string {
	if len(values) == 0 {
		return "0198f0c1-7c1e-7000-8000-000000000001" // of nothing
	}
	return values[0]
}

func valuesOf(p parameter) (values []string) {
	for _, value := range p.Schema.Enum {
		values = append(values, fmt.Sprint(value))
	}
	for _, bound := range []*int64{p.Schema.Maximum, p.Schema.Minimum} {
		if bound != nil {
			values = append(values, fmt.Sprint(*bound))
		}
	}
	if p.Schema.Type == "boolean" {
		values = append(values, "true")
	}
	return append(values, shown[p.Name]...)
}

// takes returns the shorter of two times that a request takes, and reports whether it was answered.
func (s *server) takes(r request) (shortest time.Duration, ok bool) {
	for range 2 {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		began := time.Now()
		status, err := s.ask(ctx, s.attacker, r.Method, r.Path, r.Body)
		took := time.Since(began)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) || status >= http.StatusMultipleChoices {
			return 0, false
		}
		if !ok || took < shortest {
			shortest, ok = took, true
		}
	}
	return shortest, ok
}

// measureRoutes attacks with the worst request of every route that reads, and prints what it found.
func (o options) measureRoutes(s *server) error {
	if _, err := longSession(s); err != nil {
		return err
	}
	if err := s.must(s.attacker, "POST", "/v1/sessions/long/compact?wait=60", ""); err != nil {
		return err
	}
	found, silent, err := s.requests()
	if err != nil {
		return err
	}
	unfair := []string{}
	if strings.HasPrefix(o.only, "/") {
		found = slices.DeleteFunc(found, func(r request) bool { return !strings.Contains(r.Path, o.only) })
	}
	for _, r := range found {
		name, err := json.Marshal(r)
		if err != nil {
			return err
		}
		ratio := 0.0
		for _, o.rounds = range []int{1, 3} { // again where one round says that it is unfair
			if ratio, err = o.measure(s, &attack{name: string(name)}); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if ratio <= worst {
				break
			}
		}
		if ratio > worst {
			unfair = append(unfair, string(name))
		}
	}
	fmt.Printf("%d routes, %d above %.0f: %s\nwithout an answer that could be asked for: %s\n", len(found), len(unfair),
		worst, strings.Join(unfair, " "), strings.Join(silent, ", "))
	for _, route := range silent {
		if !slices.Contains(absent, route) && isShown(route) {
			return fmt.Errorf("%s has no answer: it was not measured", route)
		}
	}
	if len(unfair) > 0 {
		return errUnfair
	}
	return nil
}

// isShown reports whether shown has a value for every parameter of a path.
func isShown(path string) bool {
	for _, part := range strings.Split(path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok && shown[strings.TrimSuffix(name, "}")] == nil {
			return false
		}
	}
	return true
}
