package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/protocol"
)

// askBusy searches while two other searches of the tenant wait for the database.
func (w *world) askBusy() answer {
	w.Helper()
	ctx := w.Context()
	conn, err := pgx.Connect(ctx, w.dsn)
	if err != nil {
		w.Fatal(err)
	}
	defer conn.Close(ctx)
	tx, err := conn.Begin(ctx)
	if err == nil {
		_, err = tx.Exec(ctx, `LOCK TABLE messages`)
	}
	if err != nil {
		w.Fatal(err)
	}
	var others sync.WaitGroup
	for range 2 {
		others.Go(func() {
			r := httptest.NewRequestWithContext(ctx, "GET", "/v1/sessions/s/search?q=x", nil)
			r.Header.Set("Authorization", "Bearer "+w.key)
			w.server.ServeHTTP(httptest.NewRecorder(), r)
		})
	}
	for waiting := 0; waiting < 2; {
		err := tx.QueryRow(ctx, `SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'messages'::regclass`).Scan(&waiting)
		if err != nil {
			w.Fatal(err)
		}
	}
	got := w.ask("GET", "/v1/sessions/s/search?q=x", "")
	if err := tx.Rollback(ctx); err != nil {
		w.Fatal(err)
	}
	others.Wait()
	if got.Header().Get("Retry-After") == "" {
		w.Error("busy without Retry-After")
	}
	w.must(http.StatusOK, "GET", "/v1/sessions/s/search?q=x", "") // those before have ended
	return got
}

// manyLines returns a text of many lines.
func manyLines(lines int) []byte {
	var text bytes.Buffer
	for i := range lines {
		fmt.Fprintf(&text, "%06d some words of a log <&> é, and their number %d\n", i+1, i*7919%10007)
	}
	return text.Bytes()
}

// readAll follows the pages from a path to the end.
func (w *world) readAll(path string) string {
	w.Helper()
	var read strings.Builder
	for next := ""; ; {
		page := decoded[protocol.LinePage](w.must(http.StatusOK, "GET", path+next, ""))
		read.WriteString(page.Content)
		if page.NextOffset == nil {
			return read.String()
		}
		next = fmt.Sprintf("&offset=%d&char_offset=%d", *page.NextOffset, page.NextCharOffset)
	}
}

// TestADamagedChunkIsNeverSent damages one chunk of many, and then the first.
func TestADamagedChunkIsNeverSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user("x")))
	body := manyLines(60_000)
	ref := w.putResult("s", body)
	path := "/v1/sessions/s/results/" + ref
	w.exec(`UPDATE result_chunks SET body = 'x' WHERE n = 20`)
	server := httptest.NewServer(w.server)
	t.Cleanup(server.Close)
	fetch := func(path, bytes string) (int, http.Header, []byte, error) {
		r, err := http.NewRequestWithContext(t.Context(), "GET", server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+w.key)
		if bytes != "" {
			r.Header.Set("Range", "bytes="+bytes)
		}
		res, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		return res.StatusCode, res.Header, text, err
	}
	status, _, text, err := fetch(path+"?raw=true", "")
	if status != http.StatusOK || err == nil || !bytes.HasPrefix(body, text) || len(text) < 1<<20 {
		t.Errorf("a chunk in the middle: %d, %d bytes, %v", status, len(text), err)
	}
	if status, _, text, err = fetch(path+"?raw=true", "0-99"); status != http.StatusPartialContent || err != nil || !bytes.Equal(text, body[:100]) {
		t.Errorf("a range before it: %d, %d bytes, %v", status, len(text), err)
	}
	for _, ask := range [][2]string{{path + "?raw=true", "2700000-2700009"}, {path + "?offset=50000", ""}, {path + "/grep?pattern=absent", ""}} {
		status, header, text, err := fetch(ask[0], ask[1])
		if ask[1] == "" && strings.Contains(ask[0], "offset") {
			status, header, text, err = fetch(path+"?offset="+fmt.Sprint(lineIn(body, 20)), "")
		}
		if status != http.StatusInternalServerError || err != nil || !strings.Contains(string(text), `"damaged"`) || header.Get("X-Content-Sha256") != "" || header.Get("Repr-Digest") != "" {
			t.Errorf("%s: %d %v %s, %v", ask, status, header, text, err)
		}
	}
	if _, answers := w.grep("/v1/sessions/s/results/grep?pattern=absent"); !strings.Contains(answers, ref+" is damaged") {
		t.Errorf("all results: %s", answers)
	}
	small := w.putResults("s", 1, nil, bytes.Repeat([]byte("a small one\n"), 30_000))[1]
	w.exec(`UPDATE result_chunks SET body = 'x' WHERE n = 2`)
	if status, _, text, _ := fetch("/v1/sessions/s/results/"+small+"?raw=true", ""); status != http.StatusInternalServerError {
		t.Errorf("a small result was sent before it was checked: %d, %d bytes", status, len(text))
	}
}

// grep follows a grep to its end, which takes more than one call where something else has the processor. It returns the
// refs of the results that were found, and all answers.
func (w *world) grep(path string) (found []string, answers string) {
	w.Helper()
	for cursor := ""; ; {
		got := w.must(http.StatusOK, "GET", path+cursor, "")
		answers += got.Body.String()
		matches := decoded[protocol.Matches](got)
		found = append(found, matches.Found()...)
		if matches.NextCursor == nil {
			return found, answers
		}
		cursor = "&cursor=" + url.QueryEscape(*matches.NextCursor)
	}
}

// lineIn returns a line that lies in chunk n of a text whose lines are short.
func lineIn(text []byte, n int) int { return bytes.Count(text[:n*(128<<10)], []byte{'\n'}) + 2 }

func TestGrepsGoOnWhereTheyStopped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user("x"), readCall, readResult))
	refs := w.putResults("s", 1, manyLines(5000), []byte("nothing"), []byte(`[{"type":"text","text":"a \"quoted\" word 77\nand more"},{"type":"image","data":"x"}]`))
	w.exec(`UPDATE results SET media_type = 'application/json' WHERE part = 2`)
	var found []string
	cursor := ""
	for {
		got := decoded[protocol.Matches](w.must(http.StatusOK, "GET", "/v1/sessions/s/results/grep?pattern=number+77&max_matches=7&before=1"+cursor, ""))
		for _, g := range got.Groups {
			for _, m := range g.Matches {
				found = append(found, fmt.Sprint(g.Ref, ":", m.Line))
			}
		}
		if got.NextCursor == nil {
			break
		}
		cursor = "&cursor=" + url.QueryEscape(*got.NextCursor)
	}
	want := []string{}
	for i, line := range strings.Split(string(manyLines(5000)), "\n") {
		if strings.Contains(line, "number 77") {
			want = append(want, fmt.Sprint(refs[0], ":", i+1))
		}
	}
	if !slices.Equal(found, want) || len(want) < 20 {
		t.Errorf("found %v, want %v", found, want)
	}
	grep := func(query string) protocol.Matches {
		t.Helper()
		return decoded[protocol.Matches](w.must(http.StatusOK, "GET", "/v1/sessions/s/results/"+query, ""))
	}
	if got := grep("grep?refs=m1-3," + refs[2] + "&pattern=" + url.QueryEscape(`"quoted" word`) + "&text=true"); got.Matches != 1 || got.Groups[0].Ref != refs[2] || got.Results != 2 {
		t.Errorf("text of blocks: %+v", got)
	}
	if got := grep("m2-3/grep?pattern=package"); got.Matches != 1 || got.TotalLines == nil {
		t.Errorf("messages: %+v", got)
	}
	text := decoded[protocol.ResultPage](w.must(http.StatusOK, "GET", "/v1/sessions/s/results/"+refs[2]+"?text=true", ""))
	if text.Content != "     1\ta \"quoted\" word 77\n     2\tand more\n     3\t(image: 27 bytes of JSON at the pointer /1)\n" || text.TextSHA256 == "" {
		t.Errorf("%+v", text)
	}
	value := decoded[protocol.ResultValue](w.must(http.StatusOK, "GET", "/v1/sessions/s/results/"+refs[2]+"?pointer=/1/type", ""))
	if value.Content != `"image"` || value.Type != "string" {
		t.Errorf("%+v", value)
	}
}

func TestASearchFindsWhatWasSaidDoneAndReturned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"format":"anthropic"}`)
	result, _ := json.Marshal(string(manyLines(3000)) + "the deploy token is \"kestrel\"\n" + string(manyLines(300)))
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("anthropic",
		`{"role":"user","content":"Where is the ÜBERSICHT of our deploys?"}`,
		`{"role":"assistant","content":[{"type":"text","text":"I look for the token."},{"type":"tool_use","id":"c1","name":"Bash","input":{"command":"grep -rn deploy_token ."}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":`+string(result)+`}]}]}`,
		`{"role":"assistant","content":"The words of a log do not help."}`,
	))
	search := func(q string) protocol.Found {
		t.Helper()
		return decoded[protocol.Found](w.must(http.StatusOK, "GET", "/v1/sessions/s/search?q="+url.QueryEscape(q), ""))
	}
	for q, want := range map[string]struct {
		seq     int64
		kind    string
		snippet string
	}{
		"what is the deploy token": {3, "result", `the deploy token is "kestrel"`},
		`"deploy token is"`:        {3, "result", "kestrel"},
		"übersicht":                {1, "text", "ÜBERSICHT"},
		"grep deploy_token":        {2, "call", "grep -rn deploy_token ."},
		"help words log":           {4, "text", "The words of a log do not help."},
		"KESTREL":                  {3, "result", "kestrel"},
	} {
		got := search(q)
		if len(got.Hits) == 0 {
			t.Errorf("%s: nothing found: %+v", q, got)
			continue
		}
		top := got.Hits[0]
		if top.Seq != want.seq || top.Kind != want.kind || !strings.Contains(top.Snippet, want.snippet) || got.FirstSeq != 1 || got.LastSeq != 4 {
			t.Errorf("%s: %+v", q, top)
		}
		page := w.must(http.StatusOK, "GET", top.ReadBack, "").Body.String()
		quoted, _ := json.Marshal(want.snippet)
		if !strings.Contains(page, strings.Trim(string(quoted), `"`)) {
			t.Errorf("%s: %s is not at %s: %.300s", q, want.snippet, top.ReadBack, page)
		}
	}
	if got := search("kestrel"); got.Hits[0].Line != 3001 || !strings.HasPrefix(got.Hits[0].Ref, "r3.0-") {
		t.Errorf("%+v", got.Hits[0])
	}
	if got := search("absent"); len(got.Hits) != 0 || got.Note == "" || got.Truncated {
		t.Errorf("%+v", got)
	}
	first := decoded[protocol.Found](w.must(http.StatusOK, "GET", "/v1/sessions/s/search?q=words&limit=1", ""))
	second := decoded[protocol.Found](w.must(http.StatusOK, "GET", "/v1/sessions/s/search?q=words&limit=1&cursor="+url.QueryEscape(*first.NextCursor), ""))
	if len(second.Hits) != 1 || second.Hits[0].Snippet == first.Hits[0].Snippet {
		t.Errorf("the next hit: %+v after %+v", second, first)
	}
}

// TestHostileReadsAreRefusedOrBounded asks for what no ref, range, pointer, pattern or cursor can be.
func TestHostileReadsAreRefusedOrBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, stranger := w.newTenant("stranger")
	for _, id := range []string{"s", "other"} {
		w.must(http.StatusCreated, "PUT", "/v1/sessions/"+id, "")
		w.must(http.StatusCreated, "POST", "/v1/sessions/"+id+"/messages", batch("openai-chat", user("x")))
	}
	ref := w.putResult("s", []byte(`{"a":[1,{"b":"c"}],"~/":2,"a":[3]}`))
	foreign := w.putResult("other", []byte("of another session"))
	path := "/v1/sessions/s/results/"
	for _, name := range []string{foreign, "..%2F..%2Fetc%2Fpasswd", "%2e%2e", ref + "%00", ref + "%20", strings.ToUpper(ref), "r1.0-", "r01.0-aaaa", "r1.0-aaaaa", "m0", "m-1", "m2-1", "m99999999999999999999",
		"r999999999999999999.0-aaaa", "u1-aaaa", "r1.0-%F0%9F", strings.Repeat("r", 5000)} {
		for _, how := range []string{"", "?raw=true", "/grep?pattern=x", "?pointer="} {
			if got := w.ask("GET", path+name+how, ""); got.Code != http.StatusNotFound || strings.Contains(got.Body.String(), "another session") {
				t.Errorf("%s%s: %d %s", name, how, got.Code, got.Body)
			}
		}
	}
	if got := w.ask("GET", path+ref, "", "Authorization", "Bearer "+stranger); got.Code != http.StatusNotFound {
		t.Errorf("a stranger: %d", got.Code)
	}
	for query, want := range map[string]int{
		"?offset=9223372036854775807": 200, "?offset=9223372036854775807&limit=2000": 200, "?offset=9223372036854775808": 422, "?offset=-1": 422, "?char_offset=9223372036854775807": 200, "?char_offset=-1": 422,
		"?chars=0": 422, "?chars=1048577": 422, "?max_bytes=63": 422, "?max_bytes=1048577": 422, "?raw=true&pointer=": 422, "?pointer=&offset=1": 422, "?limit=1e9": 422, "?text=1": 422,
		"?pointer=a": 422, "?pointer=/a/~2": 422, "?pointer=/~": 422, "?pointer=/a/01": 422, "?pointer=/a/-": 422, "?pointer=/a/-1": 422, "?pointer=/a/18446744073709551616": 422, "?pointer=/b": 422,
		"?pointer=/~0~1": 200, "?pointer=/a/0": 200, "?pointer=" + strings.Repeat("/a", 513): 422, "?pointer=" + strings.Repeat("/a", 512): 422,
		"/grep?pattern=": 422, "/grep?pattern=a%0Ab": 422, "/grep?pattern=(&regex=true": 422, "/grep?pattern=(?:a%7B0,100%7D)%7B10%7Db&regex=true": 422, "/grep?pattern=%FF": 200, "/grep?pattern=%FF&regex=true": 422,
		"/grep?pattern=x&before=21": 422, "/grep?pattern=x&cursor=" + ref + "~0~1~0~00000000": 400, "/grep?pattern=x&cursor=x": 400, "/grep?pattern=" + strings.Repeat("x", 513): 422,
	} {
		if got := w.ask("GET", path+ref+query, ""); got.Code != want {
			t.Errorf("%.60s: %d, want %d: %s", query, got.Code, want, got.Body)
		}
	}
	for query, want := range map[string]int{"q=": 422, "q=" + strings.Repeat("a+", 257): 422, "q=%22": 422, "q=%FF": 422, "q=a&cursor=m1-1~0~0~0~00000000": 400, "q=" + strings.Repeat("a%20b%20", 9): 200, "q=a+b+c+d+e+f+g+h+i+j+k+l+m+n+o+p+q": 422} {
		if got := w.ask("GET", "/v1/sessions/s/search?"+query, ""); got.Code != want {
			t.Errorf("search %.60s: %d, want %d: %s", query, got.Code, want, got.Body)
		}
	}
	deep := w.putResults("s", 1, nil, []byte(strings.Repeat("[", 9000)+strings.Repeat("]", 9000)), []byte(strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000)))
	w.must(http.StatusOK, "GET", path+deep[1]+"?pointer="+strings.Repeat("/0", 500), "")
	w.must(http.StatusUnprocessableEntity, "GET", path+deep[2]+"?pointer=/0", "")
}

// fetch sends a GET that must be answered with this status. Unlike must it does not check the shape of the answer, which
// other tests do and which takes long.
func (w *world) fetch(status int, path string, headers ...string) answer {
	w.Helper()
	r := httptest.NewRequestWithContext(w.Context(), "GET", path, nil)
	r.Header.Set("Authorization", "Bearer "+w.key)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	recorder := httptest.NewRecorder()
	w.server.ServeHTTP(recorder, r)
	if recorder.Code != status {
		w.Fatalf("GET %s: %d %.500s", path, recorder.Code, recorder.Body)
	}
	return answer{w.TB, recorder}
}
