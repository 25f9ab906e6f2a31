package api_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/api"
	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

func TestTheDocumentationListsEveryCode(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]int{}
	for _, row := range regexp.MustCompile("(?m)^\\| (\\d{3}) \\| `([a-z_]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		documented[row[2]], _ = strconv.Atoi(row[1])
	}
	if diff := cmp.Diff(documented, api.Codes); diff != "" {
		t.Errorf("docs/errors.md (-) and errors.go (+):\n%s", diff)
	}
	var problems []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		problems = append(problems, row[1])
	}
	if diff := cmp.Diff(problems, api.ProblemCodes); diff != "" {
		t.Errorf("docs/errors.md (-) and errors.go (+):\n%s", diff)
	}
}

// wrongRequests has, for every code, a request that gets it, and words that its detail must have: what to do.
var wrongRequests = map[string]struct {
	ask    func(w *world) answer
	advice string
}{
	"invalid_json": {func(w *world) answer {
		return w.ask("POST", "/v1/sessions/s/messages", `{"messages":[}`)
	}, "byte 13"},
	"unknown_field": {func(w *world) answer {
		return w.ask("POST", "/v1/sessions/s/messages", `{"mesages":[]}`)
	}, `did you mean "messages"?`},
	"invalid_cursor": {func(w *world) answer {
		return w.ask("GET", "/v1/sessions?cursor=abc", "")
	}, "next_cursor"},
	"invalid_idempotency_key": {func(w *world) answer {
		return w.ask("DELETE", "/v1/sessions/s", "", "Idempotency-Key", "two words")
	}, "visible ASCII"},
	"unauthorized": {func(w *world) answer {
		return w.ask("GET", "/v1/sessions", "", "Authorization", "")
	}, "Authorization: Bearer"},
	"forbidden": {func(w *world) answer {
		return w.ask("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "Origin", "https://elsewhere.example")
	}, "another origin"},
	"token_not_allowed": {func(w *world) answer {
		return w.ask("DELETE", "/v1/sessions/s", "", "Authorization", "Bearer "+w.newToken("s", "").Text)
	}, "a key of the tenant"},
	"too_many_tokens": {func(w *world) answer {
		w.newToken("s", "")
		w.exec(`INSERT INTO session_tokens (tenant_id, session_key, id, digest, last4, scopes, made_by, expires_at)
		        SELECT tenant_id, session_key, gen_random_uuid(), sha256(n::text::bytea), last4, scopes, made_by, expires_at FROM session_tokens, generate_series(2, 1000) n`)
		return w.ask("POST", "/v1/sessions/s/tokens", "")
	}, "revoke some"},
	"too_many_pins": {(*world).pinOneTooMany, "DELETE some"},
	"not_found": {func(w *world) answer {
		return w.ask("GET", "/v1/sessions/none", "")
	}, "PUT /v1/sessions/{id}"},
	"method_not_allowed": {func(w *world) answer {
		return w.ask("DELETE", "/v1/sessions", "")
	}, "it has"},
	"format_not_available": {func(w *world) answer {
		return w.ask("GET", "/v1/sessions/s/context?format=xml", "")
	}, "openai-chat"},
	"request_timeout": {func(w *world) answer {
		return w.askLate("POST", "/v1/sessions")
	}, "again"},
	"session_exists": {func(w *world) answer {
		return w.ask("POST", "/v1/sessions", `{"id":"s"}`)
	}, "PUT"},
	"session_differs": {func(w *world) answer {
		return w.ask("POST", "/v1/sessions/s/messages", `{"messages":[`+user("x")+`],"session":{"model":"other"}}`)
	}, "PATCH"},
	"unsupported_source": {func(w *world) answer {
		return w.ask("POST", "/v1/imports", `{"x":1}`)
	}, "varve import --help lists what can be imported"},
	"checkpoint_pruned": {func(w *world) answer {
		w.exec(`INSERT INTO checkpoints (tenant_id, session_key, n, base_n, through_seq, tokens, body_size, units, manifest, policy, engine_version, run_id)
		        SELECT tenant_id, key, 1, 0, 1, 1, 1, '[]', '[]', '{}', 1, gen_random_uuid() FROM sessions WHERE id = 's'`)
		return w.ask("POST", "/v1/sessions/s/checkpoints/1/restore", "")
	}, "/messages"},
	"stale_expected_seq": {func(w *world) answer {
		return w.ask("POST", "/v1/sessions/s/messages", `{"messages":[`+user("x")+`],"expected_seq":0}`)
	}, "read from seq 1, then append with expected_seq 1"},
	"stale_policy_version": {func(w *world) answer {
		return w.ask("PUT", "/v1/policy", `{"target":0.4}`, "If-Match", `"7"`)
	}, "read it anew"},
	"body_too_large": {func(w *world) answer {
		return w.ask("POST", "/v1/sessions/s/messages", strings.Repeat(" ", session.MaxBodyBytes+1))
	}, "fewer messages"},
	"message_too_large": {func(w *world) answer {
		return w.ask("POST", "/v1/sessions/s/messages", batch("openai-chat", user(strings.Repeat("x", session.MaxMessageBytes))))
	}, "8388608"},
	"too_many_messages": {func(w *world) answer {
		return w.ask("POST", "/v1/sessions/s/messages", batch("openai-chat", strings.Split(strings.Repeat(user("x")+";", 1000)+user("x"), ";")...))
	}, "several batches"},
	"unsupported_media_type": {func(w *world) answer {
		return w.ask("POST", "/v1/sessions/s/messages", "messages: []", "Content-Type", "application/yaml")
	}, "application/json"},
	"range_not_satisfiable": {func(w *world) answer {
		ref := w.putResult("s", []byte("0123456789"))
		return w.ask("GET", "/v1/sessions/s/results/"+ref+"?raw=true", "", "Range", "bytes=10-20")
	}, "10 bytes"},
	"invalid_request": {func(w *world) answer {
		return w.ask("PATCH", "/v1/sessions/s", `{"window_tokens":"many","model":3}`)
	}, "whole number"},
	"invalid_message": {func(w *world) answer {
		return w.ask("POST", "/v1/sessions/s/messages", batch("openai-chat", `"hello"`))
	}, "object"},
	"other_format": {func(w *world) answer {
		return w.ask("POST", "/v1/sessions/s/messages", batch("anthropic", `{"role":"tool","tool_call_id":"a","content":"r"}`))
	}, "openai-chat"},
	"needs_repair": {func(w *world) answer {
		return w.ask("PUT", "/v1/sessions/s/messages?strict=true", batch("openai-chat", `{"role":"user","content":"u","extra":1}`))
	}, "views leave it out"},
	"json_too_complex": {func(w *world) answer {
		return w.ask("POST", "/v1/sessions/s/messages", batch("openai-chat", `{"role":"user","content":`+strings.Repeat("[", 70)+strings.Repeat("]", 70)+`}`))
	}, "levels"},
	"unknown_model": {func(w *world) answer {
		return w.ask("PATCH", "/v1/sessions/s?strict=true", `{"model":"gpt-4oo"}`)
	}, "gpt-4o"},
	"client_id_reused": {func(w *world) answer {
		w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", `{"messages":[`+user("x")+`],"client_ids":["m"]}`)
		return w.ask("POST", "/v1/sessions/s/messages", `{"messages":[`+user("y")+`],"client_ids":["m"]}`)
	}, `"m"`},
	"idempotency_key_reused": {func(w *world) answer {
		w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user("x")), "Idempotency-Key", "k")
		return w.ask("POST", "/v1/sessions/s/messages", batch("openai-chat", user("y")), "Idempotency-Key", "k")
	}, "a new one"},
	"session_full": {func(w *world) answer {
		w.exec(`UPDATE sessions SET last_seq = 1000000`)
		return w.ask("POST", "/v1/sessions/s/messages", batch("openai-chat", user("x")))
	}, "new session"},
	"view_cannot_fit": {func(w *world) answer {
		return w.ask("GET", "/v1/sessions/s/context?max_tokens=1", "")
	}, "at least"},
	"window_exceeded": {func(w *world) answer {
		w.must(http.StatusOK, "PATCH", "/v1/sessions/s", `{"window_tokens":1000}`)
		w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", `{"role":"user","content":[`+picture+","+picture+`]}`))
		return w.ask("GET", "/v1/sessions/s/context?fit=window&wait=0", "")
	}, "larger window"},
	"busy": {func(w *world) answer { return w.askBusy() }, "try again"},
	"damaged": {func(w *world) answer {
		w.exec(`UPDATE messages SET body = 'x' WHERE seq = 1`)
		return w.ask("GET", "/v1/sessions/s/messages", "")
	}, "message 1 "},
	"internal": {func(w *world) answer {
		w.exec(`ALTER TABLE runs RENAME TO walks`)
		return w.ask("GET", "/v1/sessions/s/runs", "")
	}, "request id"},
	"over_capacity": {func(w *world) answer {
		w.limit(1<<30, time.Millisecond)
		if _, err := w.server.Memory.Acquire(w.Context(), uuid.New(), 1<<30); err != nil {
			w.Fatal(err)
		}
		return w.ask("POST", "/v1/sessions/s/preview", "")
	}, "Retry-After"},
	"too_heavy": {func(w *world) answer {
		w.limit(1, time.Millisecond)
		defer w.limit(1<<30, time.Minute)
		return w.ask("POST", "/v1/sessions/s/preview", "")
	}, "page by page"},
	"unavailable": {func(w *world) answer {
		w.store.Pool().Close()
		return w.ask("GET", "/v1/sessions/s/runs", "")
	}, "try again"},
	"session_busy": {func(w *world) answer {
		at := session.Address{Tenant: w.tenant, ID: "s"}
		for range 2 {
			pen, err := w.server.Gate.Write(w.Context(), at)
			if err != nil {
				w.Fatal(err)
			}
			defer pen.Done()
		}
		return w.ask("POST", "/v1/sessions/s/messages", batch("openai-chat", user("x")))
	}, "nothing was written"},
	"session_thawing": {func(w *world) answer {
		w.exec(`UPDATE sessions SET frozen_at = now()`)
		w.exec(`INSERT INTO session_archives (tenant_id, session_key, id, state, parts, digest)
			SELECT tenant_id, key, key, 'archived', 1, '' FROM sessions`)
		w.exec(`UPDATE session_archives SET objects = ARRAY[id], sizes = '{10}', store = 1`) // a directory, which this process does not have
		return w.ask("GET", "/v1/sessions/s/messages", "")
	}, "nothing was done"},
	"tenant_busy": {func(w *world) answer {
		w.must(http.StatusOK, "GET", "/v1/sessions/s", "") // the key is known now
		defer w.hold(admit.Interactive, w.tenant)()
		return w.ask("GET", "/v1/sessions/s", "")
	}, "fewer requests at once"},
	"quota_exceeded": {func(w *world) answer {
		limited := *w
		limited.tenant, limited.key = w.newTenant("limited")
		limited.quotas(`{"stored_bytes":1}`)
		limited.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"format":"openai-chat"}`)
		limited.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user("x")))
		w.server.ReadQuotas(limited.tenant)
		return limited.ask("POST", "/v1/sessions/s/messages", batch("openai-chat", user("y")))
	}, "stored_bytes is 1"},
	"rate_limited": {func(w *world) answer {
		var got answer
		for range 1000 { // it is ten a second, and a busy machine asks slowly
			got = w.ask("GET", "/v1/sessions", "", "Authorization", "Bearer "+session.NewAPIKey(w.tenant))
			if got.Code == http.StatusTooManyRequests {
				break
			}
		}
		return got
	}, "check the key"},
	"scope_missing": {func(w *world) answer {
		return w.ask("DELETE", "/v1/sessions/s", "", "Authorization", "Bearer "+w.newKey(session.SessionsRead))
	}, "lacks the scope erase"},
	"key_not_allowed": {func(w *world) answer {
		return w.ask("GET", "/v1/sessions", "", "Authorization", "Bearer "+w.operator)
	}, "takes a key of the tenant"},
	"key_ended": {func(w *world) answer {
		made := id(w.must(http.StatusCreated, "POST", "/v1/keys", `{"role":"viewer"}`))
		w.must(http.StatusNoContent, "DELETE", "/v1/keys/"+made, "")
		return w.ask("POST", "/v1/keys/"+made+"/rotate", "")
	}, "make another"},
	"key_rotated": {func(w *world) answer {
		made := id(w.must(http.StatusCreated, "POST", "/v1/keys", `{"role":"viewer"}`))
		w.must(http.StatusCreated, "POST", "/v1/keys/"+made+"/rotate", "")
		return w.ask("POST", "/v1/keys/"+made+"/rotate", "")
	}, "is the newer one"},
	"tenant_deleted": {func(w *world) answer {
		made := id(w.must(http.StatusCreated, "POST", "/v1/admin/tenants", `{"name":"leaves"}`))
		w.must(http.StatusAccepted, "DELETE", "/v1/admin/tenants/"+made+"?confirm="+made, "")
		return w.ask("PATCH", "/v1/admin/tenants/"+made, `{"suspended":null}`)
	}, "how far that is"},
	"legal_hold": {func(w *world) answer {
		w.must(http.StatusCreated, "PUT", "/v1/sessions/held", "")
		w.must(http.StatusOK, "PUT", "/v1/sessions/held/hold", `{"reason":"case 7"}`)
		return w.ask("DELETE", "/v1/sessions/held", "")
	}, "lifts it"},
	"tenant_exists": {func(w *world) answer {
		return w.ask("POST", "/v1/admin/tenants", `{"name":"acme"}`)
	}, "choose another"},
	"tenant_suspended": {func(w *world) answer {
		made := decoded[protocol.NewTenant](w.must(http.StatusCreated, "POST", "/v1/admin/tenants", `{"name":"held","key":{"role":"viewer"}}`))
		w.must(http.StatusOK, "PATCH", "/v1/admin/tenants/"+made.ID.String(), `{"suspended":"all"}`)
		return w.ask("GET", "/v1/sessions", "", "Authorization", "Bearer "+made.Key.Text)
	}, "refuses all requests"},
	"too_many_keys": {func(w *world) answer {
		full := *w
		full.tenant, full.key = w.newTenant("full")
		full.exec(`INSERT INTO api_keys (tenant_id, id, digest, last4)
			SELECT '` + full.tenant.String() + `', gen_random_uuid(), sha256(n::text::bytea), '' FROM generate_series(2, 1000) n`)
		return full.ask("POST", "/v1/keys", `{"role":"viewer"}`)
	}, "revoke some"},
	"session_archived": {func(w *world) answer {
		w.must(http.StatusCreated, "PUT", "/v1/sessions/old", "")
		w.must(http.StatusAccepted, "POST", "/v1/sessions/old/archive", "")
		return w.ask("GET", "/v1/sessions/old", "")
	}, "/unarchive"},
	"seq_not_reached": {func(w *world) answer {
		return w.ask("GET", "/v1/sessions/s/context?min_seq=99999", "")
	}, "min_seq"},
	"read_only": {func(w *world) answer {
		w.onEachConnection(`SET default_transaction_read_only = on`)
		return w.ask("PUT", "/v1/sessions/unwritten", "")
	}, "primary"},
	"timed_out": {func(w *world) answer {
		w.onEachConnection(`SET statement_timeout = '1ms'`)
		defer w.lock(`LOCK TABLE sessions`)()
		return w.ask("GET", "/v1/sessions/s", "")
	}, "ask for less"},
}

// onEachConnection runs a statement on all connections of the store, once none is busy.
func (w *world) onEachConnection(sql string) {
	w.Helper()
	pool := w.store.Pool()
	w.until("all connections are idle", func() bool { return pool.Stat().IdleConns() == pool.Stat().TotalConns() })
	for _, conn := range pool.AcquireAllIdle(w.Context()) {
		if _, err := conn.Exec(w.Context(), sql); err != nil {
			w.Fatal(err)
		}
		conn.Release()
	}
}

func TestEveryCodeIsAnsweredAndSaysWhatToDo(t *testing.T) {
	t.Parallel()
	waiting := func(patience time.Duration) *world {
		return newWorldSharing(t, io.Discard, admit.NewConnections(10, patience))
	}
	shared := waiting(time.Minute)
	for code, status := range api.Codes {
		wrong, ok := wrongRequests[code]
		if !ok {
			t.Errorf("wrongRequests has no request that gets %s", code)
			continue
		}
		w := shared
		if status >= http.StatusInternalServerError || status == http.StatusTooManyRequests {
			w = waiting(time.Second) // these wait, or leave a server that does not answer all that follow
		}
		w.ask("DELETE", "/v1/sessions/s", "")
		w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
		w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user("hello")))
		got := wrong.ask(w)
		p := decoded[problem](got)
		checkProblem(t, got, p)
		if p.Code != code || p.Status != status || !strings.Contains(p.Detail, wrong.advice) {
			t.Errorf("%d %s\nwant %d %s with %q", got.Code, got.Body, status, code, wrong.advice)
		}
	}
}

// checkProblem checks what every error has in common.
func checkProblem(t testing.TB, got answer, p problem) {
	t.Helper()
	busy := p.Status == 503 && p.Code != "read_only" || p.Status == 429
	retryable := p.Status == 500 && p.Code != "damaged" || p.Status == 408 || busy
	h := got.Header()
	switch {
	case h.Get("Content-Type") != "application/problem+json", h.Get("X-Content-Type-Options") != "nosniff":
		t.Errorf("headers %v", h)
	case p.Status != got.Code, p.Title != http.StatusText(p.Status), p.Type != "about:blank", p.Retryable != retryable:
		t.Errorf("%d: %s", got.Code, got.Body)
	case h.Get("X-Should-Retry") != strconv.FormatBool(retryable), (h.Get("Retry-After") != "") != busy:
		t.Errorf("headers %v for %s", h, got.Body)
	case p.RequestID != h.Get("X-Request-Id"), !strings.HasPrefix(p.RequestID, "req_"), !strings.HasPrefix(p.Instance, "/"):
		t.Errorf("request id %q in the header: %s", h.Get("X-Request-Id"), got.Body)
	case p.Error.Message != p.Detail, p.Error.Code != p.Code, p.Error.Type == "":
		t.Errorf("error member of %s", got.Body)
	case (p.Current != nil) != (p.Code == "stale_expected_seq" || p.Code == "seq_not_reached"), (p.Minimum != nil) != (p.Code == "view_cannot_fit" || p.Code == "window_exceeded"):
		t.Errorf("members of %s", got.Body)
	case (h.Get("Content-Range") != "") != (p.Status == 416), strings.HasPrefix(p.Detail, ":"):
		t.Errorf("headers %v for %s", h, got.Body)
	case len(p.Errors) > 0 && (p.Error.Param == nil || *p.Error.Param != p.Errors[0].Pointer || !strings.Contains(p.Detail, p.Errors[0].Detail)):
		t.Errorf("param or detail is not that of the first problem: %s", got.Body)
	case len(p.Errors) > 0 && p.Code != "invalid_request" && slices.ContainsFunc(p.Errors, func(e session.Problem) bool { return e.Code != p.Code }):
		t.Errorf("the code is not that of all problems: %s", got.Body)
	case (h.Get("Www-Authenticate") != "") != (p.Status == 401 || p.Code == "token_not_allowed" || p.Code == "scope_missing"), (h.Get("Allow") != "") != (p.Status == 405):
		t.Errorf("headers %v for %s", h, got.Body)
	}
}

// exec runs a statement as the tables' owner, who sees the tenant.
func (w *world) exec(sql string) {
	w.Helper()
	conn, err := pgx.Connect(w.Context(), w.dsn)
	if err != nil {
		w.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(w.Context()))
	if _, err := conn.Exec(w.Context(), fmt.Sprintf(`SET app.tenant_id = '%s'`, w.tenant)); err != nil {
		w.Fatal(err)
	}
	if _, err := conn.Exec(w.Context(), sql); err != nil {
		w.Fatal(err)
	}
}

// putResult persists a result of message 1 of a session, as a compaction would.
func (w *world) putResult(id string, body []byte) (ref string) {
	w.Helper()
	return w.putResults(id, 1, body)[0]
}

// putResults persists results of one message.
func (w *world) putResults(id string, seq int64, bodies ...[]byte) (refs []string) {
	w.Helper()
	found, err := w.store.Session(w.Context(), session.Address{Tenant: w.tenant, ID: id})
	if err != nil {
		w.Fatal(err)
	}
	var results []persist.NewResult
	for part, body := range bodies {
		sum := sha256.Sum256(body)
		ref := session.NewResultRef(seq, part, sum).String()
		refs = append(refs, ref)
		results = append(results, persist.NewResult{Body: body, Result: persist.Result{
			Ref: ref, Seq: seq, Part: part, Tool: "Read", CallID: "c", Category: "rereadable", MediaType: "text/plain; charset=utf-8",
			Lines: int64(bytes.Count(body, []byte("\n"))), Tokens: 1, SHA256: sum[:],
		}})
	}
	if _, err := w.store.PutResults(w.Context(), session.Key{Tenant: w.tenant, Key: found.Key}, results); err != nil {
		w.Fatal(err)
	}
	return refs
}
