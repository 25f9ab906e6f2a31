package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/session"
)

type tokensAnswer struct {
	Tokenizer string `json:"tokenizer"`
	Tokens    int    `json:"tokens"`
	Messages  []struct {
		Tokens int `json:"tokens"`
		Parts  []struct {
			Kind   string `json:"kind"`
			Tokens int    `json:"tokens"`
		} `json:"parts"`
	} `json:"messages"`
}

func TestTokensCountsATextByEveryTokenizer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	text := `"text":"The quick brown fox jumps over the lazy dog."`
	for body, want := range map[string]string{
		`{` + text + `}`:                                         "estimate",
		`{` + text + `,"model":"claude-opus-4"}`:                 "estimate",
		`{` + text + `,"tokenizer":"o200k"}`:                     "o200k 10",
		`{` + text + `,"tokenizer":"cl100k"}`:                    "cl100k 10",
		`{` + text + `,"model":"gpt-4o-mini"}`:                   "o200k 10",
		`{` + text + `,"model":"openai/gpt-4-turbo"}`:            "cl100k 10",
		`{` + text + `,"model":"gpt-4o","tokenizer":"estimate"}`: "estimate",
		`{"text":""}`: "estimate 0",
		`{"text":"\u0000\ud800","tokenizer":"o200k"}`:                           "o200k",
		`{"text":"` + strings.Repeat("a", 1<<20) + `","tokenizer":"cl100k"}`:    "cl100k 131072",
		`{"text":"` + strings.Repeat("word ", 1<<15) + `","tokenizer":"o200k"}`: "o200k 32769",
	} {
		got := decoded[tokensAnswer](w.must(http.StatusOK, "POST", "/v1/tokens", body))
		if text := fmt.Sprintf("%s %d", got.Tokenizer, got.Tokens); !strings.HasPrefix(text, want) {
			t.Errorf("%.100s: %s, want %s", body, text, want)
		}
	}
}

func TestTokensCountsMessagesByTheirParts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	messages := `[{"role":"user","content":"hello world"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","function":{"name":"read","arguments":"{\"path\":\"a.go\"}"}}]},
		{"role":"tool","tool_call_id":"c","content":[{"type":"text","text":"hello world"},{"type":"image_url","image_url":{"url":"https://example.org/a.png","detail":"low"}}]}]`
	for tokenizer, want := range map[string][]string{
		"estimate": {"text 2", "call 7", "result 87"},
		"o200k":    {"text 2", "call 7", "result 87"},
	} {
		body := `{"format":"openai-chat","tokenizer":"` + tokenizer + `","messages":` + messages + `}`
		got := decoded[tokensAnswer](w.must(http.StatusOK, "POST", "/v1/tokens", body))
		var parts []string
		sum := 0
		for _, m := range got.Messages {
			sum += m.Tokens
			for _, p := range m.Parts {
				parts = append(parts, fmt.Sprint(p.Kind, " ", p.Tokens))
			}
		}
		if diff := cmp.Diff(want, parts); diff != "" || got.Tokens != sum || got.Tokenizer != tokenizer {
			t.Errorf("%s: %d tokens of %d in messages (-want +got):\n%s", tokenizer, got.Tokens, sum, diff)
		}
	}
}

func TestTokensOfMessagesAreThoseThatAnAppendCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	body := batch("anthropic", user("how are you?"), `{"role":"assistant","content":[{"type":"thinking","thinking":"well"},{"type":"text","text":"fine"}]}`)
	appended := decoded[session.Appended](w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", body))
	counted := decoded[tokensAnswer](w.must(http.StatusOK, "POST", "/v1/tokens", body))
	if int64(counted.Tokens) != appended.Tokens {
		t.Errorf("%d tokens are counted, %d were appended", counted.Tokens, appended.Tokens)
	}
}

func TestTokensTellsEveryProblemAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for body, want := range map[string][]string{
		`{"format":"x","tokenizer":"p50k","model":7,"text":1,"texts":2}`: {"/format", "/tokenizer", "/model", "/text", "/texts"},
		`{}`:                                     {"/messages"},
		`{"format":"openai-chat","text":"a"}`:    {"/format"},
		`{"messages":[],"text":"a"}`:             {"/text"},
		`{"messages":[` + user("a") + `]}`:       {"/format"},
		`{"format":"openai-chat","messages":[]}`: {"/messages"},
		`{"format":"openai-chat","messages":[{"content":"a"},` + user("b") + `,7]}`:                        {"/messages/0/role", "/messages/2"},
		`{"format":"openai-chat","messages":[` + strings.Repeat(user("a")+",", 100_000) + user("a") + `]}`: {"/messages"},
		`{"format":"anthropic","messages":[{"role":""}],"tokenizer":"o200k"}`:                              {"/messages/0/role"},
	} {
		got := w.ask("POST", "/v1/tokens", body)
		p := decoded[problem](got)
		checkProblem(t, got, p)
		var pointers []string
		for _, e := range p.Errors {
			pointers = append(pointers, e.Pointer)
		}
		if diff := cmp.Diff(want, pointers); diff != "" {
			t.Errorf("%.100s (-want +got):\n%s", body, diff)
		}
	}
	w.must(http.StatusUnauthorized, "POST", "/v1/tokens", `{"text":"a"}`, "Authorization", "")
}

type sessionUsage struct {
	Calibration      float64        `json:"calibration"`
	UnseenTokens     int64          `json:"unseen_tokens"`
	ContextTokens    int64          `json:"context_tokens"`
	CalibratedTokens int64          `json:"calibrated_tokens"`
	LastUsage        *session.Usage `json:"last_usage"`
}

func TestUsageCountsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"overhead_tokens":1000}`)
	if fresh := decoded[sessionUsage](w.must(http.StatusOK, "GET", "/v1/sessions/s", "")); fresh.Calibration != 1 || fresh.LastUsage != nil || fresh.CalibratedTokens != 1000 {
		t.Errorf("a new session: %+v", fresh)
	}
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user(strings.Repeat("several words of text ", 200))))
	before := decoded[sessionUsage](w.must(http.StatusOK, "GET", "/v1/sessions/s", ""))
	sent := before.ContextTokens + 1000
	usage := fmt.Sprintf(`{"model":"m","input_tokens":%d,"cache_creation_tokens":200,"cache_read_tokens":%d,"output_tokens":7}`, sent/2, 2*sent-200-sent/2)
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", `{"messages":[{"role":"assistant","content":"yes"}],"usage":`+usage+`}`)
	after := decoded[sessionUsage](w.must(http.StatusOK, "GET", "/v1/sessions/s", ""))
	want := &session.Usage{Model: "m", InputTokens: sent / 2, CacheCreationTokens: 200, CacheReadTokens: 2*sent - 200 - sent/2, OutputTokens: 7}
	if diff := cmp.Diff(want, after.LastUsage); diff != "" || after.Calibration != 1 {
		t.Errorf("calibration %v, want 1; usage (-want +got):\n%s", after.Calibration, diff)
	}
	if after.CalibratedTokens != 2*sent+7 || after.UnseenTokens != after.CalibratedTokens-after.ContextTokens-1000 {
		t.Errorf("%+v, want %d calibrated tokens", after, 2*sent+7)
	}
}

func TestAWrongUsageIsRefusedWithEveryProblem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	for usage, want := range map[string][]string{
		`7`:    {"/usage"},
		`null`: {"/usage"},
		`{}`:   {"/usage/input_tokens"},
		`{"input_tokens":-1,"cache_read_tokens":1.5,"output_tokens":"3","cache_creation_tokens":1000000001,"model":1,"total":2}`: {
			"/usage/input_tokens", "/usage/cache_read_tokens", "/usage/output_tokens", "/usage/cache_creation_tokens", "/usage/model", "/usage/total",
		},
	} {
		got := w.ask("POST", "/v1/sessions/s/messages", `{"format":"openai-chat","messages":[`+user("a")+`],"usage":`+usage+`}`)
		p := decoded[problem](got)
		checkProblem(t, got, p)
		var pointers []string
		for _, e := range p.Errors {
			pointers = append(pointers, e.Pointer)
		}
		if diff := cmp.Diff(want, pointers); diff != "" {
			t.Errorf("%s (-want +got):\n%s", usage, diff)
		}
	}
}

func TestAFormulaOfThePolicyCountsTheSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	body := batch("openai-chat", user(strings.Repeat("é ", 50)), `{"role":"assistant","content":"hi","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}`)
	for formula, want := range map[string]int64{
		"chars4": 25 + 1, "json-chars4": 26 + 2, "bytes4": 38 + 1, "runes4": 25,
	} {
		w.must(http.StatusCreated, "PUT", "/v1/sessions/"+formula, `{"policy":{"tokens":{"tokenizer":"`+formula+`"}}}`)
		appended := decoded[session.Appended](w.must(http.StatusCreated, "POST", "/v1/sessions/"+formula+"/messages", body))
		got := decoded[sessionUsage](w.must(http.StatusOK, "GET", "/v1/sessions/"+formula, ""))
		if appended.Tokens != want || got.Calibration != 1 {
			t.Errorf("%s counts %d tokens, want %d; factor %v", formula, appended.Tokens, want, got.Calibration)
		}
	}
}

func TestAnExactTokenizerOfThePolicyCalibratesTheSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/exact", `{"policy":{"tokens":{"tokenizer":"o200k"}}}`)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/estimated", "")
	body := batch("openai-chat", user(strings.Repeat("antidisestablishmentarianism ", 50)))
	counted := decoded[tokensAnswer](w.must(http.StatusOK, "POST", "/v1/tokens", strings.TrimSuffix(body, "}")+`,"tokenizer":"o200k"}`))
	want := map[string]float64{"estimated": 1}
	for _, id := range []string{"exact", "estimated"} {
		appended := decoded[session.Appended](w.must(http.StatusCreated, "POST", "/v1/sessions/"+id+"/messages", body))
		if id == "exact" {
			want[id] = float64(float32(counted.Tokens) / float32(appended.Tokens))
		}
		got := decoded[sessionUsage](w.must(http.StatusOK, "GET", "/v1/sessions/"+id, ""))
		if diff := got.Calibration - want[id]; diff > 1e-4 || diff < -1e-4 {
			t.Errorf("%s: factor %v, want %v", id, got.Calibration, want[id])
		}
	}
	w.must(http.StatusNotFound, "POST", "/v1/sessions/none/messages", body)
}
