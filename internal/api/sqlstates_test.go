package api_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/varve-dev/varve/internal/session"
)

// TestWhatTheDatabaseCannotDoNowMayBeTriedAgain has PostgreSQL refuse an append in ways that are no fault of ours. The
// first comes about as it does in operation; a trigger raises the others, most of which would take the database along.
func TestWhatTheDatabaseCannotDoNowMayBeTriedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"format":"openai-chat"}`)
	append := func(state, code, after string) {
		t.Helper()
		got := w.must(http.StatusServiceUnavailable, "POST", "/v1/sessions/s/messages", batch("openai-chat", user("x")))
		h := got.Header()
		if p := decoded[problem](got); p.Code != code || !p.Retryable || h.Get("Retry-After") != after {
			t.Errorf("%s is answered with Retry-After %s: %s", state, h.Get("Retry-After"), got.Body)
		}
	}
	for _, conn := range w.store.Pool().AcquireAllIdle(t.Context()) {
		if _, err := conn.Exec(t.Context(), `SET lock_timeout = '5ms'`); err != nil {
			t.Fatal(err)
		}
		conn.Release()
	}
	unlock := w.lock(`SELECT FROM sessions WHERE id = 's' FOR UPDATE`)
	append("55P03 of a locked session", "session_busy", "1")
	unlock()
	w.exec(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'`)
	w.exec(`CREATE TRIGGER refuse BEFORE INSERT ON messages FOR EACH ROW EXECUTE FUNCTION refuse()`)
	for state, answer := range map[string]struct{ code, after string }{
		"25P03": {"timed_out", "30"},  // idle_in_transaction_session_timeout
		"57014": {"timed_out", "30"},  // statement_timeout
		"58030": {"unavailable", "1"}, // I/O error
		"53100": {"unavailable", "1"}, // disk full
		"28P01": {"unavailable", "1"}, // the password was changed
		"57P01": {"unavailable", "1"}, // terminated by an administrator
		"40001": {"unavailable", "1"}, // serialization
	} {
		w.exec(fmt.Sprintf(`CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql
			AS $$ BEGIN RAISE EXCEPTION 'a test' USING ERRCODE = '%s'; END $$`, state))
		append(state, answer.code, answer.after)
	}
	w.exec(`DROP TRIGGER refuse ON messages`)
	made := decoded[session.Appended](w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user("x"))))
	if made.FirstSeq != 1 {
		t.Errorf("a refused append took a seq: the first is %d", made.FirstSeq)
	}
}
