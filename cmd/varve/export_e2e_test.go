package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/archive"
	"github.com/varve-dev/varve/internal/session"
)

// bigExport writes an export of sessions with a hundred messages each.
func bigExport(t *testing.T, path string, sessions int) {
	t.Helper()
	var out bytes.Buffer
	w, err := archive.Begin(&out)
	for n := 0; n < sessions && err == nil; n++ {
		err = w.Session(session.Exported{
			ID: fmt.Sprint("s", n), WindowTokens: 1_000_000, WindowSource: session.WindowOfRequest, Format: session.OpenAIChat, Metadata: []byte(`{"n": "1"}`),
			CreatedAt: time.UnixMicro(1_700_000_000_123_456 + int64(n)),
		})
		for seq := int64(1); seq <= 100 && err == nil; seq++ {
			m := session.Message{Seq: seq, Format: session.OpenAIChat, CreatedAt: time.UnixMicro(1_700_000_000_000_000 + seq)}
			m.Body = fmt.Appendf(nil, "{\"role\":\"user\",%*s\"content\":\"%d \\ud800\"}", 1+seq%50*20, "\n", seq)
			err = w.Message(&m)
		}
		if err == nil {
			err = w.End(100, nil, nil)
		}
	}
	if err == nil {
		_, err = w.Close()
	}
	if err == nil {
		err = os.WriteFile(path, out.Bytes(), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// freeAddress returns an address that nobody listens on, where a program that is killed starts again.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// client runs a command against the server until it ends.
func (u *up) client(args ...string) (out string, err error) {
	cmd := program(u.Context(), append(args, "--data", u.data)...)
	text, err := cmd.CombinedOutput()
	return string(text), err
}

func TestAnImportSurvivesKillsOfTheProgramAndOfTheServer(t *testing.T) {
	t.Parallel()
	sessions := 300
	if testing.Short() {
		sessions = 100
	}
	file, data, address := filepath.Join(t.TempDir(), "all.ndjson"), filepath.Join(t.TempDir(), "data"), freeAddress(t)
	bigExport(t, file, sessions)
	u := startUp(t, data, "--addr", address)
	for kill := range 4 {
		importing := program(t.Context(), "import", file, "--url", u.url, "--data", data)
		if err := importing.Start(); err != nil {
			t.Fatal(err)
		}
		u.awaitLines(int64(1 + kill*sessions*100/5))
		if kill%2 == 0 {
			u.kill()
		}
		_ = importing.Process.Kill()
		_ = importing.Wait()
		if kill%2 == 0 {
			u = startUp(t, data, "--addr", address)
		}
	}
	if out, err := u.client("import", file); err != nil {
		t.Fatalf("the last import: %v\n%s", err, out)
	}
	imports := u.want(200, "GET", "/v1/imports", ``)["data"].([]any)
	last := imports[0].(map[string]any)
	if len(imports) != 1 || last["state"] != "succeeded" || last["messages"] != 100*float64(sessions) || last["duplicates"] != 0.0 {
		t.Errorf("%d imports, the last %v", len(imports), last)
	}
	copied := filepath.Join(t.TempDir(), "copy.ndjson")
	if out, err := u.client("export", "--all", "-o", copied); err != nil {
		t.Fatalf("export: %v\n%s", err, out)
	}
	if got, want := ends(mustRead(t, copied)), ends(mustRead(t, file)); got != want { // the manifest is also of the tenant's line
		t.Errorf("the sessions are not those of the file:\n%.500s\n%.500s", got, want)
	}
	u.stop()
}

// awaitLines waits until the newest import has a number of lines. The API can wait for the end of an import only.
func (u *up) awaitLines(lines int64) {
	u.Helper()
	var list []any
	there := poll(untilDeadline(u.T), 5*time.Millisecond, func() bool {
		list = u.want(200, "GET", "/v1/imports?limit=1", ``)["data"].([]any)
		return len(list) > 0 && list[0].(map[string]any)["progress"].(map[string]any)["done"].(float64) >= float64(lines)
	})
	if !there {
		u.Fatalf("the import has not got %d lines: %v", lines, list)
	}
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// ends returns the lines at the end of each session.
func ends(text []byte) (list string) {
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte(`{"end"`)) {
			list += string(line)
		}
	}
	return list
}

func TestExportsOfSessionsStandBehindEachOtherInOneFile(t *testing.T) {
	t.Parallel()
	u, _ := shareUp(t)
	for _, id := range []string{"a", "b", "c"} {
		u.want(201, "PUT", "/v1/sessions/"+id, `{"format":"openai-chat"}`)
		u.want(201, "POST", "/v1/sessions/"+id+"/messages", `{"messages":[{"role":"user","content":"hi `+id+`"}]}`)
	}
	file := filepath.Join(t.TempDir(), "two.ndjson")
	if out, err := u.client("export", "a", "c", "-o", file, "--key", u.key); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text := mustRead(t, file)
	for _, id := range []string{"a", "c"} {
		u.want(204, "DELETE", "/v1/sessions/"+id, ``)
	}
	if out, err := u.client("import", file, "--key", u.key); err != nil || !strings.Contains(out, "2 new") {
		t.Errorf("%v\n%s", err, out)
	}
	again, err := program(t.Context(), "export", "a", "c", "--data", u.data, "--key", u.key).Output()
	if err != nil || !bytes.Equal(again, text) {
		t.Errorf("%v\n%s\nwant\n%s", err, again, text)
	}
	if out, err := u.client("export", "nothing", "-o", file, "--key", u.key); err == nil || !strings.Contains(out, "no such session") {
		t.Errorf("%v\n%s", err, out)
	}
	if !bytes.Equal(mustRead(t, file), text) {
		t.Error("the export that failed has touched the file")
	}
	cut := filepath.Join(t.TempDir(), "cut.ndjson")
	if err := os.WriteFile(cut, text[:len(text)-60], 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := u.client("import", cut, "--key", u.key); err == nil || !strings.Contains(out, "cut off") {
		t.Errorf("a file that is cut off: %v\n%s", err, out)
	}
}
