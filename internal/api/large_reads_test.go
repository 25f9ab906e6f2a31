package api_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/compact/compacttest"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// TestALargeResultIsReadByPagesRangesAndAsAStream has a result of many chunks.
func TestALargeResultIsReadByPagesRangesAndAsAStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user("x")))
	body := manyLines(60_000)
	sum := sha256.Sum256(body)
	path := "/v1/sessions/s/results/" + w.putResult("s", body)
	raw := w.must(http.StatusOK, "GET", path+"?raw=true", "")
	if !bytes.Equal(raw.Body.Bytes(), body) || raw.Header().Get("Content-Length") != fmt.Sprint(len(body)) {
		t.Errorf("%d bytes of %d, %v", raw.Body.Len(), len(body), raw.Header())
	}
	for _, at := range []int{0, 1, 131_071, 131_072, 1_500_000, len(body) - 1} {
		part := w.must(http.StatusPartialContent, "GET", path+"?raw=true", "", "Range", fmt.Sprintf("bytes=%d-%d", at, at+300_000))
		if !bytes.Equal(part.Body.Bytes(), body[at:min(at+300_001, len(body))]) {
			t.Errorf("the range at %d is another", at)
		}
	}
	several := w.must(http.StatusPartialContent, "GET", path+"?raw=true", "", "Range", "bytes=0-9,1000000-1000009,-5")
	for _, want := range [][]byte{body[:10], body[1_000_000:1_000_010], body[len(body)-5:]} {
		if !bytes.Contains(several.Body.Bytes(), want) {
			t.Errorf("%q is not in %s", want, several.Body)
		}
	}
	if head := w.must(http.StatusOK, "HEAD", path+"?raw=true", ""); head.Header().Get("X-Content-Sha256") != hex.EncodeToString(sum[:]) || head.Body.Len() > 0 {
		t.Errorf("HEAD: %v", head.Header())
	}
	if read := w.readAll(path + "?plain=true&max_bytes=1048576&limit=2000"); read != string(body) {
		t.Errorf("the pages have %d bytes of %d", len(read), len(body))
	}
	page := decoded[protocol.ResultPage](w.must(http.StatusOK, "GET", path+"?offset=30000&limit=2", ""))
	if want := " 30000\t030000 some words"; !strings.HasPrefix(page.Content, want) || *page.NextOffset != 30_002 || page.TotalLines != 60_000 {
		t.Errorf("%+v", page)
	}
	if page = decoded[protocol.ResultPage](w.must(http.StatusOK, "GET", path+"?offset=60001", "")); page.Content != "" || !strings.Contains(page.Note, "there are 60000 lines") {
		t.Errorf("%+v", page)
	}
}

// TestGetContextOfALongLogReadsItsEnd asks in a process with less memory than the whole view takes.
func TestGetContextOfALongLogReadsItsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"format":"openai-chat","window_tokens":10000000,"policy":{"trigger_bytes":0}}`)
	old := weighedMessage("user")
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", old, weighedMessage("assistant"), old))
	turn := []string{user("a question"), `{"role":"assistant","content":"` + strings.Repeat("an answer ", 400) + `"}`}
	newer := append(slices.Repeat(turn, 40), user("the newest question"))
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", newer...))
	w.limit(20<<20, time.Millisecond)
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_context","arguments":{"max_tokens":%d}}}`
	got := w.must(http.StatusOK, "POST", "/mcp?session=s", fmt.Sprintf(call, 8000)).Body.String()
	if !strings.Contains(got, "the newest question") || strings.Contains(got, "words of 16 byte") {
		t.Errorf("%.1000s", got)
	}
	whole := w.must(http.StatusOK, "POST", "/mcp?session=s", fmt.Sprintf(call, 9_000_000)).Body.String()
	if strings.Contains(whole, "the newest question") {
		t.Errorf("a view of 6 MB, made, has room in 20 MB: %.1000s", whole)
	}
}

func TestAFullViewOfALongLogIsWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, format := range []string{"openai-chat", "anthropic"} {
		path := "/v1/sessions/" + format
		w.must(http.StatusCreated, "PUT", path, `{"window_tokens":10000000}`)
		w.must(http.StatusCreated, "POST", path+"/messages", batch(format, `{"role":"system","content":"one"}`, `{"role":"system","content":"two"}`))
		messages := make([]string, 1000)
		for i := range messages {
			messages[i] = user(strconv.Itoa(i) + strings.Repeat(".", i%7*1000))
		}
		w.must(http.StatusCreated, "POST", path+"/messages", batch(format, messages...))
		w.must(http.StatusCreated, "POST", path+"/messages", batch(format, messages...))
		full := w.must(http.StatusOK, "GET", path+"/context?view=full", "")
		if want := strings.Join(messages, ",") + "," + strings.Join(messages, ",") + "]}"; !strings.HasSuffix(full.Body.String(), want) {
			t.Errorf("the full view of %s has %d bytes and ends otherwise", format, full.Body.Len())
		}
		v, plain := decoded[view](full), decoded[view](w.must(http.StatusOK, "GET", path+"/context", ""))
		if string(v.System) != string(plain.System) || len(v.Messages) != len(plain.Messages) || v.Tokens != plain.Tokens || v.LastSeq != 2002 {
			t.Errorf("%s: full view with system %s, %d messages, %d tokens; view with %s, %d, %d", format, v.System, len(v.Messages), v.Tokens, plain.System, len(plain.Messages), plain.Tokens)
		}
	}
}

// TestALargeCheckpointOfFewMessagesNeedsNoMemoryForMany renders 6 MB of pictures that a compaction has left, in a
// process that has ten times as much memory.
func TestALargeCheckpointOfFewMessagesNeedsNoMemoryForMany(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"window_tokens":200000,"policy":{"auto":false,"target":0.01,"summarise":{"enabled":false},"truncate":{"enabled":false}}}`)
	messages := talk(exchange("c1", "cat", `{"path":"a"}`, body("old", 50_000)), exchange("c2", "cat", `{"path":"a"}`, body("new", 50_000)))
	for range 5 {
		messages = append(messages, `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,`+strings.Repeat("iVBORw0KGgoA", 100_000)+`"}}]}`)
	}
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", messages...))
	w.must(http.StatusOK, "POST", "/v1/sessions/s/compact?wait=60", "")
	if n := decoded[struct{ Checkpoint int }](w.must(http.StatusOK, "GET", "/v1/sessions/s", "")).Checkpoint; n != 1 {
		t.Fatalf("the session has checkpoint %d", n)
	}
	w.limit(64<<20, time.Millisecond)
	for _, path := range []string{"/context?format=anthropic", "/checkpoints/1/context"} {
		if got := w.must(http.StatusOK, "GET", "/v1/sessions/s"+path, ""); got.Body.Len() < 5_000_000 {
			t.Errorf("%s has %d bytes", path, got.Body.Len())
		}
	}
}

// What is read of a large view at a time is a page, and what is held of the budget is that of a page.
func TestALargeViewTakesTheMemoryOfAPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"window_tokens":10000000}`)
	for n := range 8 {
		w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user(strings.Repeat(fmt.Sprint(n), 1<<20))))
	}
	w.limit(6<<20, time.Millisecond) // less than the view
	if got := w.ask("GET", "/v1/sessions/s/context", ""); got.Code != http.StatusOK || got.Body.Len() < 8<<20 {
		t.Errorf("%d, %d bytes", got.Code, got.Body.Len())
	}
	if got := decoded[problem](w.ask("GET", "/v1/sessions/s/context?format=gemini", "")); got.Code != "too_heavy" {
		t.Errorf("a view that has to be made whole: %s", got.Code)
	}
	if got := decoded[problem](w.ask("GET", "/v1/sessions/s/context?view=full&format=gemini", "")); got.Code != "too_heavy" {
		t.Errorf("a log that has to be made whole: %s", got.Code)
	}
}

// TestNoCharacterOfARefMayBeWrong changes each character of 1,000 refs into others: none is another result.
func TestNoCharacterOfARefMayBeWrong(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user("x")))
	at := session.Address{Tenant: w.tenant, ID: "s"}
	var refs []string
	for seq := range int64(100) {
		bodies := make([][]byte, 10)
		for i := range bodies {
			bodies[i] = fmt.Appendf(nil, "result %d of message %d", i, seq+1)
		}
		refs = append(refs, w.putResults("s", seq+1, bodies...)...)
	}
	tried, asked := 0, 0
	for _, ref := range refs {
		for i := range len(ref) {
			for _, b := range "0123456789abcdefrum.-" {
				wrong := ref[:i] + string(b) + ref[i+1:]
				parsed, err := session.ParseResultRef(wrong)
				if err != nil || wrong == ref {
					continue
				}
				if tried++; slices.Contains(refs, wrong) {
					t.Errorf("%s is one character from %s", wrong, ref)
				}
				if tried%71 != 0 {
					continue
				}
				asked++
				if got, _, err := w.store.OpenResult(t.Context(), at, parsed); err == nil {
					t.Errorf("%s instead of %s is %s", wrong, ref, got.Ref)
				}
			}
		}
	}
	if tried < 50_000 || asked < 1000 {
		t.Errorf("only %d refs were tried, and %d asked for", tried, asked)
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

func TestWhateverIsGiantIsCutAndComesBackWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	giant := prose(1, 9000)
	answered := func(arguments string) []string {
		return []string{user("write it"), `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"Write","arguments":` +
			literalOf(arguments) + `}}]}`, `{"role":"tool","tool_call_id":"c1","content":"done"}`}
	}
	numbers := `{"path":"a.go","list":[` + strings.Repeat("123456,", 6000) + `7]}`
	for name, test := range map[string]struct {
		messages []string
		kind     string
		whole    string // of which the ref brings back at least this
	}{
		"a text of the user":         {[]string{user("first"), `{"role":"assistant","content":"yes"}`, user(giant)}, "text", giant},
		"a text of the assistant":    {[]string{user("tell me all"), `{"role":"assistant","content":` + literalOf(giant) + `}`}, "text", giant},
		"a string in arguments":      {answered(`{"path":"a.go","edits":[{"text":` + literalOf(giant) + `}]}`), "call", giant},
		"arguments without a string": {answered(numbers), "call", strings.Repeat("123456,", 6000)},
		"a system prompt":            {[]string{`{"role":"system","content":` + literalOf(giant) + `}`, user("hi")}, "text", giant},
		"a text beside an image":     {[]string{`{"role":"user","content":[{"type":"text","text":` + literalOf(giant) + `},` + picture + `]}`}, "text", giant},
		"a text between small ones":  {[]string{user("first"), user(giant), `{"role":"assistant","content":"yes"}`}, "text", giant},
	} {
		for _, own := range []session.Format{session.OpenAIChat, session.Anthropic, session.OpenAIResponses, session.Gemini, session.AISDK} {
			path := "/v1/sessions/" + strings.ReplaceAll(name, " ", "-") + "-" + string(own)
			w.must(http.StatusCreated, "PUT", path, `{"window_tokens":5000}`)
			w.must(http.StatusCreated, "POST", path+"/messages", batch(string(own), inFormat(own, test.messages)...))
			for _, f := range session.Formats() {
				v := w.checkFits(path, f, "wait=0&format="+string(f), 5000)
				if len(v.Cut) != 1 || v.Cut[0].Kind != test.kind {
					t.Errorf("%s in %s as %s: cut %+v", name, own, f, v.Cut)
					continue
				}
				whole := w.wholeOf(path, v.Cut[0].Ref)
				if !strings.Contains(whole, test.whole) && !strings.Contains(whole, strings.Trim(literalOf(test.whole), `"`)) {
					t.Errorf("%s in %s: %s brings back %d bytes", name, own, v.Cut[0].Ref, len(whole))
				}
				if v.Tokens < 3000 && name != "arguments without a string" {
					t.Errorf("%s in %s as %s: only %d tokens are left", name, own, f, v.Tokens)
				}
			}
		}
	}
}

func TestASessionOfAnyFormatIsReadInEveryFormat(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, own := range session.Formats() {
		path := "/v1/sessions/" + string(own)
		w.must(http.StatusCreated, "PUT", path, fmt.Sprintf(`{"format":%q,"window_tokens":10000000,"model":"gemini-2.5-pro"}`, own))
		said := strs(compacttest.Session(rand.New(rand.NewPCG(1, 1)), own, compacttest.Options{Messages: 12}))
		w.must(http.StatusCreated, "POST", path+"/messages", batch(string(own), append(said, last(own))...))
		for _, f := range session.Formats() {
			v := w.read(path, f, "format="+string(f))
			if diff := cmp.Diff(append(said, last(own)), strs(v.bodies())); f == own && diff != "" {
				t.Errorf("%s as it was appended (-want +got):\n%s", own, diff)
			}
		}
		w.read(path, own, "")
	}
}
