package llm

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
)

// The beginnings of answers.
const (
	chatBegins      = `{"model":"x","usage":{"prompt_tokens":70,"completion_tokens":5},"choices":`
	responsesBegins = `{"model":"x","usage":{"input_tokens":70,"output_tokens":5,"input_tokens_details":{"cached_tokens":30}},`
	messagesBegins  = `{"model":"x","usage":{"input_tokens":40,"cache_read_input_tokens":30,"output_tokens":5},"content":`
)

var used, usedCached = Usage{Input: 70, Output: 5}, Usage{Input: 70, Cached: 30, Output: 5}

func TestAnswersAreReadStrictly(t *testing.T) {
	t.Parallel()
	const filtered, calls = "content_filter", "it calls a tool"
	for i, c := range []struct {
		kind  Kind
		body  string
		want  error // nil: the answer is yes
		why   string
		usage Usage
	}{
		{OpenAI, chatBegins + `[{"finish_reason":"stop","message":{"content":"yes"}}]}`, nil, "", used},
		{OpenAI, chatBegins + `[{"finish_reason":"length","message":{"content":"ye"}}]}`, ErrCut, "", used},
		{OpenAI, chatBegins + `[{"finish_reason":"content_filter","message":{"content":""}}]}`, ErrRefused, filtered, used},
		{OpenAI, chatBegins + `[{"finish_reason":"stop","message":{"content":null,"refusal":"No."}}]}`, ErrRefused, "", used},
		{OpenAI, chatBegins + `[{"finish_reason":"tool_calls","message":{"content":null}}]}`, ErrMalformed, calls, used},
		{OpenAI, chatBegins + `[{"finish_reason":"stop","message":{"content":"yes","tool_calls":[{"id":"c","type":"function",
			"function":{"name":"n","arguments":"{}"}}]}}]}`, ErrMalformed, calls, used},
		{OpenAI, chatBegins + `[{"finish_reason":"max_tokens","message":{"content":"ye"}}]}`, ErrCut, "", used},
		{OpenAI, chatBegins + `[{"finish_reason":"error","message":{"content":"ye"}}]}`, ErrUnavailable,
			"the provider's own work failed", used},
		{OpenAI, chatBegins + `[{"finish_reason":"stop","message":{"content":"\n<think>No.\nYes?</think>yes"}}]}`, nil, "", used},
		{OpenAI, chatBegins + `[{"finish_reason":"stop","message":{"content":"<think>No.</think>\n"}}]}`, ErrMalformed,
			"it is empty", used},
		{OpenAI, chatBegins + `[{"finish_reason":"stop","message":{"content":" \n"}}]}`, ErrMalformed, "it is empty", used},
		{OpenAI, chatBegins + `[{"finish_reason":"stop","message":{"content":[1]}}]}`, ErrMalformed, "it is empty", used},
		{OpenAI, chatBegins + `[]}`, ErrMalformed, "it has no choice", Usage{}},
		{OpenAI, `{"error":{"message":"overloaded"}}`, ErrMalformed, "it has no choice", Usage{}},
		{OpenAI, `{"choices":`, ErrMalformed, "it is not the JSON of the protocol", Usage{}},
		{OpenAI, `[]`, ErrMalformed, "it is not the JSON of the protocol", Usage{}},
		{OpenAI, strings.Repeat(" ", maxAnswer) + good, ErrMalformed, "it is larger than 8 MiB", Usage{}},
		{OpenAIResponses, responsesBegins + `"status":"completed","output":[{"type":"reasoning"},
			{"type":"message","content":[{"type":"output_text","text":"y"},{"type":"output_text","text":"es"}]}]}`,
			nil, "", usedCached},
		{OpenAIResponses, responsesBegins + `"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},
			"output":[{"type":"message","content":[{"type":"output_text","text":"ye"}]}]}`, ErrCut, "", usedCached},
		{OpenAIResponses, responsesBegins + `"status":"incomplete","incomplete_details":{"reason":"content_filter"},
			"output":[{"type":"reasoning"}]}`, ErrRefused, filtered, usedCached},
		{OpenAIResponses, responsesBegins + `"status":"completed","output":[
			{"type":"message","content":[{"type":"refusal","refusal":"No."}]}]}`, ErrRefused, "", usedCached},
		{OpenAIResponses, responsesBegins + `"status":"completed","output":[{"type":"function_call"}]}`,
			ErrMalformed, calls, usedCached},
		{OpenAIResponses, responsesBegins + `"status":"failed","output":[]}`, ErrUnavailable,
			"the provider's own work failed", usedCached},
		{OpenAIResponses, responsesBegins + `"status":"completed","output":[]}`, ErrMalformed, "it is empty", usedCached},
		{OpenAIResponses, `{"error":{"message":"overloaded"}}`, ErrMalformed, "it is not complete", Usage{}},
		{Anthropic, messagesBegins + `[{"type":"text","text":"y"},{"type":"text","text":"es"}],"stop_reason":"end_turn"}`,
			nil, "", usedCached},
		{Anthropic, messagesBegins + `[{"type":"text","text":"ye"}],"stop_reason":"max_tokens"}`, ErrCut, "", usedCached},
		{Anthropic, messagesBegins + `[],"stop_reason":"refusal"}`, ErrRefused, "", usedCached},
		{Anthropic, messagesBegins + `[{"type":"tool_use","id":"c","name":"n","input":{}}],"stop_reason":"tool_use"}`,
			ErrMalformed, "it did not end its turn", usedCached},
		{Anthropic, messagesBegins + `[],"stop_reason":"end_turn"}`, ErrMalformed, "it is empty", usedCached},
		{Anthropic, `{"type":"error","error":{"type":"overloaded_error","message":"x"}}`, ErrMalformed,
			"it did not end its turn", Usage{}},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			reply, err := served(t, Provider{Kind: c.kind}, body(200, c.body)).Ask(t.Context(), uuid.Nil, ask)
			if c.want == nil {
				want := Reply{Text: "yes", Model: "x", Usage: c.usage}
				if diff := cmp.Diff(want, reply); diff != "" || err != nil {
					t.Errorf("%.200s: %v (-want +got):\n%s", c.body, err, diff)
				}
				return
			}
			status := 200
			if c.why == "it is larger than 8 MiB" {
				status = 0
			}
			want := &Error{Kind: c.want, Model: "small", Status: status, Reason: c.why, Usage: c.usage}
			if diff := cmp.Diff(want, err, cmpopts.EquateErrors()); !sameError(err, want) {
				t.Errorf("%.200s: (-want +got):\n%s", c.body, diff)
			}
		})
	}
}

// sameError reports whether an error is that *Error.
func sameError(err error, want *Error) bool {
	got, ok := err.(*Error) //nolint:errorlint // Ask returns it as it is
	return ok && *got == *want
}

func TestAnAnswerThatIsNoJSONAtAll(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		m := served(t, Provider{Kind: kind}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, "<html>Sign in to this hotel's network</html>")
		})
		fails(t, m, 1, ErrMalformed)
	}
}

func TestAnAnswerIsReadWhateverItsServerSaysThatItIs(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"text/plain; charset=utf-8", "application/octet-stream", ""} {
		m := served(t, Provider{Kind: OpenAI}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = []string{kind}
			io.WriteString(w, good)
		})
		if reply, err := m.Ask(t.Context(), uuid.Nil, ask); err != nil || reply.Text != "yes" {
			t.Errorf("%q: %+v, %v", kind, reply, err)
		}
	}
}

func TestTheNameOfTheModelThatAnsweredIsBounded(t *testing.T) {
	t.Parallel()
	b := strings.Replace(good, "m-1", "m"+strings.Repeat("é", 4000), 1)
	reply, err := served(t, Provider{Kind: OpenAI}, body(200, b)).Ask(t.Context(), uuid.Nil, ask)
	if want := "m" + strings.Repeat("é", 63); err != nil || reply.Model != want {
		t.Errorf("%q, %v", reply.Model, err)
	}
}

func TestAUsageThatIsMissingOrCannotBeIsEstimated(t *testing.T) {
	t.Parallel()
	for _, usage := range []string{
		``, `,"usage":null`, `,"usage":{"prompt_tokens":0,"completion_tokens":0}`,
		`,"usage":{"prompt_tokens":-5,"completion_tokens":1}`, `,"usage":{"prompt_tokens":"7","completion_tokens":[]}`,
		`,"usage":{"prompt_tokens":7,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":8}}`,
	} {
		b := `{"choices":[{"finish_reason":"stop","message":{"content":"It is on port 5433."}}]` + usage + `}`
		reply, err := served(t, Provider{Kind: OpenAI}, body(200, b)).Ask(t.Context(), uuid.Nil, ask)
		if want := estimate(ask, "It is on port 5433."); err != nil || reply.Usage != want || !want.Estimated || want.Input < 5 {
			t.Errorf("%s: %v, %+v, want %+v", usage, err, reply.Usage, want)
		}
	}
}

func TestNoUsageCountsAsMoreThanWasReservedForTheCall(t *testing.T) {
	t.Parallel()
	const lots, some = 99_999_999_999_999, 4_000_000
	for kind, form := range map[Kind]string{
		OpenAI: `{"choices":[{"finish_reason":"%s","message":{"content":"yes"}}],
			"usage":{"prompt_tokens":%d,"completion_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d}}}`,
		Anthropic: `{"content":[{"type":"text","text":"yes"}],"stop_reason":"%s",
			"usage":{"input_tokens":%d,"output_tokens":%d,"cache_read_input_tokens":%d}}`,
	} {
		for _, says := range [][3]int{{lots, lots, lots}, {some, some, 0}} {
			for _, cut := range []bool{false, true} {
				end := map[Kind]string{OpenAI: "stop", Anthropic: "end_turn"}[kind]
				if cut {
					end = map[Kind]string{OpenAI: "length", Anthropic: "max_tokens"}[kind]
				}
				m := served(t, Provider{Kind: kind}, body(200, fmt.Sprintf(form, end, says[0], says[1], says[2])))
				reply, err := m.Ask(t.Context(), uuid.Nil, ask)
				got, want := reply.Usage, m.Bound(ask)
				if failed, ok := err.(*Error); cut && ok { //nolint:errorlint // Ask returns it as it is
					got = failed.Usage
				}
				want.Estimated, want.Cached = true, min(want.Input, int64(says[2]))
				if got != want {
					t.Errorf("%s, %v, cut %v: %+v (%v), want %+v", kind, says, cut, got, err, want)
				}
			}
		}
	}
	for kind, text := range map[Kind]string{
		Anthropic:       `{"stop_reason":"end_turn","usage":{"input_tokens":4000000,"output_tokens":1}}`,
		OpenAIResponses: `{"status":"failed","usage":{"input_tokens":4000000,"output_tokens":1}}`,
	} {
		m := served(t, Provider{Kind: kind}, body(200, text))
		_, err := m.Ask(t.Context(), uuid.Nil, ask)
		if failed, ok := err.(*Error); !ok || failed.Usage.Input != m.Bound(ask).Input { //nolint:errorlint // as above
			t.Errorf("%s, an answer without content: %#v", kind, err)
		}
	}
	long := strings.Repeat("yes, ", 100_000)
	m := served(t, Provider{Kind: OpenAI}, body(200, `{"choices":[{"message":{"content":"`+long+`"}}]}`))
	if reply, err := m.Ask(t.Context(), uuid.Nil, ask); err != nil || reply.Usage.Output != m.Bound(ask).Output {
		t.Errorf("%d tokens are counted for an answer without a usage that is too long, %v", reply.Usage.Output, err)
	}
}

func TestStatusesOfFailures(t *testing.T) {
	t.Parallel()
	openAI := `{"error":{"message":"secret of the replica","type":"invalid_request_error",
		"code":"unsupported_parameter","param":"max_tokens"}}`
	for i, c := range []struct {
		status  int
		body    string
		headers string
		want    error
		why     string
		after   time.Duration
	}{
		{429, `{"error":{"type":"rate_limit_error","message":"x"}}`, "Retry-After: 3",
			ErrLimited, "status 429, rate_limit_error", 3 * time.Second},
		{429, ``, "Retry-After: 9;Retry-After-Ms: 1500.5", ErrLimited, "status 429", 1500500 * time.Microsecond},
		{429, ``, "Retry-After: -3", ErrLimited, "status 429", 0},
		{429, ``, "Retry-After: 1e99", ErrLimited, "status 429", 24 * time.Hour},
		{429, ``, "Retry-After: soon", ErrLimited, "status 429", 0},
		{529, `{"type":"error","error":{"type":"overloaded_error"}}`, "", ErrUnavailable, "status 529, overloaded_error", 0},
		{503, `<html>`, "Retry-After: 2", ErrUnavailable, "status 503", 2 * time.Second},
		{408, ``, "", ErrUnavailable, "status 408", 0},
		{400, openAI, "", ErrRejected, "status 400, unsupported_parameter (max_tokens)", 0},
		{400, `{"error":{"code":"context_length_exceeded"}}`, "", ErrRejected, ContextLength, 0},
		{400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 tokens > 8"}}`, "",
			ErrRejected, ContextLength, 0},
		{400, `{"object":"error","message":"This model's maximum context length is 8 tokens","type":"BadRequestError",
			"code":400}`, "", ErrRejected, ContextLength, 0},
		{413, ``, "", ErrRejected, ContextLength, 0},
		{401, `{"error":{"code":"sk-very-secret"}}`, "", ErrRejected, "status 401", 0},
		{401, `{"error":{"code":"very-secret","type":"gate-secret"}}`, "", ErrRejected, "status 401", 0},
		{404, `{"error":"model 'm' not found"}`, "", ErrRejected, "status 404", 0},
		{404, `{"error":{"code":"What is the secret of the replica?"}}`, "", ErrRejected, "status 404", 0},
		{302, ``, "Location: http://127.0.0.1:1/", ErrRejected, "status 302, a redirect, which is not followed", 0},
		{530, ``, "", ErrUnavailable, "status 530", 0},
		{201, `{"error":{"code":"x"}}`, "", ErrMalformed, "status 201, x", 0},
		{204, ``, "", ErrMalformed, "status 204", 0},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			p := Provider{Kind: kinds[i%len(kinds)], Key: NewKey("sk-very-secret"), Attempts: 1,
				Headers: map[string]Key{"X-Gate": NewKey("gate-secret")}}
			m := served(t, p, func(w http.ResponseWriter, r *http.Request) {
				for header := range strings.SplitSeq(c.headers, ";") {
					if name, value, ok := strings.Cut(header, ": "); ok {
						w.Header().Set(name, value)
					}
				}
				body(c.status, c.body)(w, r)
			})
			_, err := m.Ask(t.Context(), uuid.Nil, ask)
			want := &Error{Kind: c.want, Model: "small", Status: c.status, Reason: c.why, RetryAfter: c.after,
				Free: c.status >= 300}
			if !sameError(err, want) {
				t.Errorf("%s: %#v, want %#v", c.body, err, want)
			}
			if strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), "secret") {
				t.Errorf("%v has what was sent, or a key", err)
			}
		})
	}
}

func TestConnectionsThatFail(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	hijack := func(w http.ResponseWriter, before string) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		io.WriteString(conn, before)
		conn.(*net.TCPConn).SetLinger(0) // the close is a reset
		conn.Close()
	}
	reset := func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body); hijack(w, "") }
	middle := func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		hijack(w, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n{")
	}
	p := Provider{Kind: OpenAI, Attempts: 1}
	for name, c := range map[string]struct {
		m    *Configured
		want Error
	}{
		"nobody listens": {at(t, "http://"+closed.Addr().String(), p),
			Error{Reason: "it refuses the connection", Free: true}},
		"no such name": {at(t, "http://name.invalid", p),
			Error{Reason: "its name cannot be resolved", Free: true}},
		"reset":               {served(t, p, reset), Error{Reason: "it reset the connection"}},
		"reset in the middle": {served(t, p, middle), Error{Reason: "the connection broke in the middle of the answer"}},
	} {
		_, err := c.m.Ask(t.Context(), uuid.Nil, ask)
		c.want.Kind, c.want.Model = ErrUnavailable, "small"
		if !sameError(err, &c.want) {
			t.Errorf("%s: %#v, want %#v", name, err, c.want)
		}
	}
}
