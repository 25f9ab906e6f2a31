package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
)

// viewQueries are reads of a view that go different ways.
var viewQueries = []string{"", "format=openai-chat", "format=anthropic", "format=gemini", "pending=drop", "max_tokens=100000", "max_tokens=9000", "fit=window&wait=0"}

// readsOf returns the requests that read a session's view, with each encoding.
func readsOf(path string) (reads [][]string) {
	for _, query := range viewQueries {
		for _, encoding := range []string{"zstd", "identity"} {
			reads = append(reads, []string{path + "/context?" + query, encoding})
		}
	}
	return reads
}

// isDamaged requires that an answer says what is damaged, and does not blame the database.
func (a answer) isDamaged(what, of string) {
	a.Helper()
	p := decoded[problem](a)
	if a.Code != http.StatusInternalServerError || p.Code != "damaged" || p.Retryable || !strings.HasPrefix(p.Detail, what+" ") || strings.Contains(p.Detail, "database") {
		a.Errorf("%s: %d %s, want damaged %s", of, a.Code, a.Body, what)
	}
}

// messageDamages are statements that damage the body of message %d, among them one after which it is as long, and JSON.
var messageDamages = []string{
	`UPDATE messages SET body = 'x' WHERE seq = %d`,
	`UPDATE messages SET body = convert_to(translate(convert_from(body, 'UTF8'), 'k', 'q'), 'UTF8') WHERE seq = %d`,
	`UPDATE messages SET body = '' WHERE seq = %d`,
	`UPDATE messages SET body = body || ',{"role":"user","content":"more"}' WHERE seq = %d`,
}

func TestADamagedMessageOfATailIsNeverServed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	path := w.compacted("anthropic") // whose system prompt is separate from the messages
	other := w.compacted("openai-chat")
	last := decoded[session.Session](w.must(http.StatusOK, "GET", path, "")).LastSeq
	for _, seq := range []int64{1, last, last - 1} {
		for _, damage := range messageDamages {
			w.exec(`CREATE TABLE whole AS SELECT * FROM messages`)
			damage = fmt.Sprintf(damage, seq) + ` AND session_key = (SELECT key FROM sessions WHERE id = 'anthropic')`
			damage = strings.Replace(damage, "'k', 'q'", "'btk', 'pqj'", 1) // something in every one of them
			w.exec(damage)
			for _, read := range readsOf(path) {
				w.ask("GET", read[0], "", "Accept-Encoding", read[1]).isDamaged(fmt.Sprint("message ", seq), read[0]+" "+damage)
			}
			for _, query := range []string{"/context?view=full", "/context?view=full&format=gemini", "/messages?limit=1000", fmt.Sprintf("/messages?from_seq=%d", seq)} {
				w.ask("GET", path+query, "").isDamaged(fmt.Sprint("message ", seq), query+" "+damage)
			}
			w.must(http.StatusOK, "GET", other+"/context", "")
			w.must(http.StatusOK, "GET", fmt.Sprintf("%s/messages?from_seq=2&to_seq=%d", path, last-2), "")
			w.exec(`UPDATE messages m SET body = o.body FROM whole o WHERE m.session_key = o.session_key AND m.seq = o.seq; DROP TABLE whole`)
			w.must(http.StatusOK, "GET", path+"/context", "")
		}
	}
	w.exec(fmt.Sprintf(`DELETE FROM messages WHERE seq = %d AND session_key = (SELECT key FROM sessions WHERE id = 'anthropic')`, last-1))
	if got := w.ask("GET", path+"/context", ""); got.Code != http.StatusInternalServerError || decoded[problem](got).Code != "damaged" {
		t.Errorf("without a message: %d %s", got.Code, got.Body)
	}
}
