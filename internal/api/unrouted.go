package api

import (
	"fmt"
	"strings"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/spelling"
)

// otherMethods says which methods a route has, which Echo has written into the header Allow. OPTIONS, which Echo adds,
// is none of them: no page of another origin may use the API.
func otherMethods(req *request.Request) string {
	var methods []string
	for _, method := range strings.Split(req.W.Header().Get("Allow"), ", ") {
		if method != "OPTIONS" {
			methods = append(methods, method)
		}
	}
	allowed := strings.Join(methods, ", ")
	req.W.Header().Set("Allow", allowed)
	return fmt.Sprintf("this route has no %s: it has %s", spelling.Shorten(req.R.Method), allowed)
}

// nearestRoute returns the route whose fixed segments are most like those of a path, as a part of a sentence; "" if
// none is like it.
func (f *front) nearestRoute(path string) string {
	given := segments(path)
	if len(given) > maxSegments {
		return ""
	}
	best, name := len(path), ""
	for _, route := range f.table {
		n, alike := unlike(given, segments(route.Path))
		if alike && (n < best || n == best && route.Path < name) {
			best, name = n, route.Path
		}
	}
	if name == "" {
		return ""
	}
	return fmt.Sprintf(": did you mean %s?", documented(name))
}

// maxSegments is more than any route has.
const maxSegments = 12

func segments(path string) []string { return strings.Split(strings.Trim(path, "/"), "/") }

// unlike returns by how many characters a path differs from a route in the segments that are not parameters, and
// reports whether it may be meant by it.
func unlike(given, route []string) (n int, alike bool) {
	if len(given) != len(route) {
		return 0, false
	}
	for i, segment := range route {
		if strings.HasPrefix(segment, ":") || segment == given[i] {
			continue
		}
		if _, near := spelling.Closest(given[i], []string{segment}); !near {
			return 0, false
		}
		n += spelling.Distance(given[i], segment)
	}
	return n, true
}

// documented returns a route as the documentation writes it: /v1/sessions/{id}.
func documented(path string) string {
	parts := segments(path)
	for i, segment := range parts {
		if name, ok := strings.CutPrefix(segment, ":"); ok {
			parts[i] = "{" + name + "}"
		}
	}
	return "/" + strings.Join(parts, "/")
}
