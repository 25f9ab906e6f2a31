package api_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// listPage is a page of a list of anything that has this one of its members.
type listPage struct {
	Object     string
	Data       []map[string]any
	HasMore    bool    `json:"has_more"`
	NextCursor *string `json:"next_cursor"`
}

// walk reads a list by pages of random sizes, and calls between after each.
func walk(w *world, random *rand.Rand, path, member string, between func()) (found []string) {
	w.Helper()
	cursor := ""
	for {
		page := decoded[listPage](w.must(http.StatusOK, "GET", fmt.Sprintf("%s?limit=%d%s", path, 1+random.IntN(7), cursor), ""))
		if page.Object != "list" || page.HasMore != (page.NextCursor != nil) {
			w.Fatalf("%+v", page)
		}
		for _, entry := range page.Data {
			found = append(found, fmt.Sprint(entry[member]))
		}
		if !page.HasMore {
			return found
		}
		cursor = "&cursor=" + url.QueryEscape(*page.NextCursor)
		between()
	}
}

func TestACursorBelongsToItsList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, stranger := w.newTenant("stranger")
	for _, id := range []string{"a", "b", "c"} {
		w.must(http.StatusCreated, "PUT", "/v1/sessions/"+id, "")
	}
	page := decoded[listPage](w.must(http.StatusOK, "GET", "/v1/sessions?limit=1", ""))
	cursor := url.QueryEscape(*page.NextCursor)
	w.must(http.StatusOK, "GET", "/v1/sessions?limit=1&cursor="+cursor, "")
	for _, path := range []string{"/v1/sessions/a/runs", "/v1/sessions/a/results"} {
		p := decoded[problem](w.must(http.StatusBadRequest, "GET", path+"?cursor="+cursor, ""))
		if p.Code != "invalid_cursor" {
			t.Errorf("%s: %+v", path, p)
		}
	}
	w.must(http.StatusBadRequest, "GET", "/v1/sessions?cursor="+cursor, "", "Authorization", "Bearer "+stranger)
	for i := range cursor {
		for _, c := range []byte("AQgwB_-") {
			if c == cursor[i] {
				continue
			}
			w.must(http.StatusBadRequest, "GET", "/v1/sessions?cursor="+cursor[:i]+string(c)+cursor[i+1:], "")
		}
	}
	for _, wrong := range []string{"", "x", cursor[:9] + "%0A" + cursor[9:], cursor[1:], cursor + "AA", strings.Repeat("A", len(cursor))} {
		w.must(http.StatusBadRequest, "GET", "/v1/sessions?cursor="+wrong, "")
	}
	for _, wrong := range []string{"limit=0", "limit=101", "limit=", "limit=x", "limit=1&limit=2", "limit=-1", "a=%zz"} {
		w.must(http.StatusUnprocessableEntity, "GET", "/v1/sessions?"+wrong, "")
	}
	w.must(http.StatusBadRequest, "GET", "/v1/sessions?limits=1", "")
	for _, listed := range page.Data {
		if _, ok := listed["policy"]; ok || listed["model"] == nil {
			t.Errorf("a session in a list has a policy, or lacks another member: %v", listed)
		}
	}
}
