package api_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

// TestPagesHaveEveryOldEntryOnceAndInOrder walks lists that grow meanwhile.
func TestPagesHaveEveryOldEntryOnceAndInOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var sessions, refs, runs []string
	made := 0
	create := func() {
		id := fmt.Sprintf("s%03d", made)
		made++
		w.must(http.StatusCreated, "PUT", "/v1/sessions/"+id, "")
		sessions = append([]string{id}, sessions...)
	}
	for range 25 {
		create()
	}
	w.must(http.StatusCreated, "POST", "/v1/sessions/s000/messages", batch("openai-chat", user("x")))
	for seq := range int64(5) {
		refs = append(refs, w.putResults("s000", seq+1, []byte("a"), []byte("b"), []byte("c"))...)
	}
	addRun := func() {
		w.exec(fmt.Sprintf(`INSERT INTO runs (tenant_id, id, session_key, cause, state, job_id, triggered_at)
			SELECT tenant_id, gen_random_uuid(), key, 'manual', 'done', 1, now() + interval '%d s' FROM sessions WHERE id = 's000'`, len(runs)/2)) // two of a time
		runs = append(runs, "")
	}
	for range 12 {
		addRun()
	}
	runs = walk(w, rand.New(rand.NewPCG(0, 0)), "/v1/sessions/s000/runs", "id", func() {})
	if distinct := slices.Compact(slices.Sorted(slices.Values(runs))); len(runs) != 12 || len(distinct) != 12 {
		t.Fatalf("%d runs, %d of them different", len(runs), len(distinct))
	}
	for seed := range uint64(10) {
		random := rand.New(rand.NewPCG(seed, 1))
		want := slices.Clone(sessions)
		if diff := cmp.Diff(want, walk(w, random, "/v1/sessions", "id", create)); diff != "" {
			t.Errorf("sessions, seed %d: %s", seed, diff)
		}
		if diff := cmp.Diff(refs, walk(w, random, "/v1/sessions/s000/results", "ref", func() {})); diff != "" {
			t.Errorf("results, seed %d: %s", seed, diff)
		}
		if diff := cmp.Diff(runs, walk(w, random, "/v1/sessions/s000/runs", "id", func() {})); diff != "" {
			t.Errorf("runs, seed %d: %s", seed, diff)
		}
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
