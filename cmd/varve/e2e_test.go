package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/embedded"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
)

const asVarve = "VARVE_TEST_AS_VARVE"

// TestMain makes the test binary the program itself when a test starts it as such.
func TestMain(m *testing.M) {
	if os.Getenv(asVarve) != "" {
		os.Exit(run(os.Args[1:]))
	}
	code := pgtest.Main(m)
	if err := endShared(); err != nil {
		fmt.Fprintln(os.Stderr, "the varve up that tests share:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// up is a varve up in a process of its own.
type up struct {
	*testing.T
	cmd  *exec.Cmd
	url  string
	key  string
	data string
	log  *lockedBuffer
	said chan struct{} // closed when log is whole

	traceparent string // of requests; "" for none
}

type lockedBuffer struct {
	sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.Lock()
	defer b.Unlock()
	return b.Buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.Lock()
	defer b.Unlock()
	return b.Buffer.String()
}

var readyLine = regexp.MustCompile(`varve is ready on (http://\S+)`)

// program runs this test as varve.
func program(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), asVarve+"=1", "DATABASE_URL=",
		"OPENAI_BASE_URL=", "OPENAI_API_KEY=", "ANTHROPIC_BASE_URL=", "ANTHROPIC_API_KEY=", "VARVE_SUMMARY_MODEL=", "VARVE_LLM=")
	return cmd
}

// startedOnce is the data directory of a varve up that was started and stopped, which others begin with: a new one takes
// initdb and the migrations.
var (
	startedOnceIn string
	startOnce     = sync.OnceValue(func() (err error) {
		if startedOnceIn, err = os.MkdirTemp("", "varve-up-"); err != nil {
			return err
		}
		u, err := begin(filepath.Join(startedOnceIn, "data"))
		if err != nil {
			return err
		}
		return u.terminate()
	})
)

// startUp starts a varve up, which ends with the test.
func startUp(t *testing.T, data string, args ...string) *up {
	t.Helper()
	if _, err := os.Stat(data); errors.Is(err, os.ErrNotExist) {
		if err := startOnce(); err != nil {
			t.Fatal(err)
		}
		from := filepath.Join(startedOnceIn, "data")
		if out, err := exec.CommandContext(t.Context(), "cp", "-a", from, data).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	u, err := begin(data, args...)
	if u != nil {
		u.T = t
		t.Cleanup(func() {
			if err := u.remove(); err != nil {
				t.Errorf("the PostgreSQL of the killed program: %v", err) // else it would write while data is deleted
			}
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// begin starts a varve up, and returns it when it is ready. It may return a process with an error.
func begin(data string, args ...string) (*up, error) {
	u := &up{data: data, log: &lockedBuffer{}, said: make(chan struct{})}
	u.cmd = program(context.Background(), append([]string{"up", "--addr", "127.0.0.1:0", "--data", data}, args...)...)
	stderr, err := u.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := u.cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewReader(io.TeeReader(stderr, u.log))
	for u.url == "" {
		line, err := lines.ReadString('\n')
		if m := readyLine.FindStringSubmatch(line); m != nil {
			u.url = m[1]
		} else if err != nil {
			return u, fmt.Errorf("varve up ended before it was ready:\n%s", u.log)
		}
	}
	go func() {
		defer close(u.said)
		_, _ = io.Copy(io.Discard, lines)
	}()
	u.key, err = readKey(filepath.Join(data, "key"))
	return u, err
}

// remove kills the program and what is left of its PostgreSQL.
func (u *up) remove() error {
	u.kill()
	if err := embedded.Remove(context.Background(), u.data); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// shared is the varve up of the tests that need none of their own.
var shared struct {
	sync.Mutex
	up      *up
	err     error
	tenants int
}

// shareUp returns the varve up that tests share, with the key of a tenant of the test's own, and the tenant's name.
func shareUp(t *testing.T) (u *up, tenant string) {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.up == nil && shared.err == nil {
		dir, err := os.MkdirTemp("", "varve-up-")
		if err == nil {
			shared.up, err = begin(filepath.Join(dir, "data"))
		}
		shared.err = err
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	shared.tenants++
	tenant = fmt.Sprint("tenant ", shared.tenants)
	of := *shared.up
	of.T = t
	of.key = keyIn(&of, operatorKeyFile)
	made := of.want(201, "POST", "/v1/admin/tenants", fmt.Sprintf(`{"name":%q,"key":{"role":"admin"}}`, tenant))
	of.key = made["key"].(map[string]any)["key"].(string)
	return &of, tenant
}

// endShared stops the varve up that tests have shared, and removes the directories.
func endShared() error {
	err := os.RemoveAll(startedOnceIn)
	if u := shared.up; u != nil {
		err = errors.Join(err, u.terminate(), u.remove(), os.RemoveAll(filepath.Dir(u.data)))
	}
	return err
}

// kill ends the program at once, as a crash would.
func (u *up) kill() {
	if u.cmd.ProcessState == nil {
		_ = u.cmd.Process.Kill()
		_ = u.cmd.Wait()
	}
}

// end waits until the program ends, and for all that it says: Wait alone may close the pipe before the last line is read.
func (u *up) end() error {
	<-u.said
	return u.cmd.Wait()
}

// stop ends the program gracefully, and fails the test unless it ends with 0.
func (u *up) stop() {
	u.Helper()
	if err := u.terminate(); err != nil {
		u.Error(err)
	}
}

// terminate ends the program gracefully; it is an error unless it ends with 0.
func (u *up) terminate() error {
	err := u.cmd.Process.Signal(syscall.SIGTERM)
	if err == nil {
		err = u.end()
	}
	if err != nil {
		return fmt.Errorf("after SIGTERM: %w\n%s", err, u.log)
	}
	return nil
}

// call asks the API; an error is one of the connection.
func (u *up) call(method, path, body string) (status int, answer []byte, err error) {
	request, err := http.NewRequest(method, u.url+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Authorization", "Bearer "+u.key)
	request.Header.Set("Content-Type", "application/json")
	if u.traceparent != "" {
		request.Header.Set("Traceparent", u.traceparent)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}

// want asks the API and fails the test unless the status is the one wanted.
func (u *up) want(status int, method, path, body string) map[string]any {
	u.Helper()
	got, answer, err := u.call(method, path, body)
	if err != nil || got != status {
		u.Fatalf("%s %s: %d, %v\n%s", method, path, got, err, answer)
	}
	var decoded map[string]any
	if len(answer) > 0 {
		if err := json.Unmarshal(answer, &decoded); err != nil {
			u.Fatalf("%s %s: %v\n%s", method, path, err, answer)
		}
	}
	return decoded
}

func TestUpServesAndKeepsItsDataOverARestart(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	u := startUp(t, data)
	if info, err := os.Stat(filepath.Join(data, "key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key file: %v, %v", info.Mode(), err)
	}
	u.want(201, "PUT", "/v1/sessions/chat-1", `{"format":"openai-chat"}`)
	u.want(201, "POST", "/v1/sessions/chat-1/messages", `{"messages":[{"role":"user","content":"hi"}]}`)
	u.want(201, "PUT", "/v1/sessions/chat-2", ``)
	u.want(201, "POST", "/v1/sessions/chat-2/messages", `{"format":"anthropic","messages":[{"role":"system","content":"be brief"},{"role":"user","content":[{"type":"text","text":"hi"}]}]}`)
	u.stop()
	key := u.key
	u = startUp(t, data)
	if u.key != key {
		t.Error("the second start made another key")
	}
	if view := u.want(200, "GET", "/v1/sessions/chat-2/context", ``); view["system"] != "be brief" || len(view["messages"].([]any)) != 1 {
		t.Errorf("view %v", view)
	}
	second := program(t.Context(), "up", "--addr", "127.0.0.1:0", "--data", data)
	if out, err := second.CombinedOutput(); err == nil || !strings.Contains(string(out), fmt.Sprint(u.cmd.Process.Pid)) {
		t.Errorf("a second start on the same directory: %v\n%s", err, out)
	}
	looked, err := program(t.Context(), "doctor", "--data", data).Output()
	if err != nil || !strings.Contains(string(looked), "\nworkers ") || !strings.Contains(string(looked), u.url+" is ready") {
		t.Errorf("varve doctor of a varve up: %v\n%s", err, looked)
	}
	if said, err := program(t.Context(), "ready", u.url).CombinedOutput(); err != nil {
		t.Errorf("varve ready: %v\n%s", err, said)
	}
	if said, err := program(t.Context(), "ready", "http://127.0.0.1:1").CombinedOutput(); err == nil || !strings.Contains(string(said), "refused") {
		t.Errorf("varve ready of nothing: %v\n%s", err, said)
	}
	made := program(t.Context(), "keys", "create", "--data", data)
	text, err := made.Output()
	if err != nil {
		t.Fatal(err)
	}
	u.key = strings.TrimSpace(string(text))
	u.want(200, "GET", "/v1/sessions/chat-1", ``)
	u.stop()
}

// untilDeadline returns a context that ends shortly before the test would, so that it can report what it waits for. A
// busy machine makes waits long: no wait has a deadline of its own.
func untilDeadline(t *testing.T) context.Context {
	t.Helper()
	end, ok := t.Deadline()
	if !ok {
		return t.Context()
	}
	ctx, cancel := context.WithDeadline(t.Context(), end.Add(-30*time.Second))
	t.Cleanup(cancel)
	return ctx
}

// poll calls done until it reports true, and returns false if ctx ends before. It is for what the API has no request to
// wait for.
func poll(ctx context.Context, every time.Duration, done func() bool) bool {
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for !done() {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// writer appends to one session, and sends each batch again until it is acknowledged.
type writer struct {
	session      string
	acknowledged []string        // message texts in the order of their seqs
	turns        chan<- struct{} // receives one for each acknowledged batch
}

// toolTurn returns a body that appends a call of a tool and its result, and the texts that must be in the log.
func toolTurn(session string, n int) (body string, texts []string) {
	texts = []string{fmt.Sprintf("call %s %d", session, n), fmt.Sprintf("result %s %d ", session, n) + strings.Repeat("some output of a tool, ", 60)}
	return fmt.Sprintf(`{"format":"openai-chat","client_ids":["c%d","r%d"],"messages":[
		{"role":"assistant","content":%q,"tool_calls":[{"id":"t%d","type":"function","function":{"name":"Bash","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"t%d","content":%q}]}`, n, n, texts[0], n, n, texts[1]), texts
}

func (w *writer) write(ctx context.Context, u *atomic.Pointer[up], turns int) (err error) {
	for n := range turns {
		body, texts := toolTurn(w.session, n)
		status := 0
		var answer []byte
		acknowledged := poll(ctx, 20*time.Millisecond, func() bool { // a client that backs off
			status, answer, err = u.Load().call("POST", "/v1/sessions/"+w.session+"/messages", body)
			return err == nil && status != 503
		})
		if !acknowledged || status != 201 && status != 200 {
			return fmt.Errorf("%s: %d %s %v", w.session, status, answer, err)
		}
		w.acknowledged = append(w.acknowledged, texts...)
		w.turns <- struct{}{}
	}
	return nil
}

// crashPostgres stops PostgreSQL under the program, as pg_ctl stop -m immediate does. The program must end and log why.
func (u *up) crashPostgres() {
	u.Helper()
	file, err := os.ReadFile(filepath.Join(u.data, "pgdata", "postmaster.pid"))
	if err != nil {
		u.Fatal(err)
	}
	first, _, _ := strings.Cut(string(file), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		u.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGQUIT); err != nil {
		u.Fatal(err)
	}
	if err := u.end(); err == nil || !strings.Contains(u.log.String(), "PostgreSQL ended by itself") {
		u.Errorf("without its database varve up ended with %v and said\n%s", err, u.log)
	}
}

func TestCrashedUnderLoadItLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	for name, crash := range map[string]func(*up){"kill -9 of the program": (*up).kill, "immediate stop of PostgreSQL": (*up).crashPostgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			crashUnderLoad(t, crash)
		})
	}
}

func crashUnderLoad(t *testing.T, crash func(*up)) {
	const writers, turns = 6, 90
	const between = 60 // batches from one crash to the next
	crashes := 2
	if testing.Short() {
		crashes = 1
	}
	ctx := untilDeadline(t)
	acknowledged := make(chan struct{}, writers*turns)
	data := filepath.Join(t.TempDir(), "data")
	var current atomic.Pointer[up]
	current.Store(startUp(t, data, "--sweep-interval", "1s"))
	all := make([]*writer, writers)
	for i := range all {
		all[i] = &writer{session: fmt.Sprint("s", i), turns: acknowledged}
		current.Load().want(201, "PUT", "/v1/sessions/"+all[i].session, `{"window_tokens":20000}`)
	}
	var group sync.WaitGroup
	for _, w := range all {
		group.Go(func() {
			if err := w.write(ctx, &current, turns); err != nil {
				t.Error(err)
			}
		})
	}
	for range crashes {
		for range between {
			select {
			case <-acknowledged:
			case <-ctx.Done():
				t.Fatal("the writers make no progress")
			}
		}
		crash(current.Load())
		current.Store(startUp(t, data, "--sweep-interval", "1s"))
	}
	group.Wait()
	u := current.Load()
	u.T = t
	for _, w := range all {
		u.checkLog(w)
		u.awaitCompaction(w.session)
	}
	u.stop()
}

// checkLog compares the log with what was acknowledged.
func (u *up) checkLog(w *writer) {
	u.Helper()
	log := u.want(200, "GET", "/v1/sessions/"+w.session+"/messages?limit=1000", ``)
	messages := log["data"].([]any)
	if len(messages) != len(w.acknowledged) {
		u.Fatalf("%s: %d messages were acknowledged, %d are there", w.session, len(w.acknowledged), len(messages))
	}
	for i, m := range messages {
		entry := m.(map[string]any)
		if entry["seq"].(float64) != float64(i+1) || entry["message"].(map[string]any)["content"] != w.acknowledged[i] {
			u.Fatalf("%s: message %d is not what was acknowledged there", w.session, i+1)
		}
	}
}

// awaitCompaction waits until the session is below its trigger, and reads every result back that left its view. The API
// can wait for the end of a run, but a request to compact would hide that the worker has lost one.
func (u *up) awaitCompaction(session string) {
	u.Helper()
	var found map[string]any
	below := poll(untilDeadline(u.T), 100*time.Millisecond, func() bool {
		found = u.want(200, "GET", "/v1/sessions/"+session, ``)
		return found["context_tokens"].(float64) < 16000
	})
	if !below {
		u.Fatalf("%s is left over its trigger: %v\nruns: %v", session, found, u.want(200, "GET", "/v1/sessions/"+session+"/runs", ``))
	}
	results := u.want(200, "GET", "/v1/sessions/"+session+"/results?limit=100", ``)["data"].([]any)
	if len(results) == 0 {
		u.Errorf("%s: no result was persisted", session)
	}
	for _, r := range results {
		ref := r.(map[string]any)["ref"].(string)
		status, body, err := u.call("GET", "/v1/sessions/"+session+"/results/"+ref+"?raw=true", ``)
		if err != nil || status != 200 || !strings.HasPrefix(string(body), "result "+session) {
			u.Errorf("%s %s: %d, %v", session, ref, status, err)
		}
	}
}
