package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/protocol"
)

// conversation returns an array of n messages, and its elements as they are written.
func conversation(n int) (file []byte, elements []string) {
	for i := range n {
		elements = append(elements, fmt.Sprintf(`{"role":"user", "content":"%d <&> \u0000 \ud800 é"}`, i))
	}
	return []byte("[" + strings.Join(elements, ",\n") + "]"), elements
}

func newRun(t *testing.T, api *client.Client, files ...string) *importRun {
	t.Helper()
	return &importRun{
		importCommand: &importCommand{Files: files, Rejected: t.TempDir()},
		api:           api,
		progress:      &progress{Meter: command.Meter{Out: &bytes.Buffer{}, Now: time.Now}},
	}
}

// logOf returns the messages of a session.
func logOf(t *testing.T, api *client.Client, id string) (bodies []string) {
	t.Helper()
	page, err := client.ListMessages.With(t.Context(), api, client.Options{Query: client.Query{"limit": 1000}}, id)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range page.Value.Data {
		bodies = append(bodies, string(m.Message))
	}
	return bodies
}

func TestImportStoresEveryMessageByteForByte(t *testing.T) {
	t.Parallel()
	api := startAPI(t)
	data, want := conversation(450)
	run := newRun(t, api, write(t, "chat 1.json", data))
	run.Model = "gpt-x"
	run.WindowTokens = 9000
	run.policy = []byte(`{"trigger":0.6}`)
	if problems := run.all(t.Context()); problems != nil {
		t.Fatal(problems)
	}
	if diff := cmp.Diff(want, logOf(t, api, "chat-1")); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	s, err := client.ReadSession.With(t.Context(), api, client.Options{Query: client.Query{"include": "policy"}}, "chat-1")
	if err != nil || s.Value.Model != "gpt-x" || s.Value.WindowTokens != 9000 || !bytes.Contains(s.Value.Policy, []byte(`"trigger":0.6`)) {
		t.Errorf("the session is %s, %v", s.Raw, err)
	}
	var out, notes bytes.Buffer
	if err := run.print(&out, &notes, false); err != nil {
		t.Fatal(err)
	}
	wantTable := fmt.Sprintf("FILE         SESSION  MESSAGES  NEW  TOKENS  SKIPPED LINES  BAD LINES\n"+
		"chat 1.json  chat-1   450       450  %d    0              0\n", s.Value.TotalTokens)
	if diff := cmp.Diff(wantTable, out.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

// cutting is a transport that passes requests on, and may act on those that feed an import.
type cutting struct {
	feeds  atomic.Int32
	before func(feed int32, r *http.Request) error
	after  func(feed int32) error
}

func (c *cutting) RoundTrip(r *http.Request) (*http.Response, error) {
	feed := int32(0)
	if r.URL.Query().Has("from_line") {
		feed = c.feeds.Add(1)
		if err := c.before(feed, r); err != nil {
			return nil, err
		}
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && feed > 0 {
		if lost := c.after(feed); lost != nil {
			res.Body.Close()
			return nil, lost
		}
	}
	return res, err
}

func TestImportSendsTheFileAgainWhoseAnswerWasLost(t *testing.T) {
	t.Parallel()
	api := startAPI(t)
	api.HTTP = &http.Client{Transport: &cutting{
		before: func(int32, *http.Request) error { return nil },
		after:  func(feed int32) error { return map[int32]error{1: errors.New("the connection is lost")}[feed] },
	}}
	data, want := conversation(5)
	run := newRun(t, api, write(t, "chat.json", data))
	if problems := run.all(t.Context()); problems != nil {
		t.Fatal(problems)
	}
	if diff := cmp.Diff(want, logOf(t, api, "chat")); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if got := run.files[0].Import; got.Messages != 5 || got.Duplicates != 0 {
		t.Errorf("the import has %d messages and %d duplicates, want 5 and none", got.Messages, got.Duplicates)
	}
}

func TestAnImportThatIsInterruptedContinuesAsTheSameImport(t *testing.T) {
	t.Parallel()
	api := startAPI(t)
	ctx, cancel := context.WithCancel(t.Context())
	api.HTTP = &http.Client{Transport: &cutting{
		before: func(feed int32, _ *http.Request) error {
			if feed == 1 {
				cancel()
			}
			return nil
		},
		after: func(int32) error { return nil },
	}}
	data, want := conversation(450)
	run := newRun(t, api, write(t, "chat.json", data))
	err := errors.Join(run.all(ctx)...)
	if err == nil || !strings.Contains(complaint(err, false), "the same command continues from there") || exitCode(err) != exitInterrupted {
		t.Errorf("error %v, exit %d", err, exitCode(err))
	}
	for range 2 { // the second run finds everything there
		run.files = nil
		if problems := run.all(t.Context()); problems != nil {
			t.Fatal(problems)
		}
		if diff := cmp.Diff(want, logOf(t, api, "chat")); diff != "" {
			t.Errorf("messages (-want +got):\n%s", diff)
		}
	}
	if got := run.files[0].Sessions[0]; got.Messages != 450 || got.Appended != 0 {
		t.Errorf("the last run appended %d of %d messages, want none of 450", got.Appended, got.Messages)
	}
	if left, err := os.ReadDir(run.Rejected); err != nil || len(left) > 0 {
		t.Errorf("bookmarks are left: %v, %v", left, err)
	}
}

func TestImportRefusesASessionThatHoldsSomethingElse(t *testing.T) {
	t.Parallel()
	data, elements := conversation(150)
	longer, _ := conversation(160)
	tests := []struct {
		name   string
		second []byte
		want   string
		bad    int
	}{
		{"an early message differs", bytes.Replace(longer, []byte(`"3 `), []byte(`"changed `), 1), "message 150", 1},
		{"the format differs", []byte(`{"system":"s","messages":[` + elements[0] + `]}`), "message 150", 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			api := startAPI(t)
			if problems := newRun(t, api, write(t, "chat.json", data)).all(t.Context()); problems != nil {
				t.Fatal(problems)
			}
			run := newRun(t, api, write(t, "chat.json", tt.second))
			if problems := run.all(t.Context()); problems != nil {
				t.Fatal(problems)
			}
			if err := run.incomplete(); err == nil || exitCode(err) != exitError {
				t.Errorf("error %v (exit %d)", err, exitCode(err))
			}
			bad := run.files[0].Rejected
			if len(bad) != tt.bad || !strings.Contains(bad[0].Reason, tt.want) {
				t.Errorf("%d lines are rejected, want %d: %+v", len(bad), tt.bad, bad)
			}
			if diff := cmp.Diff(elements, logOf(t, api, "chat")[:150]); diff != "" {
				t.Errorf("the log has changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestImportOfAFileThatGrewAppendsTheRest(t *testing.T) {
	t.Parallel()
	api := startAPI(t)
	short, _ := conversation(12)
	long, want := conversation(20)
	for _, data := range [][]byte{short, long, short} { // the last: a session that continued after the import
		run := newRun(t, api, write(t, "chat.json", data))
		if err := errors.Join(append(run.all(t.Context()), run.incomplete())...); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, logOf(t, api, "chat")); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

func TestImportReportsAndKeepsWhatItCannotRead(t *testing.T) {
	t.Parallel()
	api := startAPI(t)
	good := `{"type":"user","uuid":"1","sessionId":"s","message":{"role":"user","content":"hi"}}`
	file := write(t, "log.jsonl", []byte(good+"\n"+`{"type":"progress"}`+"\n"+`{"cut <off`+"\n\"\xff\n"))
	run := newRun(t, api, file, write(t, "other.json", []byte(`{"something":[]}`)), filepath.Join(t.TempDir(), "missing.json"))
	problems := run.all(t.Context())
	if len(problems) != 2 || !strings.Contains(problems[0].Error(), "a JSON object with") || !strings.Contains(problems[1].Error(), "no such file") {
		t.Errorf("problems: %v", problems)
	}
	if got := logOf(t, api, "log"); len(got) != 1 {
		t.Errorf("%d messages, want 1", len(got))
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
	first := &run.files[0]
	if first.Lines != 4 || first.Imported != 1 || run.files[1].Imported != 0 {
		t.Errorf("of %d lines %d are counted as imported, want 1 of 4; %d of a file that was refused", first.Lines, first.Imported, run.files[1].Imported)
	}
	var out, notes bytes.Buffer
	if err := run.print(&out, &notes, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"not conversation: 1 progress", "line 3: not JSON: the line ends inside a JSON value\n"} {
		if !strings.Contains(notes.String(), want) {
			t.Errorf("remarks lack %q:\n%s", want, notes.String())
		}
	}
}

// TestImportIsStrictOrOfABranch imports a conversation that went back, with a record that is not imported.
func TestImportIsStrictOrOfABranch(t *testing.T) {
	t.Parallel()
	api := startAPI(t)
	file := write(t, "log.jsonl", []byte(`{"type":"user","uuid":"1","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"first"}}
{"type":"assistant","uuid":"2","parentUuid":"1","sessionId":"s","message":{"role":"assistant","content":[{"type":"text","text":"taken back"}]}}
{"type":"assistant","uuid":"3","parentUuid":"1","sessionId":"s","message":{"role":"assistant","content":[{"type":"text","text":"gone on with"}]}}
{"type":"progress"}
`))
	strict := newRun(t, api, file)
	strict.Strict = true
	if problems := strict.all(t.Context()); len(problems) != 1 || !strings.Contains(problems[0].Error(), "1 × progress") {
		t.Errorf("strict: %v", problems)
	}
	if _, err := client.ReadSession.Call(t.Context(), api, "log"); err == nil {
		t.Error("a strict import stored something")
	}
	for branch, want := range map[string]string{"": "gone on with", "2": "taken back"} {
		run, id := newRun(t, api, file), "log"
		if run.Branch = branch; branch != "" {
			id += "-" + branch
		}
		if problems := run.all(t.Context()); problems != nil {
			t.Fatal(problems)
		}
		if got := logOf(t, api, id); len(got) != 2 || !strings.Contains(got[1], want) {
			t.Errorf("branch %q: %v", branch, got)
		}
	}
}

func TestTheLinesOfADocumentAreNotKept(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, file string
		want       int
	}{
		{"JSON lines", "{\"a\":1}\n{\"b\":2}\n", 2},
		{"JSON lines with a mark and blank space", "\xef\xbb\xbf{\"a\":1} \r\n{\"b\":2}", 2},
		{"lines that begin with a bad one", "a\n{\"b\":2}", 2},
		{"a document on one line", `{"messages":[]}`, 0},
		{"a document on several lines", "{\n\"messages\":[]}", 0},
		{"an array", "[{},\n{}]", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in, err := os.Open(write(t, "file", []byte(tt.file)))
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			got, err := linesOf(in, []rejection{{Line: 1}, {Line: 2}})
			if err != nil || len(got) != tt.want {
				t.Errorf("%d lines %v, %v; want %d", len(got), got, err, tt.want)
			}
		})
	}
}

func TestImportReportsWhetherAllOfItIsStored(t *testing.T) {
	t.Parallel()
	api := startAPI(t)
	good := `{"type":"user","uuid":"1","sessionId":"s","message":{"role":"user","content":"hi"}}` + "\n"
	tests := []struct{ name, file, want string }{
		{"a file of which every line is stored is complete", good, ""},
		{"lines that hold no conversation are no loss", good + `{"type":"progress"}` + "\n", ""},
		{"a line that cannot be read is a loss", good + `{"cut <off` + "\n", "1 line could not be imported (kept in "},
		{"a file without a message is an error", strings.Repeat(`{"type":"progress"}`+"\n", 2), "the file contains no conversation"},
	}
	for i, tt := range tests {
		run := newRun(t, api, write(t, fmt.Sprintf("log%d.jsonl", i), []byte(tt.file)))
		err := errors.Join(append(run.all(t.Context()), run.incomplete())...)
		if (err != nil) != (tt.want != "") || err != nil && (!strings.Contains(err.Error(), tt.want) || exitCode(err) != exitError) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestImportShowsControlCharactersQuoted(t *testing.T) {
	t.Parallel()
	run := importRun{files: []imported{{File: "chat.json", Sessions: []importedSession{{Session: "a\tb\n\x1b[31m", Messages: 1, TotalTokens: 10}}}}}
	var out, notes bytes.Buffer
	if err := run.print(&out, &notes, false); err != nil {
		t.Fatal(err)
	}
	want := "FILE       SESSION           MESSAGES  NEW  TOKENS  SKIPPED LINES  BAD LINES\n" +
		`chat.json  "a\tb\n\x1b[31m"  1         0    10      0              0` + "\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
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

func TestProgressWithoutATerminalIsALineEveryTenSeconds(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	at := time.Unix(0, 0)
	p := &progress{Meter: command.Meter{Out: &out, Now: func() time.Time { return at }, Printed: at}, total: 4e6, started: at}
	for n := range int64(4) {
		at = at.Add(5 * time.Second)
		p.set(1e6*(n+1), &protocol.Import{Messages: 60 * (n + 1), Duplicates: 40 * (n + 1)})
	}
	p.failures++
	p.next(4e6)
	at = at.Add(10 * time.Second)
	p.set(1, &protocol.Import{Rejected: 2})
	want := "2.0 of 4.0 MB, 200 messages, 20/s, 10s left\n4.0 of 4.0 MB, 400 messages, 20/s, 0s left\n" +
		"4.0 of 4.0 MB, 400 messages, 13/s, 0s left, 1 files failed, 2 lines rejected\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
