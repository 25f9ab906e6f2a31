// Command flows runs one append, one read of a stored view and one compaction, and prints which functions ran. It must
// be built with -cover -covermode=atomic. Its test compares what it prints with the lists of docs/design.md.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/coverage"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

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
	flows := map[string][]function{}
	stop := w.work()
	// What happens once in a process happens here.
	w.compact()
	compaction := w.always(func() {}, func() { w.append(40); w.compact() }) // the appends may ask for it
	stop()
	idle := w.functions(func() {}, func() { time.Sleep(3 * time.Second) })
	one := func() { w.append(1) }
	flows["One append"] = without(w.always(one, one), idle)
	flows["One read"] = without(w.always(w.view, w.view), idle)
	flows["One compaction"] = without(compaction, flows["One append"])
	check(json.NewEncoder(os.Stdout).Encode(flows))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func without(ran, others []function) []function {
	return slices.DeleteFunc(ran, func(f function) bool {
		return slices.ContainsFunc(others, func(other function) bool { return other.Name == f.Name })
	})
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
		list, err := w.store.Runs(ctx, at, session.Page{Limit: 100})
		check(err)
		if found := list[0]; found.ID == run.ID && found.FinishedAt != nil && counted() >= len(list) {
			if found.State != session.RunDone {
				log.Fatalf("the run is %s: %s", found.State, found.Reason)
			}
			return
		}
	}
	log.Fatal("no worker has compacted the session")
}

// counted returns how many runs the worker has counted, which is the last that it does of each.
func counted() (runs int) {
	families, err := prometheus.DefaultGatherer.Gather()
	check(err)
	for _, family := range families {
		if family.GetName() == "varve_compaction_runs_total" {
			for _, metric := range family.GetMetric() {
				runs += int(metric.GetCounter().GetValue())
			}
		}
	}
	return runs
}

// work starts a worker that does nothing by itself for an hour.
func (w *world) work() (stop func()) {
	config := jobs.Config{Store: w.workers, SweepEvery: time.Hour, VerifyRound: -1, KeepWhole: true}
	client, err := jobs.NewClient(w.workers.Pool(), config)
	check(err)
	check(client.Start(context.Background()))
	return func() { check(client.Stop(context.Background())) }
}

// function is one that ran. Its size is how many statements of it ran.
type function struct {
	Name string
	Size int
}

// always returns the functions that run each of two times, which what the process does beside does not.
func (w *world) always(before, do func()) []function {
	first := w.functions(before, do)
	return slices.DeleteFunc(w.functions(before, do), func(f function) bool {
		return !slices.ContainsFunc(first, func(other function) bool { return other.Name == f.Name })
	})
}

// functions returns the functions that run while do does, as package.Function or package.Type.Method. What before reads
// is in the caches then.
func (w *world) functions(before, do func()) (ran []function) {
	dir, err := os.MkdirTemp("", "varve-flows-")
	check(err)
	defer os.RemoveAll(dir)
	before()
	check(coverage.ClearCounters())
	do()
	check(coverage.WriteCountersDir(dir))
	check(coverage.WriteMetaDir(dir))
	blocks := filepath.Join(dir, "blocks")
	check(exec.Command("go", "tool", "covdata", "textfmt", "-i="+dir, "-o="+blocks).Run())
	text, err := os.ReadFile(blocks)
	check(err)
	statements := map[string]map[int]int{} // that ran, by file and line
	block := regexp.MustCompile(`^(\S+):(\d+)\.\d+,\S+ (\d+) ([1-9]\d*)$`)
	for line := range strings.Lines(string(text)) {
		if m := block.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			if statements[m[1]] == nil {
				statements[m[1]] = map[int]int{}
			}
			statements[m[1]][number(m[2])] += number(m[3])
		}
	}
	listed, err := exec.Command("go", "tool", "covdata", "func", "-i="+dir).Output()
	check(err)
	return sized(string(listed), statements)
}

// sized reads a list of functions, in which those of a file follow one another.
func sized(listed string, statements map[string]map[int]int) (ran []function) {
	entry := regexp.MustCompile(`(?m)^(\S+/(\w+)/[^/]+\.go):(\d+):\s+(\S+)\s+\d+\.\d+%$`)
	all := entry.FindAllStringSubmatch(listed, -1)
	for i, m := range all {
		from, to := number(m[3]), math.MaxInt
		if i+1 < len(all) && all[i+1][1] == m[1] {
			to = number(all[i+1][3])
		}
		f := function{Name: m[2] + "." + strings.NewReplacer("*", "", "(", "", ")", "").Replace(m[4])}
		for line, n := range statements[m[1]] {
			if line >= from && line < to {
				f.Size += n
			}
		}
		if f.Size > 0 {
			ran = append(ran, f)
		}
	}
	return ran
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	check(err)
	return n
}
