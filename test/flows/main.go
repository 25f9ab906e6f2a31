// Command flows runs one append, one read of a stored view and one compaction, and prints which functions ran. It must
// be built with -cover -covermode=atomic. Its test compares what it prints with the lists of docs/design.md.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"runtime/coverage"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/api"
	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

// main takes the URLs of a migrated database for the logins of an API, a worker and an operator.
func main() {
	w := newWorld(os.Args[1], os.Args[2], os.Args[3])
	flows := map[string][]string{}
	stop := w.work()
	// What happens once in a process happens here.
	w.compact()
	flows["One compaction"] = w.functions(func() { w.append(40); w.compact() }) // the appends may ask for it
	stop()
	idle := w.functions(func() { time.Sleep(3 * time.Second) })
	flows["One append"] = without(w.functions(func() { w.append(1) }), idle)
	flows["One read"] = without(w.functions(w.view), idle)
	check(json.NewEncoder(os.Stdout).Encode(flows))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func without(names, others []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(others, name) })
}

// world is an API and a tenant with one session.
type world struct {
	store, workers *postgres.Store
	server         *api.Server
	tenant         uuid.UUID
	turns          int // that were appended
	key            string
}

func newWorld(apiURL, workerURL, operatorURL string) *world {
	ctx := context.Background()
	w := &world{store: open(apiURL), workers: open(workerURL)}
	operator := open(operatorURL)
	p := policy.Default()
	p.Idle.Enabled = false
	made, err := operator.CreateTenant(ctx, "acme",
		session.Policy{Trigger: p.Trigger, Hard: p.Hard, Document: p.Document(), Patch: []byte(`{}`)})
	check(err)
	w.tenant, w.key = made.ID, session.NewAPIKey(made.ID)
	_, err = operator.CreateKey(ctx, w.tenant, session.NewKey{Text: w.key, Scopes: session.KeyScopes()})
	check(err)
	w.server = api.New(api.Config{Store: w.store})
	w.call("PUT", "", `{"format":"openai-chat","window_tokens":128000}`)
	w.append(40)
	w.view()
	return w
}

func open(dsn string) *postgres.Store {
	pool, err := postgres.Open(context.Background(), dsn, 8)
	check(err)
	inserts, err := queue.New(pool)
	check(err)
	return postgres.New(pool, inserts, compactor.CapAtIngest)
}

func (w *world) call(method, path, body string) {
	r := httptest.NewRequest(method, "/v1/sessions/s"+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+w.key)
	r.Header.Set("Accept-Encoding", "zstd")
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	answer := httptest.NewRecorder()
	w.server.ServeHTTP(answer, r)
	if answer.Code >= http.StatusBadRequest {
		log.Fatalf("%s %s: %d %s", method, path, answer.Code, answer.Body)
	}
}

// append appends a question, a call of a tool with its result, and an answer, a number of times.
func (w *world) append(turns int) {
	for range turns {
		w.turns++
		w.call("POST", "/messages", fmt.Sprintf(`{"messages":[
			{"role":"user","content":"question %[1]d"},
			{"role":"assistant","tool_calls":[
				{"id":"call_%[1]d","type":"function","function":{"name":"read","arguments":"{}"}}]},
			{"role":"tool","tool_call_id":"call_%[1]d","content":"result %[1]d %[2]s"},
			{"role":"assistant","content":"answer"}]}`, w.turns, strings.Repeat(fmt.Sprint("word", w.turns, " "), 400)))
	}
}

func (w *world) view() { w.call("GET", "/context", "") }

// compact asks for a compaction and waits for its end.
func (w *world) compact() {
	ctx, at := context.Background(), session.Address{Tenant: w.tenant, ID: "s"}
	run, _, err := w.store.Compact(ctx, at, nil)
	check(err)
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		list, err := w.store.Runs(ctx, at, session.Page{Limit: 1})
		check(err)
		if found := list[0]; found.ID == run.ID && found.FinishedAt != nil {
			if found.State != session.RunDone {
				log.Fatalf("the run is %s: %s", found.State, found.Reason)
			}
			return
		}
	}
	log.Fatal("no worker has compacted the session")
}

// work starts a worker that does nothing by itself for an hour.
func (w *world) work() (stop func()) {
	config := jobs.Config{Store: w.workers, SweepEvery: time.Hour, VerifyRound: -1}
	client, err := jobs.NewClient(w.workers.Pool(), config)
	check(err)
	check(client.Start(context.Background()))
	return func() { check(client.Stop(context.Background())) }
}

// functions returns the functions that run while do does, as package.Function or package.Type.Method.
func (w *world) functions(do func()) (names []string) {
	dir, err := os.MkdirTemp("", "varve-flows-")
	check(err)
	defer os.RemoveAll(dir)
	check(coverage.ClearCounters())
	do()
	check(coverage.WriteCountersDir(dir))
	check(coverage.WriteMetaDir(dir))
	out, err := exec.Command("go", "tool", "covdata", "func", "-i="+dir).Output()
	check(err)
	line := regexp.MustCompile(`^(\S+)/[^/]+\.go:\d+:\s+(.+?)\s+(\d+\.\d+)%$`)
	for text := range bytes.Lines(out) {
		m := line.FindStringSubmatch(strings.TrimSpace(string(text)))
		if m == nil || m[3] == "0.0" {
			continue
		}
		folder := m[1][strings.LastIndexByte(m[1], '/')+1:]
		name := folder + "." + strings.NewReplacer("*", "", "(", "", ")", "").Replace(m[2])
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
