package api_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/varve-dev/varve/internal/session"
)

// unusual are messages that decoders lose something of.
var unusual = []string{
	`{"role":"user","content":"nul \u0000 in it"}`,
	`{"role":"user","content":"half \ud800 a pair"}`,
	`{ "role" : "user" , "content" : "spaces\tand é é 😀 <&>" }`,
	`{"role":"user","content":"x","n":1e400,"m":-0.0,"k":12345678901234567890123}`,
	`{"role":"user","content":"first","content":"second","x":{"a":1,"a":2}}`,
	`{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{"}}]}`,
	`{"role":"tool","tool_call_id":"c","content":""}`,
	`{"role":"assistant","content":"again","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
	`{"role":"tool","tool_call_id":"c","content":[{"type":"text","text":"an array"},{"type":"zzz_future","data":[1,2]}]}`,
	`{"role":"tool","tool_call_id":"orphan","content":"nobody asked"}`,
	`{"role":"user","content":[]}`,
	`{"role":"user","content":[{"type":"text","text":""}]}`,
	`{"role":"user","content":"caf\u00e9 \/ \u2028"}`,
}

func TestEveryByteComesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, format := range []string{"openai-chat", "anthropic"} {
		w.must(http.StatusCreated, "PUT", "/v1/sessions/"+format, "")
		var kept []string
		for _, message := range unusual {
			got := w.ask("POST", "/v1/sessions/"+format+"/messages", batch(format, message))
			if got.Code == http.StatusCreated {
				kept = append(kept, message)
			} else if format == "openai-chat" {
				t.Errorf("%s: %s", message, got.Body)
			}
		}
		joined := strings.Join(kept, ",") + "]}"
		const path = "/context?view=full"
		if got := w.must(http.StatusOK, "GET", "/v1/sessions/"+format+path, "").Body.String(); !strings.HasSuffix(got, `"messages":[`+joined) {
			t.Errorf("%s%s:\n%s\nwant …%s", format, path, got, joined)
		}
		view := w.read("/v1/sessions/"+format, session.Format(format), "")
		for _, message := range view.bodies() {
			if !slices.Contains(kept, string(message)) && len(view.Repairs) == 0 {
				t.Errorf("%s: the view holds %s and lists no repair", format, message)
			}
		}
		log := w.must(http.StatusOK, "GET", "/v1/sessions/"+format+"/messages", "").Body.String()
		for _, message := range kept {
			if !strings.Contains(log, `"message":`+message+`}`) {
				t.Errorf("the log of %s has no %s", format, message)
			}
		}
		if len(kept) < 5 {
			t.Errorf("%s took only %d of %d messages", format, len(kept), len(unusual))
		}
	}
}

// hostile are bodies that must be refused, and how.
var hostile = map[string]struct{ body, code string }{
	"nothing":                          {"", "invalid_json"},
	"white space":                      {"   ", "invalid_json"},
	"no object":                        {`[]`, "invalid_request"},
	"null":                             {`null`, "invalid_request"},
	"a cut body":                       {`{"messages":[{"role":"user"`, "invalid_json"},
	"something behind the body":        {batch("openai-chat", user("x")) + `{}`, "invalid_json"},
	"a comma too many":                 {`{"messages":[` + user("x") + `,]}`, "invalid_json"},
	"bytes that are no UTF-8":          {batch("openai-chat", "{\"role\":\"user\",\"content\":\"\xff\xfe\"}"), "invalid_json"},
	"a byte order mark":                {"\ufeff" + batch("openai-chat", user("x")), "invalid_json"},
	"a control character in a string":  {batch("openai-chat", "{\"role\":\"user\",\"content\":\"\x01\"}"), "invalid_json"},
	"a member twice":                   {`{"messages":[],"messages":[` + user("x") + `]}`, "invalid_json"},
	"a member twice, once escaped":     {`{"messages":[` + user("x") + `],"message\u0073":[]}`, "invalid_json"},
	"a member in another case":         {`{"Messages":[` + user("x") + `]}`, "unknown_field"},
	"a depth bomb":                     {batch("openai-chat", strings.Repeat(`{"a":`, 1<<16)+"1"+strings.Repeat("}", 1<<16)), "json_too_complex"},
	"a depth bomb that never ends":     {strings.Repeat("[", 1<<20), "json_too_complex"},
	"a message of too many values":     {batch("openai-chat", `{"role":"user","content":[`+strings.Repeat("1,", 100_000)+`1]}`), "json_too_complex"},
	"a number of too many digits":      {batch("openai-chat", `{"role":"user","content":"x","n":`+strings.Repeat("9", 65)+`}`), "json_too_complex"},
	"no messages":                      {`{"format":"openai-chat"}`, "invalid_request"},
	"an empty batch":                   {batch("openai-chat"), "invalid_request"},
	"messages that are no array":       {`{"messages":{}}`, "invalid_request"},
	"an unknown format":                {batch("openai", user("x")), "invalid_request"},
	"a negative expected_seq":          {`{"messages":[` + user("x") + `],"expected_seq":-1}`, "invalid_request"},
	"an expected_seq that is no whole": {`{"messages":[` + user("x") + `],"expected_seq":1.5}`, "invalid_request"},
	"an expected_seq beyond 64 bits":   {`{"messages":[` + user("x") + `],"expected_seq":99999999999999999999}`, "invalid_request"},
	"too few client ids":               {`{"format":"openai-chat","messages":[` + user("x") + `],"client_ids":[]}`, "invalid_request"},
	"a client id twice":                {`{"format":"openai-chat","messages":[` + user("x") + `,` + user("y") + `],"client_ids":["a","a"]}`, "invalid_request"},
	"an empty client id":               {`{"format":"openai-chat","messages":[` + user("x") + `],"client_ids":[""]}`, "invalid_request"},
	"a client id with NUL":             {`{"format":"openai-chat","messages":[` + user("x") + `],"client_ids":["a\u0000"]}`, "invalid_request"},
	"a client id with half a pair":     {`{"format":"openai-chat","messages":[` + user("x") + `],"client_ids":["\udc00"]}`, "invalid_request"},
	"a client id that is too long":     {`{"format":"openai-chat","messages":[` + user("x") + `],"client_ids":["` + strings.Repeat("a", 129) + `"]}`, "invalid_request"},
	"no format for a new session":      {`{"messages":[` + user("x") + `]}`, "invalid_request"},
	"a message that is a number":       {batch("openai-chat", `1`), "invalid_message"},
	"a message without a role":         {batch("openai-chat", `{"content":"x"}`), "invalid_message"},
}

func TestHostileBodiesAreRefusedAndNothingIsAppended(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	for name, wrong := range hostile {
		began := time.Now()
		got := w.ask("POST", "/v1/sessions/s/messages", wrong.body)
		p := decoded[problem](got)
		checkProblem(t, got, p)
		if p.Code != wrong.code || got.Code >= 500 {
			t.Errorf("%s: %d %s, want %s", name, got.Code, got.Body, wrong.code)
		}
		if spent := time.Since(began); spent > 30*time.Second {
			t.Errorf("%s: refused after %s", name, spent)
		}
	}
	if found := decoded[map[string]any](w.must(http.StatusOK, "GET", "/v1/sessions/s", "")); found["last_seq"] != 0.0 {
		t.Errorf("something was appended: %v", found)
	}
}

func TestADamagedBodyIsNeverOurFault(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"window_tokens":10000000}`)
	random := rand.New(rand.NewPCG(5, 6))
	bodies := []string{
		`{"format":"openai-chat","messages":[` + strings.Join(unusual[:9], ",") + `],"client_ids":["a",null,"b",null,null,null,null,null,null],"expected_seq":0}`,
		batch("anthropic", turn("anthropic", 1, 2, 40)...),
	}
	const alphabet = "{}[]\",:0e\\u-. \x00\xffdtfn"
	for range 600 {
		body := []byte(bodies[random.IntN(len(bodies))])
		for range 1 + random.IntN(3) {
			at := random.IntN(len(body))
			switch random.IntN(3) {
			case 0:
				body[at] = alphabet[random.IntN(len(alphabet))]
			case 1:
				body = append(body[:at], body[at+random.IntN(min(20, len(body)-at)):]...)
			case 2:
				body = slices.Insert(body, at, body[:random.IntN(1+min(at, 30))]...)
			}
		}
		for _, path := range []string{"POST /v1/sessions/s/messages", "PATCH /v1/sessions/s"} {
			method, path, _ := strings.Cut(path, " ")
			if got := w.ask(method, path, string(body)); got.Code >= http.StatusInternalServerError {
				t.Errorf("%s %s: %d %s", method, body, got.Code, got.Body)
			}
		}
	}
	w.must(http.StatusOK, "GET", "/v1/sessions/s/context?view=full", "")
}

func TestEveryProblemOfABatchIsToldAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	p := decoded[problem](w.must(http.StatusUnprocessableEntity, "POST", "/v1/sessions/s/messages",
		`{"format":"openai-chat","messages":[`+user("fine")+`,1,`+user("fine")+`,{"content":"x"}],"client_ids":["a","b","c",5]}`))
	var pointers []string
	for _, e := range p.Errors {
		pointers = append(pointers, e.Pointer)
	}
	if diff := cmp.Diff([]string{"/messages/1", "/messages/3/role", "/client_ids/3"}, pointers); diff != "" {
		t.Errorf("%s\n%+v", diff, p.Errors)
	}
	many := decoded[problem](w.must(http.StatusUnprocessableEntity, "POST", "/v1/sessions/s/messages",
		batch("openai-chat", strings.Split(strings.Repeat("1,", 99)+"1", ",")...)))
	if len(many.Errors) != 20 {
		t.Errorf("%d problems of 100 are told, want 20", len(many.Errors))
	}
}

func TestALargeBatchOfSmallMessagesIsNotTooComplex(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	message := `{"role":"user","content":"x","extra":[` + strings.Repeat("1,", 999) + `1]}`
	messages := make([]string, 150)
	for i := range messages {
		messages[i] = message
	}
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", messages...))
	depth := session.MaxJSONDepth - 1 // the message itself is a level
	deep := `{"role":"user","content":"x","extra":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `}`
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", deep))
}

func compressed(t testing.TB, coding, body string) string {
	t.Helper()
	var b bytes.Buffer
	switch coding {
	case "gzip":
		z := gzip.NewWriter(&b)
		fmt.Fprint(z, body)
		z.Close()
	case "zstd":
		z, err := zstd.NewWriter(&b)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(z, body)
		z.Close()
	}
	return b.String()
}

// spaces reads as white space without end.
type spaces struct{}

func (spaces) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	return len(b), nil
}

func TestARequestThatIsRepeatedHasOneEffectAndOneAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/other", "")
	requests := []struct{ method, path, body string }{
		{"POST", "/v1/sessions", `{"id":"s"}`},
		{"PUT", "/v1/sessions/t", `{"model":"gpt-4o"}`},
		{"POST", "/v1/sessions/s/messages", batch("openai-chat", user("x"))},
		{"PATCH", "/v1/sessions/s", `{"model":"gpt-4.1"}`},
		{"POST", "/v1/sessions/s/compact", ``},
		{"DELETE", "/v1/sessions/s", ``},
	}
	for i, r := range requests {
		key := fmt.Sprintf("key-%d", i)
		first := w.ask(r.method, r.path, r.body, "Idempotency-Key", key)
		if first.Code >= 300 || first.Header().Get("Idempotent-Replayed") != "" || first.Header().Get("Idempotency-Expires") == "" {
			t.Fatalf("%s %s: %d %s %v", r.method, r.path, first.Code, first.Body, first.Header())
		}
		again := w.ask(r.method, r.path, r.body, "Idempotency-Key", `"`+key+`"`)
		if again.Code != first.Code || again.Body.String() != first.Body.String() || again.Header().Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s %s again: %d %s\nfirst: %d %s", r.method, r.path, again.Code, again.Body, first.Code, first.Body)
		}
		if got := again.Header().Get("Location"); got != first.Header().Get("Location") {
			t.Errorf("%s %s again: Location %q", r.method, r.path, got)
		}
		other, found := strings.CutPrefix(r.path, "/v1/sessions/s")
		if !found {
			continue
		}
		if p := decoded[problem](w.ask(r.method, "/v1/sessions/other"+other, r.body, "Idempotency-Key", key)); p.Code != "idempotency_key_reused" {
			t.Errorf("the key of %s %s for another session: %+v", r.method, r.path, p)
		}
	}
}

func TestTheSameRequestManyTimesAtOnceHasOneEffect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	for _, r := range []struct{ method, path, body string }{
		{"POST", "/v1/sessions/s/messages", batch("openai-chat", user("x"))},
		{"POST", "/v1/sessions/s/compact", ""},
		{"POST", "/v1/sessions", `{"id":"t"}`},
		{"PUT", "/v1/sessions/u", ""},
		{"PATCH", "/v1/sessions/u", `{"policy":{"trigger":0.7}}`},
		{"DELETE", "/v1/sessions/u", ""},
	} {
		answers := make([]answer, 16)
		var group sync.WaitGroup
		for i := range answers {
			group.Go(func() { answers[i] = w.ask(r.method, r.path, r.body, "Idempotency-Key", "key") })
		}
		group.Wait()
		replayed := 0
		for _, a := range answers {
			if a.Code != answers[0].Code || a.Code >= 300 || a.Body.String() != answers[0].Body.String() {
				t.Errorf("%s: %d %s and %d %s", r.path, a.Code, a.Body, answers[0].Code, answers[0].Body)
			}
			if a.Header().Get("Idempotent-Replayed") != "" {
				replayed++
			}
		}
		if replayed != len(answers)-1 {
			t.Errorf("%s: %d of %d answers are replays", r.path, replayed, len(answers))
		}
	}
	if found := decoded[map[string]any](w.must(http.StatusOK, "GET", "/v1/sessions/s", "")); found["last_seq"] != 1.0 {
		t.Errorf("%v", found)
	}
}

func TestABatchThatIsSentAgainWithItsClientIDsIsAReplay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	body := `{"format":"openai-chat","messages":[` + user("a") + `,` + user("b") + `],"client_ids":["1","2"]}`
	first := decoded[session.Appended](w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", body))
	again := decoded[session.Appended](w.must(http.StatusOK, "POST", "/v1/sessions/s/messages", body))
	if !again.Replayed || again.FirstSeq != first.FirstSeq || again.LastSeq != first.LastSeq {
		t.Errorf("first %+v, again %+v", first, again)
	}
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", `{"messages":[`+user("c")+`],"client_ids":[null]}`)
}

func TestManyWritersWithExpectedSeqHaveOneWinnerForEachSeq(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	const writers, rounds = 8, 10
	var mu sync.Mutex
	won := map[int64]int{}
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			for seq := int64(0); seq < rounds; {
				got := w.ask("POST", "/v1/sessions/s/messages", fmt.Sprintf(`{"format":"openai-chat","messages":[%s],"expected_seq":%d}`, user("x"), seq))
				switch got.Code {
				case http.StatusCreated:
					mu.Lock()
					won[seq+1]++
					mu.Unlock()
					seq++
				case http.StatusPreconditionFailed:
					var p problem
					if err := json.Unmarshal(got.Body.Bytes(), &p); err != nil || p.Current == nil {
						t.Errorf("%s: %v", got.Body, err)
						return
					}
					seq = *p.Current
				default:
					t.Errorf("%d %s", got.Code, got.Body)
					return
				}
			}
		})
	}
	group.Wait()
	for seq := int64(1); seq <= rounds; seq++ {
		if won[seq] != 1 {
			t.Errorf("seq %d was won %d times", seq, won[seq])
		}
	}
}

// TestAnAppendTellsWhatViewsWillRepair has a member that no provider knows.
func TestAnAppendTellsWhatViewsWillRepair(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/told", "")
	body := batch("openai-chat", user("x"), `{"role":"user","content":"u","extra":1}`)
	refused := w.ask("POST", "/v1/sessions/told/messages?strict=true", body)
	if refused.Code != http.StatusUnprocessableEntity || !strings.Contains(refused.Body.String(), "/messages/1/extra") {
		t.Errorf("strict: %d %s", refused.Code, refused.Body)
	}
	if stored := w.must(http.StatusOK, "GET", "/v1/sessions/told/messages", "").Body.String(); strings.Contains(stored, "extra") || strings.Contains(stored, `"x"`) {
		t.Errorf("a strict append that is refused stores %s", stored)
	}
	got := w.must(http.StatusCreated, "POST", "/v1/sessions/told/messages", body).Body.String()
	compacted := w.must(http.StatusOK, "POST", "/v1/compact", body).Body.String()
	for _, answer := range []string{got, compacted} {
		if _, told, _ := strings.Cut(answer, `"warnings"`); !strings.Contains(told, "/messages/1/extra") || !strings.Contains(told, "member_dropped") {
			t.Errorf("the answer is %s", answer)
		}
	}
}

// TestAStrictAppendKnowsTheModelOfTheSession has thinking without a signature, which Kimi takes back and Claude refuses:
// of a session that is there, of one that another PATCH gave a model, and of one that the append makes.
func TestAStrictAppendKnowsTheModelOfTheSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const thought = `{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"x"}]}`
	body := func(more string) string { return `{"format":"anthropic","messages":[` + thought + `]` + more + `}` }
	w.must(http.StatusCreated, "PUT", "/v1/sessions/kimi", `{"model":"kimi-k3","format":"anthropic"}`)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/claude", `{"model":"claude-opus-4-5","format":"anthropic"}`)
	const made = `,"session":{"model":"deepseek-v4-pro"}`
	for _, c := range []struct {
		path, body string
		want       int
	}{
		{"kimi", body(""), http.StatusCreated}, {"kimi", `{"messages":[` + thought + `]}`, http.StatusCreated},
		{"claude", body(""), http.StatusUnprocessableEntity}, {"claude", `{"messages":[` + thought + `]}`, http.StatusUnprocessableEntity},
		{"made", body(made), http.StatusCreated}, {"made", body(made), http.StatusCreated},
		{"none", body(`,"session":{}`), http.StatusUnprocessableEntity},
	} {
		got := w.ask("POST", "/v1/sessions/"+c.path+"/messages?strict=true", c.body)
		if got.Code != c.want {
			t.Errorf("%s %s: %d %s", c.path, c.body, got.Code, got.Body)
		}
	}
	w.must(http.StatusOK, "PATCH", "/v1/sessions/kimi", `{"model":"claude-opus-4-5"}`)
	if got := w.ask("POST", "/v1/sessions/kimi/messages?strict=true", body("")); got.Code != http.StatusUnprocessableEntity {
		t.Errorf("of a session that is Claude's now: %d %s", got.Code, got.Body)
	}
	w.must(http.StatusOK, "PUT", "/v1/sessions/claude/messages", body(""))
	w.must(http.StatusUnprocessableEntity, "PUT", "/v1/sessions/claude/messages?strict=true", body(""))
	w.must(http.StatusOK, "PATCH", "/v1/sessions/claude", `{"model":"kimi-k3"}`)
	w.must(http.StatusOK, "PUT", "/v1/sessions/claude/messages?strict=true", body(""))
}
