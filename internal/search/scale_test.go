package search_test

import (
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/jobs"
)

var searchSessions = flag.Int("search.sessions", 500, "sessions among which TestASearchFindsAHundredPlantedTexts searches")

// fillSearch makes sessions of another hundred thousand words, with two messages each, for the worker to index.
func (w *world) fillSearch(n int) {
	w.Helper()
	w.Exec(`
		INSERT INTO sessions (tenant_id, key, id, format, window_tokens, policy_id, last_seq, last_append_at, created_at)
		SELECT s.tenant_id, md5('filled' || i)::uuid, 'filled' || i, s.format, s.window_tokens, s.policy_id, 2, now(),
		       now() - interval '1 hour'
		  FROM generate_series(1, ` + strconv.Itoa(n) + `) i, (SELECT * FROM sessions LIMIT 1) s;

		INSERT INTO messages (tenant_id, session_key, seq, role, format, tokens, starts_unit, body, shape)
		SELECT s.tenant_id, s.key, seq, 'user', 1, 60, true,
		       convert_to('{"role":"user","content":"' || (
		           SELECT string_agg('w' || ((hashtext(s.id || seq) & 1048575) * k % 100003), ' ') FROM generate_series(1, 60) k
		       ) || ' error of the tool"}', 'UTF8'), 'x'
		  FROM sessions s, generate_series(1, 2) seq
		 WHERE s.id LIKE 'filled%';

		INSERT INTO search_sessions (tenant_id, session_key, due_since)
		SELECT tenant_id, key, now()
		  FROM sessions
		 WHERE id LIKE 'filled%'`) // one transaction: the sweep would find them itself
}

// TestASearchFindsAHundredPlantedTexts plants texts through the API, has the worker index them, and looks for each by a
// word that only it has, and one that every session has. With -search.sessions=200000 it measures what a large tenant
// would see.
func TestASearchFindsAHundredPlantedTexts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Work(jobs.Config{})
	w.Must(http.StatusCreated, "PUT", "/v1/sessions/first", "")
	w.Must(http.StatusCreated, "POST", "/v1/sessions/first/messages", batch("openai-chat", user("hello")))
	w.fillSearch(*searchSessions)
	const planted = 100
	for i := range planted {
		path := fmt.Sprint("/v1/sessions/planted", i)
		w.Must(http.StatusCreated, "PUT", path, "")
		w.Must(http.StatusCreated, "POST", path+"/messages", batch("openai-chat", user("hello"), user(fmt.Sprintf("the canary%d is an error of the tool", i))))
	}
	w.indexed()
	w.Exec(`VACUUM ANALYZE`)
	var took []time.Duration
	for i := range planted {
		began := time.Now()
		found := w.search(fmt.Sprintf("canary%d error tool", i))
		took = append(took, time.Since(began))
		if len(found) != 1 || found[0] != fmt.Sprintf("planted%d:2", i) {
			t.Fatalf("text %d is found in %v", i, found)
		}
	}
	slices.Sort(took)
	began := time.Now()
	common := w.searched("error tool").Covers
	t.Logf("%d sessions: median %v, slowest %v; a word that all have: %d ranked in %v", *searchSessions, took[planted/2], took[planted-1],
		common.Ranked, time.Since(began))
	for query, want := range map[string]int{`"tool error"`: 0, `"error of the tool"`: 20, `"the tool" -error`: 0, `"tool error" or canary1`: 1} {
		began := time.Now()
		found := w.searched(query)
		t.Logf("%s: %d ranked in %v", query, found.Covers.Ranked, time.Since(began))
		if len(found.Data) != want {
			t.Errorf("%s finds %d passages, want %d", query, len(found.Data), want)
		}
	}
	w.Until("the statistics say that the searches have used the index", func() bool {
		w.search("canary1") // the end of a transaction sends them
		return w.Count(`SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'search_blocks_words'`) >= planted
	})
	if *searchSessions > 10_000 && took[planted-1] > 200*time.Millisecond {
		t.Errorf("the slowest took %v", took[planted-1])
	}
}
