// Package jobstest has what tests of workers need: workers that are killed or stopped at a step, logs of calls and
// results, and what a session must be whatever was done to it.
package jobstest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
	"github.com/varve-dev/varve/internal/zframe"
)

const (
	victimDSN  = "VARVE_TEST_VICTIM_DSN"
	victimStep = "VARVE_TEST_VICTIM_STEP"

	// Patience is how long a test waits for a worker before it fails: a machine may have much else to do.
	Patience = 15 * time.Minute

	// Beat is how often the workers of tests show that they live.
	Beat = 200 * time.Millisecond
)

// Main runs tests, or the worker that one of them kills.
func Main(m *testing.M, config jobs.Config) int {
	if dsn := os.Getenv(victimDSN); dsn != "" {
		panic(victim(dsn, os.Getenv(victimStep), config))
	}
	return pgtest.Main(m)
}

// victim runs a worker that reports when it reaches a step and then stops there. It returns why it could not.
func victim(dsn, step string, config jobs.Config) error {
	pool, err := postgres.Open(context.Background(), pgtest.Worker(dsn), 8)
	if err != nil {
		return err
	}
	inserts, err := queue.New(pool)
	if err != nil {
		return err
	}
	config.Store, config.Beat = postgres.New(pool, inserts, nil), Beat
	config.Trace = func(reached string) {
		if reached == step {
			fmt.Println("reached")
			select {}
		}
	}
	client, err := jobs.NewClient(pool, config)
	if err == nil {
		err = client.Start(context.Background())
	}
	if err == nil {
		<-client.Stopped()
	}
	return err
}

// Kill starts a worker in a process of its own, waits until it came to the step this many times, and kills it there.
func Kill(t testing.TB, dsn, step string, times int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), victimDSN+"="+dsn, victimStep+"="+step)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	said, lines := "", bufio.NewReader(out)
	for range times {
		line, _ := lines.ReadString('\n')
		said += line
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if said != strings.Repeat("reached\n", times) {
		t.Fatalf("the victim said %q", said)
	}
}

// Pause has a Trace that stops the first worker that comes to a step until it is told to go on, or the test is over.
type Pause struct {
	Reached, GoOn chan struct{}

	step  string
	over  <-chan struct{}
	first atomic.Bool
}

// NewPause returns a pause at a step.
func NewPause(t testing.TB, step string) *Pause {
	return &Pause{step: step, over: t.Context().Done(), Reached: make(chan struct{}), GoOn: make(chan struct{})}
}

// Trace stops the worker whose it is at the step.
func (p *Pause) Trace(step string) {
	if step != p.step || !p.first.CompareAndSwap(false, true) {
		return
	}
	close(p.Reached)
	select {
	case <-p.GoOn:
	case <-p.over:
	}
}

// Await waits for what a worker is about to do.
func Await[T any](t testing.TB, done <-chan T) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(Patience):
		t.Fatal("the worker did not come to it")
	}
}

// OpenStore opens a store, without features, until the test ends.
func OpenStore(t testing.TB, dsn string) *postgres.Store {
	t.Helper()
	pool := pgtest.Pool(t, dsn, 12)
	inserts, err := queue.New(pool)
	if err != nil {
		t.Fatal(err)
	}
	return postgres.New(pool, inserts, nil)
}

// Settled returns the default policy with numbers of its own, which the tests know: in a window of 10,000 tokens the
// trigger is at 8,000 and the hard limit at 9,500, nothing waits, and results leave by their age.
func Settled() policy.Policy {
	p := policy.Default()
	p.Trigger, p.Hard = 0.8, 0.95
	p.Target = 0.5
	p.Idle.Enabled, p.Economy.Enabled = false, false
	p.Cache.TTLSeconds = 0
	p.Trim.Enabled, p.Arguments.Enabled = true, true
	p.Summarise.WordsRatio, p.Summarise.NamesRatio = 0, 0
	p.Summarise.LinesRatio = 0
	return p
}

// Turn returns a call of a tool and its result of about this many tokens, as two messages.
func Turn(n, tokens int) [][]byte {
	line := fmt.Sprintf("line of file %d with some text in it\\n", n)
	text := strings.Repeat(line, tokens*4/len(line)+1)
	return [][]byte{
		fmt.Appendf(nil, `{"role":"assistant","content":null,"tool_calls":[`+
			`{"id":"c%d","type":"function","function":{"name":"Read","arguments":"{\"path\":\"f%d\"}"}}]}`, n, n),
		fmt.Appendf(nil, `{"role":"tool","tool_call_id":"c%d","content":"%s"}`, n, text),
	}
}

// Batch returns an append of messages.
func Batch(t testing.TB, at session.Address, bodies ...[]byte) session.Append {
	t.Helper()
	a := session.Append{Session: at, Format: session.OpenAIChat}
	for _, body := range bodies {
		m, err := wire.Inspect(a.Format, body)
		if err != nil {
			t.Fatal(err)
		}
		a.Messages = append(a.Messages, session.NewMessage{
			Body: body, Role: m.Role, Tokens: m.Tokens, StartsUnit: m.StartsUnit,
		})
	}
	return a
}

// Check holds a session to its promises: the log is what was appended, and the view ends with what no checkpoint covers
// and is one that its provider takes. It returns the messages of the view.
func Check(t testing.TB, store *postgres.Store, at session.Address, appended [][]byte) (session.Session, [][]byte) {
	t.Helper()
	all := postgres.Range{Removed: true, Limit: 1_000_000}
	found, log, err := store.Messages(context.WithoutCancel(t.Context()), at, all)
	if err != nil {
		t.Fatal(err)
	}
	if len(log) != len(appended) || int(found.LastSeq) != len(appended) {
		t.Fatalf("%d messages were acknowledged, %d are in the log, last_seq is %d",
			len(appended), len(log), found.LastSeq)
	}
	for i := range log {
		if log[i].Seq != int64(i+1) || !bytes.Equal(log[i].Body, appended[i]) {
			t.Fatalf("message %d is not what was appended", i+1)
		}
	}
	view, bodies := Read(t, store, at)
	tail := appended[view.Through:]
	if len(bodies) < len(tail) || !slices.EqualFunc(bodies[len(bodies)-len(tail):], tail, bytes.Equal) {
		t.Fatalf("the view's %d messages do not end with the %d that no checkpoint covers", len(bodies), len(tail))
	}
	if violations := wiretest.Validate(session.OpenAIChat, bodies, wire.Options{}); len(violations) > 0 {
		t.Errorf("the view breaks its provider's rules: %v", violations)
	}
	return found, bodies
}

// Read returns a session's view and its messages.
func Read(t testing.TB, store *postgres.Store, at session.Address) (postgres.View, [][]byte) {
	t.Helper()
	view, err := store.View(context.WithoutCancel(t.Context()), at, postgres.Version{})
	if err != nil {
		t.Fatal(err)
	}
	joined, err := zframe.Decompress(nil, view.Body, view.Size)
	if err != nil {
		t.Fatal(err)
	}
	if len(joined) > 0 && len(view.Tail) > 0 {
		joined = append(joined, ',')
	}
	var messages []json.RawMessage
	if err := json.Unmarshal(fmt.Appendf(nil, "[%s%s]", joined, view.Tail), &messages); err != nil {
		t.Fatal(err)
	}
	bodies := make([][]byte, len(messages))
	for i := range messages {
		bodies[i] = messages[i]
	}
	return view, bodies
}
