package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/embedded"
	"github.com/varve-dev/varve/internal/session"
)

// attack is work of many clients at once.
type attack struct {
	name    string
	clients int
	prepare func(s *server) (release func(), err error)
	send    func(ctx context.Context, c client, key string) (status int, err error)
}

var attacks = []attack{
	{"100 writers on a locked session", 100, lockSession, func(ctx context.Context, c client, key string) (int, error) {
		return c.ask(ctx, key, "POST", "/v1/sessions/locked/messages", message("hello"))
	}},
	{"1,000 x compact?wait=60", 1000, makeWaited, func(ctx context.Context, c client, key string) (int, error) {
		return c.ask(ctx, key, "POST", "/v1/sessions/waited/compact?wait=60", nil)
	}},
	{"20 readers of a view of 28 MB", 20, largeSession, func(ctx context.Context, c client, key string) (int, error) {
		return c.ask(ctx, key, "GET", "/v1/sessions/large/context", nil)
	}},
	{"512 connections with invented keys", 512, nil, func(ctx context.Context, c client, _ string) (int, error) {
		return c.ask(ctx, session.NewAPIKey(uuid.New()), "GET", "/v1/sessions", nil)
	}},
	{"8 exact counts of 8 MB", 8, nil, func(ctx context.Context, c client, key string) (int, error) {
		return c.ask(ctx, key, "POST", "/v1/tokens", counted())
	}},
	{"8 counts of 31 kB gzip, left after 1 s", 8, nil, func(ctx context.Context, c client, key string) (int, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		return c.packed(ctx, key, "POST", "/v1/tokens", packedCount(), "gzip")
	}},
	{"100 pages of 1,000 messages, unread", 100, longSession, unread("/v1/sessions/long/messages?limit=1000")},
	{"100 results of 400 messages, unread", 100, longSession, unread("/v1/sessions/long/results/m1-400?raw=true")},
	{"16 MCP batches of 100 greps", 16, longSession, func(ctx context.Context, c client, key string) (int, error) {
		return c.ask(ctx, key, "POST", "/mcp?session=long", greps())
	}},
}

func makeSession(s *server, id string) error {
	err := s.must(s.attacker, "PUT", "/v1/sessions/"+id, `{"format":"openai-chat"}`)
	if err == nil {
		err = s.must(s.attacker, "POST", "/v1/sessions/"+id+"/messages", string(message("hello")))
	}
	return err
}

func nothing() {}

func makeWaited(s *server) (func(), error) { return nothing, makeSession(s, "waited") }

// database connects to the database beside Varve.
func (s *server) database() (*pgx.Conn, error) {
	url, err := embedded.Running(s.dir, embedded.User)
	if err != nil {
		return nil, err
	}
	return pgx.Connect(context.Background(), url)
}

// lockSession makes a session, and holds its lock as somebody beside Varve would.
func lockSession(s *server) (func(), error) {
	if err := makeSession(s, "locked"); err != nil {
		return nil, err
	}
	conn, err := s.database()
	if err != nil {
		return nil, err
	}
	_, err = conn.Exec(context.Background(), `BEGIN; SELECT FROM sessions WHERE id = 'locked' FOR UPDATE`)
	return func() { _ = conn.Close(context.Background()) }, err
}

// largeSession makes a session whose view has 28 MB.
func largeSession(s *server) (func(), error) {
	err := s.must(s.attacker, "PUT", "/v1/sessions/large",
		`{"format":"openai-chat","window_tokens":10000000,"policy":{"trigger":1,"hard":1,"trigger_bytes":500000000}}`)
	for n := 0; err == nil && n < 7; n++ {
		var messages []map[string]string
		for range 40 {
			messages = append(messages, map[string]string{"role": "user", "content": words(100_000)})
		}
		body, _ := json.Marshal(map[string]any{"messages": messages}) // plain values
		err = s.must(s.attacker, "POST", "/v1/sessions/large/messages", string(body))
	}
	return nothing, err
}

// unread asks for a path and does not read the answer.
func unread(path string) func(ctx context.Context, c client, key string) (int, error) {
	return func(ctx context.Context, c client, key string) (int, error) { return c.unread(ctx, key, path) }
}

// longSession makes a session of 1,000 messages of 8 kB.
func longSession(s *server) (func(), error) {
	err := s.must(s.attacker, "PUT", "/v1/sessions/long",
		`{"format":"openai-chat","window_tokens":10000000,"policy":{"trigger":1,"hard":1,"trigger_bytes":500000000}}`)
	status, _ := s.ask(context.Background(), s.attacker, "GET", "/v1/sessions/long/results/m1-400", nil)
	if status == 200 {
		return nothing, err // another attack has filled it
	}
	for n := 0; err == nil && n < 10; n++ {
		var messages []map[string]string
		for range 100 {
			messages = append(messages, map[string]string{"role": "user", "content": words(8_000)})
		}
		body, _ := json.Marshal(map[string]any{"messages": messages}) // plain values
		err = s.must(s.attacker, "POST", "/v1/sessions/long/messages", string(body))
	}
	return nothing, err
}

// greps are 100 calls in one request, as a version of MCP has them that clients still speak.
var greps = sync.OnceValue(func() []byte {
	var batch []map[string]any
	for n := range 100 {
		arguments := map[string]any{"pattern": fmt.Sprintf("nothing has this %d", n), "ref": "m1-1000"}
		batch = append(batch, map[string]any{
			"jsonrpc": "2.0", "id": n + 1, "method": "tools/call",
			"params": map[string]any{"name": "grep_results", "arguments": arguments},
		})
	}
	body, _ := json.Marshal(batch) // plain values
	return body
})

// words returns text that compresses as prose does.
func words(bytes int) string {
	var text strings.Builder
	for text.Len() < bytes {
		fmt.Fprintf(&text, "%s %d, ", vocabulary[rand.IntN(len(vocabulary))], rand.IntN(1000))
	}
	return text.String()
}

var vocabulary = strings.Fields("a large view has many messages and each of them is read copied and sent again to a " +
	"client that asks for more of the same as fast as it can while somebody else wants to append only one of them")

var counted = sync.OnceValue(func() []byte {
	return fmt.Appendf(nil, `{"format":"openai-chat","model":"gpt-4o","messages":[{"role":"user","content":%q}]}`,
		strings.Repeat("a", 8_000_000))
})

var packedCount = sync.OnceValue(func() []byte {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = fmt.Fprintf(w, `{"tokenizer":"o200k","text":%q}`, strings.Repeat("a", 31<<20)) // to memory
	_ = w.Close()
	return packed.Bytes()
})

// attackCommand is the first argument of the process that attacks; the others are the attack, the address of the
// server and the attacker's key.
const attackCommand = "attack"

// answers counts an attacker's by the first digit of the status, 0 being none.
type answers [6]int64

func (a answers) String() string {
	return fmt.Sprintf("2xx %d 4xx %d 5xx %d none %d", a[2], a[4], a[5], a[0])
}

// attackMain attacks until its standard input ends, and then writes its answers.
func attackMain(name, url, key string) {
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, 19) // to lower it is always allowed
	// Linux divides the processors by session first, where it has autogroups: a nice process in a session of its own
	// still gets the part of a whole session. https://man7.org/linux/man-pages/man7/sched.7.html
	_ = os.WriteFile("/proc/self/autogroup", []byte("19"), 0)
	var counts [6]atomic.Int64
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	a, ok := attackOf(name)
	if !ok {
		a = attacks[slices.IndexFunc(attacks, func(a attack) bool { return a.name == name })]
	}
	for range a.clients {
		group.Go(func() {
			for ctx.Err() == nil {
				status, _ := a.send(ctx, client{url}, key)
				if ctx.Err() == nil {
					counts[status/100].Add(1)
				}
			}
		})
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // until it ends
	cancel()
	group.Wait()
	var total answers
	for i := range counts {
		total[i] = counts[i].Load()
	}
	_ = json.NewEncoder(os.Stdout).Encode(total)
}

// attackers are a process that attacks.
type attackers struct {
	cmd   *exec.Cmd
	stdin io.Closer
	out   *bytes.Buffer
}

func (s *server) attack(name string) (*attackers, error) {
	a := &attackers{cmd: exec.Command(os.Args[0], attackCommand, name, s.url, s.attacker), out: &bytes.Buffer{}}
	a.cmd.SysProcAttr = ownSession()
	stdin, err := a.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	a.stdin = stdin
	a.cmd.Stdout, a.cmd.Stderr = a.out, os.Stderr
	return a, a.cmd.Start()
}

func (a *attackers) pid() int { return a.cmd.Process.Pid }

func (a *attackers) end() (total answers, err error) {
	_ = a.stdin.Close() // which ends the process
	if err := a.cmd.Wait(); err != nil {
		return total, err
	}
	return total, json.Unmarshal(a.out.Bytes(), &total)
}
