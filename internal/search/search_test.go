package search_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/api/apitest"
	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/features"
	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/search"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tier"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

type world struct{ *apitest.World }

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{apitest.New(t, features.All()...)} // one finds uploaded results
}

func batch(format string, messages ...string) string {
	return `{"format":"` + format + `","messages":[` + strings.Join(messages, ",") + `]}`
}

func user(text string) string {
	quoted, _ := json.Marshal(text)
	return `{"role":"user","content":` + string(quoted) + `}`
}

// indexed waits until the worker has indexed what was appended.
func (w *world) indexed() {
	w.Helper()
	w.Server.Close(w.Context()) // the ledger notes what its requests have changed
	w.Until("everything is indexed", func() bool {
		return w.Count(`
			SELECT count(*)
			  FROM sessions s
			  LEFT JOIN search_sessions i ON i.session_key = s.key
			 WHERE s.last_seq > coalesce(i.indexed_seq, 0) OR i.due_since IS NOT NULL`) == 0
	})
}

// search returns what a search finds, as session and seq.
func (w *world) search(query string) (found []string) {
	w.Helper()
	for _, hit := range w.searched(query).Data {
		found = append(found, fmt.Sprintf("%s:%d", hit.Session, hit.Seq))
	}
	return found
}

func (w *world) searched(query string) search.Answer {
	w.Helper()
	return apitest.Decoded[search.Answer](w, w.Must(http.StatusOK, "GET", "/v1/search?q="+url.QueryEscape(query), ""))
}

// finds requires what searches find.
func (w *world) finds(want map[string]string) {
	w.Helper()
	for query, seqs := range want {
		if got := strings.Join(w.search(query), " "); got != seqs {
			w.Errorf("%q finds %q, want %q", query, got, seqs)
		}
	}
}

// set has everything indexed by other rules, and waits for it.
func (w *world) set(settings string) {
	w.Helper()
	w.Must(http.StatusOK, "PUT", "/v1/search/settings", settings)
	tasks, err := w.Workers.Tasks(w.Context(), postgres.TaskPolicy, 10)
	if err != nil || len(tasks) != 1 {
		w.Fatal(tasks, err)
	}
	if _, _, err := w.Workers.AuditTenant(w.Context(), tasks[0], 100); err != nil { // as the sweep does
		w.Fatal(err)
	}
	w.indexed()
}

func TestASearchFindsWhatWasSaidCalledAndReturned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Work(jobs.Config{})
	for _, format := range []string{"openai-chat", "anthropic"} {
		path := "/v1/sessions/" + format
		w.Must(http.StatusCreated, "PUT", path, "")
		line := strings.Repeat("line 7 of the file\\n", 5)
		messages := []string{
			user("question 7"),
			`{"role":"assistant","content":"I look","tool_calls":[{"id":"c","type":"function","function":{"name":"Read","arguments":"{\"path\":\"f70\"}"}}]}`,
			`{"role":"tool","tool_call_id":"c","content":"` + line + `"}`,
		}
		if format == "anthropic" {
			messages = []string{
				user("question 7"),
				`{"role":"assistant","content":[{"type":"text","text":"I look"},{"type":"tool_use","id":"c","name":"Read","input":{"path":"f70"}}]}`,
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"` + line + `"}]}`,
			}
		}
		w.Must(http.StatusCreated, "POST", path+"/messages", batch(format, append([]string{user("the " + format + " canary")}, messages...)...))
	}
	if w.searched("canary").Covers.Behind == 0 {
		w.Server.Close(t.Context())
	}
	w.indexed()
	w.finds(map[string]string{
		"canary anthropic": "anthropic:1", `"canary chat"`: "", `"chat canary"`: "openai-chat:1",
		"f70 anthropic": "", "question anthropic": "", "nothing": "", "canary -anthropic": "openai-chat:1",
	})
	w.finds(map[string]string{"line": ""})
	w.set(`{"language":"simple","results":true}`)
	kinds := map[string]string{"f70": "call", "line": "result", "question": "text"}
	for query, kind := range kinds {
		answer := w.searched(query)
		if len(answer.Data) != 2 || !answer.Covers.RankedAll || answer.Covers.Behind != 0 || answer.Covers.Through.IsZero() {
			t.Errorf("%s: %+v", query, answer)
		}
		for _, hit := range answer.Data {
			text := w.Must(http.StatusOK, "GET", hit.ReadBack, "")
			if hit.Kind != kind || !strings.Contains(hit.Snippet, query) || !strings.Contains(text, query) || hit.Rank <= 0 {
				t.Errorf("%s: %+v, which is %s", query, hit, text)
			}
		}
	}
	_, stranger := w.NewTenant("stranger")
	for _, key := range []string{stranger, ""} {
		got := w.Ask("GET", "/v1/search?q=canary", "", "Authorization", "Bearer "+key)
		if key != "" && len(apitest.Decoded[search.Answer](w, got.Body.String()).Data) != 0 || strings.Contains(got.Body.String(), "anthropic") {
			t.Errorf("%q finds %s", key, got.Body)
		}
	}
}

func TestASearchFindsNothingThatWasRemovedAndAForksMessagesOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Work(jobs.Config{})
	w.Must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	w.Must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user("alpha one"), user("alpha two"), user("alpha three")))
	w.Must(http.StatusCreated, "POST", "/v1/sessions/s/fork", `{"id":"fork","seq":2}`)
	w.Must(http.StatusCreated, "POST", "/v1/sessions/fork/messages", batch("openai-chat", user("alpha four")))
	w.indexed()
	w.finds(map[string]string{"alpha one": "s:1", "alpha three": "s:3", "alpha four": "fork:3"})

	w.Must(http.StatusOK, "PUT", "/v1/sessions/s/messages", batch("openai-chat", user("alpha one"), user("omega")))
	w.indexed()
	w.finds(map[string]string{"alpha three": "", "alpha two": "fork:2", "alpha one": "s:1"})

	w.Must(http.StatusNoContent, "DELETE", "/v1/sessions/s", "")
	w.finds(map[string]string{"alpha one": "fork:1", "omega": ""})
	w.Must(http.StatusNoContent, "DELETE", "/v1/sessions/fork", "")
	if n := w.Count(`SELECT (SELECT count(*) FROM search_blocks) + (SELECT count(*) FROM search_sessions)`); n != 0 {
		t.Errorf("erased sessions have %d rows in the index", n)
	}
}

// TestTheWordsOfATenantAreThoseOfItsLanguage changes the language, and has everything indexed anew.
func TestTheWordsOfATenantAreThoseOfItsLanguage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Work(jobs.Config{})
	w.Must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	w.Must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user("we were migrating the databases")))
	w.indexed()
	w.finds(map[string]string{"databases": "s:1", "migrate database": ""})
	w.Must(http.StatusUnprocessableEntity, "PUT", "/v1/search/settings", `{"language":"klingon"}`)
	w.set(`{"language":"english"}`)
	w.finds(map[string]string{"migrate database": "s:1", "migrating": "s:1"})
	w.Must(http.StatusUnprocessableEntity, "GET", "/v1/search?q=the", "") // a word that English leaves out
	if n := w.Count(`SELECT count(*) FROM search_blocks`); n != 1 {
		t.Errorf("the session has %d passages", n)
	}
	state := apitest.Decoded[search.State](w, w.Must(http.StatusOK, "GET", "/v1/search/settings", ""))
	if state.Language != "english" || state.Behind != 0 {
		t.Errorf("the state is %+v", state)
	}
}

// TestAMessageIsIndexedAsFarAsItMayBe has a message of megabytes, words that are longer than those of PostgreSQL, zero
// bytes, halves of characters and a passage of words that are all different.
func TestAMessageIsIndexedAsFarAsItMayBe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Work(jobs.Config{})
	w.Must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"window_tokens":10000000}`)
	var large strings.Builder
	for i := 0; large.Len() < 3<<20; i++ {
		fmt.Fprintf(&large, "w%x ", i)
	}
	escaped := `{"role":"user","content":"before\u0000after \ud800 half \u0130stanbul ` + strings.Repeat("x", 5000) + ` behind"}`
	w.Must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", escaped, user("first "+large.String()+"last")))
	w.indexed()
	w.finds(map[string]string{"before after": "s:1", "half": "s:1", "behind": "s:1", "first": "s:2", "w1f00": "s:2", "last": ""})
	if state := w.searched("half").Covers; state.InPart != 1 {
		t.Errorf("%d messages are indexed in part", state.InPart)
	}
	for _, q := range []string{"", strings.Repeat("a", 600), "a\x00b", "\xff", "-half", "!!"} {
		w.Must(http.StatusUnprocessableEntity, "GET", "/v1/search?q="+url.QueryEscape(q), "")
	}
}

// TestThePagesOfASearchHaveEveryHitOnce has more blocks than are ranked at a time, sessions that are not indexed on the
// first page and are on the next, and one whose block takes in another meanwhile.
func TestThePagesOfASearchHaveEveryHitOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Work(jobs.Config{})
	const sessions = 40
	for i := range sessions {
		w.Append(fmt.Sprint("s", i), "needle "+strings.Repeat("hay ", i%3))
	}
	w.indexed()
	const fresh = `(SELECT key FROM sessions WHERE id IN ('s1', 's2', 's3'))`
	w.Exec(`DELETE FROM search_blocks WHERE session_key IN ` + fresh)
	w.Exec(`UPDATE search_sessions SET indexed_seq = 0, due_since = now() WHERE session_key IN ` + fresh)
	seen, cursor := map[string]int{}, ""
	for {
		page := apitest.Decoded[search.Answer](w, w.Must(http.StatusOK, "GET", "/v1/search?q=needle&limit=6"+cursor, ""))
		for i, hit := range page.Data {
			if seen[hit.Session]++; seen[hit.Session] > 1 {
				t.Errorf("%s is found again", hit.Session)
			}
			if cursor == "" && i > 0 && hit.Rank > page.Data[i-1].Rank {
				t.Errorf("%+v stands behind %+v", hit, page.Data[i-1])
			}
		}
		if !page.HasMore {
			break
		}
		if cursor == "" {
			w.Append("s39", "hay")
			w.indexed()
		}
		cursor = "&cursor=" + *page.NextCursor
	}
	if len(seen) != sessions {
		t.Errorf("%d of %d are found", len(seen), sessions)
	}
}

// TestWhatIsSaidIsFoundAtOnceAndItsWordsAreIndexedWhenTheSessionRests has a worker that waits for an hour.
func TestWhatIsSaidIsFoundAtOnceAndItsWordsAreIndexedWhenTheSessionRests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Work(jobs.Config{Rest: time.Hour})
	w.Append("s", "the first canary")
	w.Until("it is found", func() bool { return len(w.search("canary")) == 1 })
	for i := range 30 {
		w.Append("s", fmt.Sprintf("canary number%d", i))
		w.finds(map[string]string{fmt.Sprintf("number%d", i): fmt.Sprintf("s:%d", i+2), fmt.Sprintf("number%d first", i): ""})
	}
	if n := w.Count(`SELECT count(*) FROM search_blocks`); n != 0 {
		t.Errorf("the index has %d blocks of a session that does not rest", n)
	}
	if got := w.searched("canary").Covers; got.Behind != 0 || got.Ranked != 0 {
		t.Errorf("it covers %+v", got)
	}
	w.Must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("anthropic",
		`{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"Read","input":{}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"gravel"},{"type":"text","text":"beside a result"}]}`))
	w.finds(map[string]string{"beside": "s:33", "gravel": ""})
	w.Must(http.StatusOK, "PUT", "/v1/sessions/s/messages", batch("openai-chat", user("the first canary"), user("the last canary")))
	w.finds(map[string]string{"canary number7": "", "last canary": "s:35"})
}

// TestASessionOfWhichLittleIsAppendedAtATimeHasFewBlocks has each message indexed by itself.
func TestASessionOfWhichLittleIsAppendedAtATimeHasFewBlocks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Work(jobs.Config{})
	const appends = 12
	for i := range appends {
		w.Append("s", fmt.Sprintf("canary number%d of them", i))
		w.indexed()
	}
	if n := w.Count(`SELECT count(*) FROM search_blocks`); n > 4 {
		t.Errorf("%d messages are in %d blocks", appends, n)
	}
	for i := range appends {
		w.finds(map[string]string{fmt.Sprintf(`"number%d of them"`, i): fmt.Sprintf("s:%d", i+1)})
	}
	w.finds(map[string]string{"number3 number4": "", `"of number3"`: "", "number3 or number4 -canary": "s:4"})
	if n := len(w.search("number3 or number4")); n != 2 {
		t.Errorf("one of two words finds %d messages", n)
	}
}

// TestTheDatabaseSearchesForTheTenantOfTheTransactionAlone asks the function of the index, which row-level security does
// not bind, for what has any words.
func TestTheDatabaseSearchesForTheTenantOfTheTransactionAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Work(jobs.Config{})
	w.Must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	w.Must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user("canary")))
	w.indexed()
	stranger, _ := w.NewTenant("stranger")
	for as, want := range map[uuid.UUID]int{w.Tenant: 1, stranger: 0, uuid.Nil: 0} {
		err := postgres.InTenant(t.Context(), w.Store.Pool(), as, pgx.TxOptions{}, func(tx pgx.Tx) error {
			var found, rows int
			err := tx.QueryRow(t.Context(), `
				SELECT (SELECT count(*) FROM search_candidates($1, 9)), (SELECT count(*) FROM search_blocks)`,
				[]string{"{}"}).Scan(&found, &rows)
			if found != want || rows != want {
				t.Errorf("%s finds %d passages in %d rows, want %d", as, found, rows, want)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestASearchFindsUploadedResults has a text, one that is larger than what is indexed, JSON blocks, and bytes that are
// no text.
func TestASearchFindsUploadedResults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Must(http.StatusCreated, "PUT", "/v1/sessions/s", "{}")
	const uploads = "/v1/sessions/s/results"
	w.Work(jobs.Config{})
	w.Must(http.StatusOK, "PUT", "/v1/search/settings", `{"language":"simple","results":true}`)
	large := "quartz " + strings.Repeat("é", 1<<20) + " obsidian"
	for _, content := range []string{"basalt\n" + strings.Repeat("compiling packages\n", 32_000) + "granite\n", large, "\x00\xff marble", "PNG marble"} {
		kind := ""
		if strings.HasPrefix(content, "PNG") {
			kind = "&media_type=image/png"
		}
		w.Must(http.StatusCreated, "POST", uploads+"?tool=Bash"+kind, content)
	}
	w.Must(http.StatusCreated, "POST", uploads+"?media_type=application/json", `[{"type":"text","text":"over\nslate"}]`)
	w.uploadsIndexed()
	w.finds(map[string]string{"granite": "s:0", "quartz": "s:0", "obsidian": "", "marble": "", "slate": "s:0", "nslate": ""})
	answer := w.searched("granite")
	if answer.Covers.InPart != 1 || answer.Covers.Behind != 0 {
		t.Errorf("it covers %+v", answer.Covers)
	}
	hit := answer.Data[0]
	if !strings.HasPrefix(hit.Ref, "u1-") || hit.Kind != "result" || hit.Tool != "Bash" || !strings.Contains(hit.Snippet, "granite") {
		t.Errorf("the hit is %+v", hit)
	}
	if text := w.Must(http.StatusOK, "GET", hit.ReadBack+"?raw=true", ""); !strings.Contains(text, "granite") {
		t.Errorf("its ref reads %.100q", text)
	}

	// The first message and another language index a session anew.
	w.Must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user("gneiss")))
	w.indexed()
	w.finds(map[string]string{"gneiss": "s:1", "granite": "s:0", "compile packaging": ""})
	w.set(`{"language":"english","results":true}`)
	w.uploadsIndexed()
	w.finds(map[string]string{"basalt compiles": "s:0", "gneiss": "s:1"})
	w.set(`{"language":"english"}`)
	w.finds(map[string]string{"basalt compiles": "", "gneiss": "s:1"})

	w.Must(http.StatusNoContent, "DELETE", "/v1/sessions/s", "")
	w.finds(map[string]string{"granite": "", "quartz": "", "gneiss": ""})
	if n := w.Count(`SELECT count(*) FROM search_blocks`); n != 0 {
		t.Errorf("the erased session has %d passages", n)
	}
}

// uploadsIndexed waits until the worker has looked at what was uploaded, too.
func (w *world) uploadsIndexed() {
	w.Helper()
	w.indexed()
	w.Until("every upload was looked at", func() bool {
		return w.Count(`
			SELECT count(*)
			  FROM uploads u
			  LEFT JOIN search_settings l ON l.tenant_id = u.tenant_id
			 WHERE u.searched_in IS DISTINCT FROM l.language || ' results'`)+
			w.Count(`SELECT count(*) FROM search_sessions WHERE due_since IS NOT NULL`) == 0
	})
}

// TestASearchSaysWhatIsColdAndFindsWhatIsBack freezes sessions and uses one of them.
func TestASearchSaysWhatIsColdAndFindsWhatIsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Work(jobs.Config{})
	w.Append("a", "hello")
	w.Append("b", "hello")
	w.indexed()
	w.Until("the sessions are cold", func() bool {
		if err := w.Store.CountUsage(t.Context(), w.Tenant, []session.Reading{{Session: "a"}, {Session: "b"}}); err != nil {
			t.Fatal(err)
		}
		if _, err := tier.FreezeSleeping(t.Context(), w.Workers, w.Tenant, 0, 100); err != nil {
			t.Fatal(err)
		}
		return w.Count(`SELECT count(*) FROM sessions s JOIN session_archives a ON a.session_key = s.key WHERE NOT s.archived AND a.state = 'archived'`) == 2
	})
	if got := w.searched("hello"); got.Covers.Cold != 2 || len(got.Data) != 0 {
		t.Errorf("a search says that it covers %+v", got.Covers)
	}
	w.Append("a", "more")
	w.Until("the search finds what is back", func() bool {
		got := w.searched("more")
		return got.Covers.Cold == 1 && len(got.Data) == 1
	})
}

// TestTheSearchesOfTheCommandLine prints what is found.
func TestTheSearchesOfTheCommandLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Work(jobs.Config{})
	w.Append("s", "two\nwords")
	w.indexed()
	server := httptest.NewServer(w.Server)
	t.Cleanup(server.Close)
	base, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	var cli struct{ kong.Plugins }
	cli.Plugins = kong.Plugins{search.Feature().Command}
	parsed, err := kong.Must(&cli).Parse([]string{"search", "two words", "--limit", "5"})
	if err != nil {
		t.Fatal(err)
	}
	parsed.BindTo(t.Context(), (*context.Context)(nil))
	if err := parsed.Run(&command.Console{API: client.New(base, w.Key, io.Discard), Out: &out}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), `s        1    m1   text`) || !strings.Contains(out.String(), `"two\nwords"`) {
		t.Error(out.String())
	}
}
