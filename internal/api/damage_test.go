package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/api"
	"github.com/varve-dev/varve/internal/api/apitest"
	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
	"github.com/varve-dev/varve/internal/zframe"
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

// otherBody returns the literal of a body of the right size that decompresses to something else.
func otherBody(size int) string {
	text := bytes.Repeat([]byte(" "), size)
	copy(text, `{"role":"user","content":"another"}`)
	return fmt.Sprintf(`'\x%x'`, zframe.Compress(text))
}

// checkpointDamages are statements that damage checkpoint %n. %other is a body of the same size.
var checkpointDamages = map[string]string{
	"body cut":                     `UPDATE checkpoints SET body = substr(body, 1, length(body) / 2) WHERE n = %n`,
	"body overwritten":             `UPDATE checkpoints SET body = overlay(body PLACING 'damaged' FROM 50) WHERE n = %n`,
	"body of another":              `UPDATE checkpoints SET body = %other WHERE n = %n`,
	"body gone":                    `UPDATE checkpoints SET body = NULL WHERE n = %n`,
	"body cut, without a digest":   `UPDATE checkpoints SET body = substr(body, 1, length(body) / 2), body_digest = NULL WHERE n = %n`,
	"units unreadable":             `UPDATE checkpoints SET units = '"x"' WHERE n = %n`,
	"units others":                 `UPDATE checkpoints SET units = jsonb_set(units, '{0,tokens}', '1') WHERE n = %n`,
	"validator's state":            `UPDATE checkpoints SET validator_state = set_byte(validator_state, 0, 7) WHERE n = %n`,
	"open calls":                   `UPDATE checkpoints SET open_calls = '{x}' WHERE n = %n`,
	"digest":                       `UPDATE checkpoints SET body_digest = set_byte(body_digest, 0, 255 - get_byte(body_digest, 0)) WHERE n = %n`,
	"size in the session":          `UPDATE sessions SET checkpoint_size = checkpoint_size - 1`,
	"row gone":                     `DELETE FROM checkpoints WHERE n = %n`,
	"state overwritten, body, too": `UPDATE checkpoints SET state = 'x', body = 'x' WHERE n = %n`,
}

// restart makes a process of the world that holds nothing in memory.
func (w *world) restart() {
	w.Helper()
	inserts, err := queue.New(w.store.Pool())
	if err != nil {
		w.Fatal(err)
	}
	w.store = postgres.New(w.store.Pool(), inserts, compactor.CapAtIngest)
	w.server = api.New(api.Config{Store: w.store, Log: w.server.Log})
}

// workUntil lets a worker work until done.
func (w *world) workUntil(done func() bool) {
	w.Helper()
	w.whileWorking(func() {
		w.until("the worker has come to it", done)
	})
}

// runsBy returns the runs of a session with this cause, newest first.
func (w *world) runsBy(path, cause string) (runs []session.Run) {
	w.Helper()
	list := decoded[struct{ Data []session.Run }](w.must(http.StatusOK, "GET", path+"/runs", ""))
	return slices.DeleteFunc(list.Data, func(r session.Run) bool { return r.Cause != cause })
}

// degradedRead reads a view, which must be one that stands in for the newest.
func (w *world) degradedRead(query, encoding string, newest int) {
	w.Helper()
	got := w.must(http.StatusOK, "GET", query, "", "Accept-Encoding", encoding)
	body := got.Body.Bytes()
	if got.Header().Get("Content-Encoding") == "zstd" {
		body = []byte(unzstd(w, body))
	}
	var v renderedView
	if err := json.Unmarshal(body, &v); err != nil {
		w.Fatalf("%s: %v: %.200s", query, err, body)
	}
	if !v.Degraded || v.Checkpoint >= newest || got.Header().Get("ETag") != `W/"degraded"` {
		w.Errorf("%s: degraded %v, checkpoint %d of %d, ETag %s", query, v.Degraded, v.Checkpoint, newest, got.Header().Get("ETag"))
	}
	for _, violation := range wiretest.Validate(*v.Format, v.bodies(), wire.Options{}) {
		w.Errorf("%s: message %d breaks %s: %s", query, violation.Message, violation.Rule, violation.Detail)
	}
}

func TestADamagedCheckpointIsDoneWithoutAndHeals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var path string
	w.whileWorking(func() { path = w.compacted("openai-chat") })
	for name, damage := range checkpointDamages {
		w.restart()
		good := decoded[session.Session](w.must(http.StatusOK, "GET", path, ""))
		size := decoded[struct{ Data []session.CheckpointRecord }](w.must(http.StatusOK, "GET", path+"/checkpoints", "")).Data[0].BodyBytes
		w.exec(strings.NewReplacer("%n", fmt.Sprint(good.Checkpoint), "%other", otherBody(size)).Replace(damage))
		before := apitest.Metric(t, "varve_damaged_total", "checkpoint")
		asked := len(w.runsBy(path, "damage"))
		for _, read := range readsOf(path) {
			w.degradedRead(read[0], read[1], good.Checkpoint)
		}
		w.must(http.StatusOK, "GET", "/v1/conversations/openai-chat/items?view=compacted", "")
		w.must(http.StatusOK, "POST", path+"/preview", "")
		if apitest.Metric(t, "varve_damaged_total", "checkpoint") < before+float64(len(readsOf(path))) {
			t.Errorf("%s: the damage was not counted", name)
		}
		if name != "body gone" && name != "size in the session" { // then the checkpoint itself is as one that was pruned, or whole
			w.checkNamed(name, path, good.Checkpoint)
		}
		runs := w.runsBy(path, "damage")
		if len(runs) != asked+1 || runs[0].State != session.RunQueued {
			t.Fatalf("%s: %d runs were asked for, not one: %+v", name, len(runs)-asked, runs)
		}
		w.workUntil(func() bool { return w.runsBy(path, "damage")[0].State.Ended() })
		if run := w.runsBy(path, "damage")[0]; run.State != session.RunDone {
			t.Errorf("%s: the run is %s: %v %s", name, run.State, run.Error, run.Reason)
		}
		v := w.read(path, session.OpenAIChat, "")
		if v.Degraded || v.Checkpoint != good.Checkpoint+1 {
			t.Errorf("%s: healed: degraded %v, checkpoint %d after %d", name, v.Degraded, v.Checkpoint, good.Checkpoint)
		}
	}
}

// checkNamed asks for the damaged checkpoint n by itself.
func (w *world) checkNamed(name, path string, n int) {
	w.Helper()
	what := fmt.Sprint("checkpoint ", n)
	at := fmt.Sprintf("%s/checkpoints/%d", path, n)
	w.ask("GET", at+"/context", "").isDamaged(what, name+": context")
	w.ask("GET", at+"/context", "", "Accept-Encoding", "zstd").isDamaged(what, name+": context as zstd")
	if !strings.HasSuffix(name, "without a digest") {
		w.ask("GET", at+"/diff", "").isDamaged(what, name+": diff")
		w.ask("GET", fmt.Sprintf("%s/checkpoints/1/diff?to=%d", path, n), "").isDamaged(what, name+": diff to it")
		w.ask("POST", at+"/restore", "").isDamaged(what, name+": restore")
	}
}

// whileWorking does something that needs a worker.
func (w *world) whileWorking(do func()) {
	w.Helper()
	client, err := jobs.NewClient(w.admin.Pool(), jobs.Config{Store: w.admin})
	if err != nil {
		w.Fatal(err)
	}
	if err := client.Start(w.Context()); err != nil {
		w.Fatal(err)
	}
	do()
	if err := client.Stop(w.Context()); err != nil {
		w.Fatal(err)
	}
}

// heal damages checkpoints, reads the view, and lets a worker end the run that the read asks for.
func (w *world) heal(path, damage string, status int) session.Run {
	w.Helper()
	before := len(w.runsBy(path, "damage"))
	w.exec(damage)
	w.restart()
	w.workUntil(func() bool { // a read does not wait for the session's lock: then the next one asks
		w.must(status, "GET", path+"/context", "", "Accept-Encoding", "zstd")
		runs := w.runsBy(path, "damage")
		return len(runs) == before+1 && runs[0].State.Ended()
	})
	return w.runsBy(path, "damage")[0]
}

var messageIsDamaged = regexp.MustCompile(`message \d+ is damaged`)

func TestARunWhoseLogIsDamagedSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var path string
	w.whileWorking(func() { path = w.compacted("openai-chat") })
	newest := decoded[session.Session](w.must(http.StatusOK, "GET", path, "")).Checkpoint
	w.exec(`UPDATE messages SET body = 'x' WHERE seq = 3 AND body IS NOT NULL; UPDATE message_packs SET body = substr(body, 1, 20)`)
	if v := w.read(path, session.OpenAIChat, ""); v.Degraded || v.Checkpoint != newest {
		t.Errorf("a covered message is damaged: degraded %v, checkpoint %d", v.Degraded, v.Checkpoint)
	}
	damage := fmt.Sprintf(`UPDATE checkpoints SET body = 'x' WHERE n = %d`, newest)
	if run := w.heal(path, damage, http.StatusOK); run.State != session.RunDone || !messageIsDamaged.MatchString(run.Reason) {
		t.Errorf("with an older checkpoint: the run is %s: %s", run.State, run.Reason)
	}
	if v := w.read(path, session.OpenAIChat, ""); v.Degraded || v.Checkpoint <= newest {
		t.Errorf("with an older checkpoint: degraded %v, checkpoint %d after %d", v.Degraded, v.Checkpoint, newest)
	}
	run := w.heal(path, `UPDATE checkpoints SET body = 'x' WHERE body IS NOT NULL`, http.StatusInternalServerError)
	if run.State != session.RunFailed || run.Error == nil || !messageIsDamaged.MatchString(*run.Error) {
		t.Errorf("with no whole checkpoint: the run is %s: %v", run.State, run.Error)
	}
	if got := w.ask("GET", path+"/context", ""); got.Code != http.StatusInternalServerError || decoded[problem](got).Code != "damaged" {
		t.Errorf("with no whole checkpoint: %d %s", got.Code, got.Body)
	}
	var live int
	if err := w.admin.Pool().QueryRow(t.Context(), `SELECT count(*) FROM river_job WHERE kind = 'compact' AND state IN ('available', 'retryable', 'scheduled', 'running') AND tags <> '{quarantined}'`).Scan(&live); err != nil || live != 0 {
		t.Errorf("%d jobs try again, %v", live, err)
	}
}

func TestASessionThatIsNotCompactedHealsByGoingBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var path string
	w.whileWorking(func() { path = w.compacted("openai-chat") })
	w.must(http.StatusOK, "PATCH", path, `{"policy":{"enabled":false}}`)
	for range 2 { // to a checkpoint, and to the log
		newest := decoded[session.Session](w.must(http.StatusOK, "GET", path, "")).Checkpoint
		if run := w.heal(path, fmt.Sprintf(`UPDATE checkpoints SET body = 'x' WHERE n >= %d OR %d > 3`, newest, newest), http.StatusOK); run.State != session.RunDone {
			t.Errorf("the run is %s: %v %s", run.State, run.Error, run.Reason)
		}
		if v := w.read(path, session.OpenAIChat, ""); v.Degraded || v.Checkpoint != newest+1 {
			t.Errorf("degraded %v, checkpoint %d after %d", v.Degraded, v.Checkpoint, newest)
		}
	}
}

func TestACompactionFromADamagedStateStartsFromTheLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var path string
	w.whileWorking(func() { path = w.compacted("openai-chat") })
	newest := decoded[session.Session](w.must(http.StatusOK, "GET", path, "")).Checkpoint
	for _, damage := range []string{`state = substr(state, 1, 20)`, `state = (SELECT state FROM checkpoints WHERE n = 1)`, `state = NULL`} {
		before := apitest.Metric(t, "varve_damaged_total", "state")
		w.exec(fmt.Sprintf(`UPDATE checkpoints SET `+damage+` WHERE n = %d`, newest))
		w.restart()
		if v := w.read(path, session.OpenAIChat, ""); v.Degraded {
			t.Errorf("%s: the view does not need the state, but is degraded", damage)
		}
		w.whileWorking(func() {
			run := decoded[session.Run](w.must(http.StatusOK, "POST", path+"/compact?wait=20", ""))
			if run.State != session.RunDone || !strings.Contains(string(run.Report), "state of checkpoint") {
				t.Errorf("%s: the run is %s: %v", damage, run.State, run.Error)
			}
		})
		if apitest.Metric(t, "varve_damaged_total", "state") <= before {
			t.Errorf("%s: the damage was not counted", damage)
		}
		newest++
	}
}
