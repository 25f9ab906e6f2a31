package main

import (
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
	"strings"
	"syscall"

	"github.com/google/uuid"

	varve "github.com/varve-dev/varve/client"
)

const (
	clientsRow   = "client in %s, own processor time beside the server's: %s of 1,000 messages"
	clientsBytes = 500 // of a tool's answer
)

// clientsWorks are the calls that are measured. An append makes a session, so that none grows.
var clientsWorks = []string{"context", "list", "append", "step"}

// clientsInput is what the clients are measured with; the programs in bench/clients read it.
type clientsInput struct {
	Session  string            `json:"session"` // has the messages
	Settings *varve.Settings   `json:"settings"`
	Messages []json.RawMessage `json:"messages"`
	Turn     []json.RawMessage `json:"turn"`
	Calls    int               `json:"calls"`
}

// clientsTimes are processor times in ms, by work and side: of the client's call; of the same request without it, by
// what the language has to write and read JSON; and, in Go, of the server.
type clientsTimes map[string][][]float64

// measureClients measures how much more processor time calls of the clients take than the same requests without them,
// beside that of the server.
func measureClients(ctx context.Context, b *bench) error {
	texts := newCorpus(1)
	messages := append(texts.conversation(batchMessages-1, clientsBytes), texts.message(clientsBytes))
	in := clientsInput{
		Settings: &varve.Settings{Format: "openai-chat", WindowTokens: widestWindow}, Calls: 20 * b.rounds,
	}
	for _, message := range messages {
		in.Messages = append(in.Messages, message)
	}
	in.Turn = in.Messages[batchMessages-1:]
	server := map[string]float64{}
	for _, of := range []string{"Go", "Python", "TypeScript"} {
		b.progress("client in %s", of)
		in.Session = "client-" + of
		c := b.here.newClient()
		if err := errors.Join(c.createSession(in.Session), c.appendAll(in.Session, messages)); err != nil {
			return err
		}
		took, err := b.here.clientTook(ctx, of, in)
		if err != nil {
			return err
		}
		for _, work := range clientsWorks {
			sides := took[work]
			if of == "Go" {
				server[work] = sides[2][0]
			}
			own := make([]float64, len(sides[0]))
			for i := range own {
				own[i] = sides[0][i] - sides[1][i]
			}
			r := row{Name: fmt.Sprintf(clientsRow, of, work), Unit: "ms", Value: median(own), Goal: "<= 0.05"}
			b.add(r.beside(server[work]))
			b.note("%s: %s ms with the client, %s without", r.Name, number(median(sides[0])), number(median(sides[1])))
		}
	}
	return nil
}

// clientTook measures the client in a language.
func (s *site) clientTook(ctx context.Context, of string, in clientsInput) (took clientsTimes, err error) {
	program := exec.CommandContext(ctx, "python3", filepath.Join("bench", "clients", "client.py"))
	switch of {
	case "Go":
		return s.goClientTook(ctx, in)
	case "TypeScript":
		program = exec.CommandContext(ctx, "node", filepath.Join("bench", "clients", "client.mjs"))
	}
	text, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	program.Stdin, program.Stderr = bytes.NewReader(text), os.Stderr
	program.Env = append(os.Environ(), "VARVE_URL=http://"+s.addr, "VARVE_KEY="+s.key,
		"PYTHONPATH="+filepath.Join("clients", "python"), "PYTHONDONTWRITEBYTECODE=1")
	out, err := program.Output()
	if err != nil {
		return nil, fmt.Errorf("%s (is clients/typescript built, by npm install && npm run build?): %w", program, err)
	}
	return took, json.Unmarshal(out, &took)
}

// clientsWork is a call of the client in Go, and its request. A * in the path is a new id.
type clientsWork struct {
	call         func() error
	method, path string
	body         any
	answer       func() any
}

func newOf[T any]() any { return new(T) }

// goClientTook measures the client in Go.
func (s *site) goClientTook(ctx context.Context, in clientsInput) (clientsTimes, error) {
	v, err := varve.Open("http://"+s.addr, s.key)
	if err != nil {
		return nil, err
	}
	session, path := v.Session(in.Session, nil), sessionPath(in.Session)
	page := varve.Options{Query: varve.Query{"limit": batchMessages}}
	type appended struct {
		Messages []json.RawMessage `json:"messages"`
		Session  *varve.Settings   `json:"session,omitempty"`
	}
	works := map[string]clientsWork{
		"context": {func() error {
			_, err := session.Context(ctx, nil)
			return err
		}, "GET", path + "/context", nil, newOf[varve.View]},
		"list": {func() error {
			_, err := varve.ListMessages.With(ctx, v, page, in.Session)
			return err
		}, "GET", path + "/messages?limit=1000", nil, newOf[varve.MessagePage]},
		"append": {func() error {
			_, err := v.Session(uuid.NewString(), in.Settings).Append(ctx, batchOf(in.Messages))
			return err
		}, "POST", "/v1/sessions/*/messages", appended{in.Messages, in.Settings}, newOf[varve.Appended]},
		"step": {func() error {
			_, err := session.Step(ctx, batchOf(in.Turn), nil)
			return err
		}, "POST", path + "/messages?fit=window&return=context", appended{in.Turn, nil}, newOf[varve.Appended]},
	}
	took, alone := clientsTimes{}, s.newClient()
	for _, name := range clientsWorks {
		w := works[name]
		text, err := json.Marshal(w.body)
		if err != nil {
			return nil, err
		}
		sides := make([][]float64, 2)
		for range in.Calls {
			start := processorMS()
			err := w.call()
			called := processorMS()
			if err := errors.Join(err, s.bare(ctx, w)); err != nil {
				return nil, err
			}
			sides[0], sides[1] = append(sides[0], called-start), append(sides[1], processorMS()-called)
		}
		server, err := s.serverTook(in.Calls, func() error { return w.alone(alone, text) })
		if err != nil {
			return nil, err
		}
		took[name] = append(sides, []float64{server})
	}
	return took, nil
}

// processorMS returns the processor time that this process has taken.
func processorMS() float64 {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // which cannot fail for this argument
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e6
}

// serverTook returns the processor time in ms that the API and PostgreSQL take for a call.
func (s *site) serverTook(calls int, do func() error) (ms float64, err error) {
	for _, clock := range s.clocks() {
		before, err := clock.read()
		for range calls {
			err = errors.Join(err, do())
		}
		after, unread := clock.read()
		if err := errors.Join(err, unread); err != nil {
			return 0, err
		}
		ms += 1000 * (after - before) / float64(calls)
	}
	return ms, nil
}

func batchOf(messages []json.RawMessage) (b varve.Batch) {
	for _, message := range messages {
		b.Messages = append(b.Messages, message)
	}
	return b
}

func (w *clientsWork) at() string { return strings.Replace(w.path, "*", uuid.NewString(), 1) }

// bare sends the request of a work by what Go has.
func (s *site) bare(ctx context.Context, w clientsWork) error {
	var body io.Reader
	if w.body != nil {
		text, err := json.Marshal(w.body)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, w.method, "http://"+s.addr+w.at(), body)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+s.key)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", uuid.NewString())
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	return json.NewDecoder(res.Body).Decode(w.answer())
}

// alone sends the request of a work and reads the answer's bytes.
func (w *clientsWork) alone(c *client, text []byte) error {
	if w.body == nil {
		return c.send(w.method, w.at(), nil, http.StatusOK)
	}
	return c.call(c.request(w.method, w.at(), text, "Idempotency-Key: "+uuid.NewString()), http.StatusCreated)
}
