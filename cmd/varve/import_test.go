package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/importer"
)

// conversation is an array of n messages, and its elements as they are written.
func conversation(n int) (file []byte, elements []string) {
	for i := range n {
		elements = append(elements, fmt.Sprintf(`{"role":"user", "content":"%d <&> \u0000 \ud800 é"}`, i))
	}
	return []byte("[" + strings.Join(elements, ",\n") + "]"), elements
}

func write(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func newRun(t *testing.T, client *Client, files ...string) *importRun {
	t.Helper()
	return &importRun{
		importCommand: &importCommand{Files: files, Rejected: t.TempDir()},
		client:        client,
		progress:      &progress{out: &bytes.Buffer{}, now: time.Now},
	}
}

func (s *stored) bodies() []string {
	list := make([]string, len(s.Messages))
	for i, m := range s.Messages {
		list[i] = string(m)
	}
	return list
}

func TestImportStoresEveryMessageByteForByte(t *testing.T) {
	t.Parallel()
	s, client := newServer(t)
	data, want := conversation(450)
	run := newRun(t, client, write(t, "chat 1.json", data))
	run.Model, run.WindowTokens, run.policy = "gpt-x", 9000, json.RawMessage(`{"trigger":0.5}`)
	if problems := run.all(t.Context()); problems != nil {
		t.Fatal(problems)
	}
	got := s.sessions["chat-1"]
	if diff := cmp.Diff(want, got.bodies()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if s.appends != 3 {
		t.Errorf("%d appends, want 3", s.appends)
	}
	if diff := cmp.Diff(`{"format":"openai-chat","model":"gpt-x","window_tokens":9000,"policy":{"trigger":0.5}}`, string(got.Settings)); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	var out, notes bytes.Buffer
	if err := run.print(&out, &notes, false); err != nil {
		t.Fatal(err)
	}
	want = []string{
		"FILE         SESSION  MESSAGES  NEW  TOKENS  SKIPPED LINES  BAD LINES",
		"chat 1.json  chat-1   450       450  4500    0              0", "",
	}
	if diff := cmp.Diff(want, strings.Split(out.String(), "\n")); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestImportGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	data, want := conversation(450)
	tests := []struct {
		name     string
		refuse   func(n int) int
		problems int
		held     int
		appended int
	}{
		{"nothing is sent again after a complete import", func(int) int { return 0 }, 0, 450, 0},
		{"after a stop between two batches the rest is sent", func(n int) int { return map[bool]int{true: 400}[n == 2] }, 1, 200, 250},
		{"after a stop before the first batch everything is sent", func(n int) int { return map[bool]int{true: 400}[n == 1] }, 1, 0, 450},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, client := newServer(t)
			s.refuse = tt.refuse
			file := write(t, "chat.json", data)
			if problems := newRun(t, client, file).all(t.Context()); len(problems) != tt.problems {
				t.Fatalf("first run: %v", problems)
			}
			if got := s.sessions["chat"].LastSeq; got != tt.held {
				t.Fatalf("%d messages after the first run, want %d", got, tt.held)
			}
			s.refuse = func(int) int { return 0 }
			again := newRun(t, client, file)
			if problems := again.all(t.Context()); problems != nil {
				t.Fatal(problems)
			}
			if got := again.files[0].Sessions[0].Appended; got != tt.appended {
				t.Errorf("second run appended %d, want %d", got, tt.appended)
			}
			if diff := cmp.Diff(want, s.sessions["chat"].bodies()); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}

func TestImportSendsTheBatchAgainWhoseAnswerWasLost(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t)
	lost := false
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /v1/sessions/{id}", s.put)
	mux.HandleFunc("POST /v1/sessions/{id}/messages", func(w http.ResponseWriter, r *http.Request) {
		s.append(&discard{}, r)
		if !lost {
			lost = true
			panic(http.ErrAbortHandler)
		}
		fmt.Fprintf(w, `{"last_seq":%d}`, s.sessions["chat"].LastSeq)
	})
	data, want := conversation(5)
	if problems := newRun(t, clientOf(t, mux), write(t, "chat.json", data)).all(t.Context()); problems != nil {
		t.Fatal(problems)
	}
	if diff := cmp.Diff(want, s.sessions["chat"].bodies()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

// discard is an answer that nobody gets.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header {
	if d.header == nil {
		d.header = http.Header{}
	}
	return d.header
}
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(int)             {}

func TestImportRefusesASessionThatHoldsSomethingElse(t *testing.T) {
	t.Parallel()
	data, elements := conversation(150)
	changed := bytes.Replace(data, []byte(`"140 `), []byte(`"changed `), 1)
	tests := []struct {
		name   string
		second []byte
		want   string
	}{
		{"an early message differs", bytes.Replace(data, []byte(`"3 `), []byte(`"changed `), 1), "from message 4 on (line 4 of the file)"},
		{"a message differs", changed, "from message 141 on (line 141 of the file)"},
		{"the format differs", []byte(`{"system":"s","messages":[` + elements[0] + `]}`), "has format openai-chat, the file anthropic"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, client := newServer(t)
			if problems := newRun(t, client, write(t, "chat.json", data)).all(t.Context()); problems != nil {
				t.Fatal(problems)
			}
			err := errors.Join(newRun(t, client, write(t, "chat.json", tt.second)).all(t.Context())...)
			if err == nil || !strings.Contains(err.Error(), tt.want) || exitCode(err) != exitConflict {
				t.Errorf("error %v (exit %d), want %q (exit %d)", err, exitCode(err), tt.want, exitConflict)
			}
		})
	}
}

func TestImportOfAFileThatGrewAppendsTheRest(t *testing.T) {
	t.Parallel()
	s, client := newServer(t)
	short, _ := conversation(12)
	long, want := conversation(20)
	for _, data := range [][]byte{short, long, short} { // the last: a session that went on after the import
		if problems := newRun(t, client, write(t, "chat.json", data)).all(t.Context()); problems != nil {
			t.Fatal(problems)
		}
	}
	if diff := cmp.Diff(want, s.sessions["chat"].bodies()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

func TestImportReportsAndKeepsWhatItCannotRead(t *testing.T) {
	t.Parallel()
	s, client := newServer(t)
	good := `{"type":"user","uuid":"1","sessionId":"s","message":{"role":"user","content":"hi"}}`
	file := write(t, "log.jsonl", []byte(good+"\n"+`{"type":"progress"}`+"\n"+`{"cut <off`+"\n\"\xff\n"))
	run := newRun(t, client, file, write(t, "other.json", []byte(`{"something":[]}`)), filepath.Join(t.TempDir(), "missing.json"))
	problems := run.all(t.Context())
	if len(problems) != 2 || !strings.Contains(problems[0].Error(), "a JSON object with") || !strings.Contains(problems[1].Error(), "no such file") {
		t.Errorf("problems: %v", problems)
	}
	if got := s.sessions["log"].LastSeq; got != 1 {
		t.Errorf("%d messages, want 1", got)
	}
	kept, err := os.ReadFile(filepath.Join(run.Rejected, "log.rejected.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`{"file":%q,"line":3,"reason":"not JSON: the line ends inside a JSON value","bytes":10,"text":"{\"cut <off"}
{"file":%q,"line":4,"reason":"not JSON: the line ends inside a JSON value","bytes":2,"base64":"Iv8="}
`, file, file)
	if diff := cmp.Diff(want, string(kept)); diff != "" {
		t.Errorf("side file (-want +got):\n%s", diff)
	}
	var out, notes bytes.Buffer
	if err := run.print(&out, &notes, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"no conversation: 1 progress", "line 3: not JSON: the line ends inside a JSON value (10 bytes, kept in "} {
		if !strings.Contains(notes.String(), want) {
			t.Errorf("remarks lack %q:\n%s", want, notes.String())
		}
	}
}

func TestImportSaysWhetherAllOfItIsStored(t *testing.T) {
	t.Parallel()
	good := `{"type":"user","uuid":"1","sessionId":"s","message":{"role":"user","content":"hi"}}` + "\n"
	tests := []struct{ name, file, want string }{
		{"a file of which every line is stored is complete", good, ""},
		{"lines that hold no conversation are no loss", good + `{"type":"progress"}` + "\n", ""},
		{"a line that cannot be read is one", good + `{"cut <off` + "\n", "log.jsonl: 1 line could not be read (kept in "},
		{"a file without a message is one", strings.Repeat(`{"type":"progress"}`+"\n", 2), "log.jsonl: nothing in it could be imported"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, client := newServer(t)
			run := newRun(t, client, write(t, "log.jsonl", []byte(tt.file)))
			if problems := run.all(t.Context()); problems != nil {
				t.Fatal(problems)
			}
			err := run.incomplete()
			if (err != nil) != (tt.want != "") || err != nil && (!strings.Contains(err.Error(), tt.want) || exitCode(err) != exitError) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

func TestImportShowsControlCharactersQuoted(t *testing.T) {
	t.Parallel()
	_, client := newServer(t)
	data, _ := conversation(1)
	run := newRun(t, client, write(t, "chat.json", data))
	run.Session = "a\tb\n\x1b[31m"
	if problems := run.all(t.Context()); problems != nil {
		t.Fatal(problems)
	}
	var out, notes bytes.Buffer
	if err := run.print(&out, &notes, false); err != nil {
		t.Fatal(err)
	}
	want := "FILE       SESSION           MESSAGES  NEW  TOKENS  SKIPPED LINES  BAD LINES\n" +
		`chat.json  "a\tb\n\x1b[31m"  1         1    10      0              0` + "\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestImportThatIsInterruptedSaysHowToGoOn(t *testing.T) {
	t.Parallel()
	s, client := newServer(t)
	ctx, cancel := context.WithCancel(t.Context())
	s.refuse = func(n int) int {
		if n == 2 {
			cancel()
		}
		return 0
	}
	data, _ := conversation(450)
	err := errors.Join(newRun(t, client, write(t, "chat.json", data)).all(ctx)...)
	if err == nil || !strings.Contains(describe(err), "the same command goes on from there") || exitCode(err) != exitInterrupted {
		t.Errorf("error %v, exit %d", err, exitCode(err))
	}
	if got := shellLine([]string{"varve", "import", "it's here.jsonl"}); got != `varve import 'it'\''s here.jsonl'` {
		t.Errorf("command is %s", got)
	}
}

func TestImportRefusesFilesForOneSession(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		command importCommand
		ok      bool
	}{
		{"different names are different sessions", importCommand{Files: []string{"a.json", "b.json"}}, true},
		{"equal names would be one session", importCommand{Files: []string{"x/a.json", "y/a.jsonl"}}, false},
		{"--session is for one file", importCommand{Files: []string{"a.json", "b.json"}, Session: "s"}, false},
		{"--session has a length", importCommand{Files: []string{"a.json"}, Session: strings.Repeat("s", 256)}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if err := tt.command.Validate(); (err == nil) != tt.ok {
				t.Errorf("Validate: %v", err)
			}
		})
	}
}

func TestBatchesAreBounded(t *testing.T) {
	t.Parallel()
	list := func(sizes ...int) []importer.Message {
		var all []importer.Message
		for _, n := range sizes {
			all = append(all, importer.Message{Body: make([]byte, n)})
		}
		return all
	}
	tests := []struct {
		name string
		list []importer.Message
		want int
	}{
		{"by their number", list(make([]int, 201)...), 200},
		{"by their bytes", list(3<<20, 1<<20, 1), 2},
		{"but a large message goes alone", list(6<<20, 1), 1},
		{"the last one has what is left", list(1, 1), 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := len(nextBatch(tt.list)); got != tt.want {
				t.Errorf("%d messages, want %d", got, tt.want)
			}
		})
	}
}

func TestProgressWithoutATerminalIsALineEveryTenSeconds(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	at := time.Unix(0, 0)
	p := &progress{out: &out, now: func() time.Time { return at }, total: 4e6, started: at, told: at}
	for range 4 {
		at = at.Add(5 * time.Second)
		p.set(p.done+1e6, 100)
	}
	p.fail()
	at = at.Add(10 * time.Second)
	p.set(p.total+1, 0)
	want := "2.0 of 4.0 MB, 200 messages, 20/s, 10s left\n4.0 of 4.0 MB, 400 messages, 20/s, 0s left\n4.0 of 4.0 MB, 400 messages, 13/s, 0s left, 1 files failed\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPolicyIsJSONOrAFile(t *testing.T) {
	t.Parallel()
	file := write(t, "p.json", []byte(`{"trigger":0.1}`))
	for text, want := range map[string]string{"": "", `{"a":1}`: `{"a":1}`, file: `{"trigger":0.1}`} {
		if got, err := readPolicy(text); err != nil || string(got) != want {
			t.Errorf("readPolicy(%q) = %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"{", "missing.json"} {
		if _, err := readPolicy(text); exitCode(err) != exitUsage {
			t.Errorf("readPolicy(%q): %v", text, err)
		}
	}
}
