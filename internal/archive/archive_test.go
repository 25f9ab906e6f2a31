package archive_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/archive"
	"github.com/varve-dev/varve/internal/session"
)

// written returns an archive of two sessions.
func written(t testing.TB) string {
	t.Helper()
	var out bytes.Buffer
	at := time.Date(2026, 1, 2, 3, 4, 5, 678_901_000, time.FixedZone("", 3600))
	w, err := archive.Begin(&out)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(err)
	check(w.Tenant([]byte("{ \"a\":\n1 }")))
	check(w.Session(session.Exported{ID: `a"<b>`, Format: session.Anthropic, WindowTokens: 1000, WindowSource: session.WindowOfModel, Metadata: []byte(`{"k": "<&>"}`), CreatedAt: at}))
	for i, body := range []string{`{ "a" : "\ud800" }`, "{\n\"b\":\"\\\"\"\r}"} {
		m := session.Message{Seq: int64(i + 1), Format: session.Anthropic, ClientID: "c\n"[:i+1], CreatedAt: at, Body: []byte(body)}
		if i == 1 {
			m.RemovedAt, m.RemovedSeq = &at, 3
		}
		check(w.Message(&m))
	}
	check(w.End(3, nil, nil))
	check(w.Session(session.Exported{ID: "empty", WindowTokens: 1000, Metadata: []byte(`{}`), Policy: []byte("{}"), Tokens: &session.TokenHistory{Calibration: 1.27}, CreatedAt: at}))
	check(w.End(0, nil, nil))
	_, err = w.Close()
	check(err)
	return out.String()
}

func TestAnArchiveIsOneThingALine(t *testing.T) {
	t.Parallel()
	lines := strings.Split(written(t), "\n")
	want := []string{
		`{"export":{"version":1}}`,
		`{"tenant":{"policy":{"a":1}}}`,
		`{"session":{"id":"a\"<b>","format":"anthropic","model":"","window_tokens":1000,"window_source":"model","overhead_tokens":0,"metadata":{"k":"<&>"},"created_at":"2026-01-02T02:04:05.678901Z"}}`,
		`{"message":{"session":"a\"<b>","seq":1,"format":"anthropic","client_id":"c","created_at":"2026-01-02T02:04:05.678901Z","body":{ "a" : "\ud800" }}}`,
		`{"message":{"session":"a\"<b>","seq":2,"format":"anthropic","client_id":"c\n","created_at":"2026-01-02T02:04:05.678901Z","removed_at":"2026-01-02T02:04:05.678901Z","removed_seq":3,"body":"{\n\"b\":\"\\\"\"\r}"}}`,
	}
	if diff := cmp.Diff(want, lines[:len(want)]); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	kinds := ""
	for _, line := range lines {
		kind, _ := archive.KindOf([]byte(line))
		kinds += string(kind) + " "
	}
	if kinds != "export tenant session message message end session end manifest  " {
		t.Errorf("the lines are %s", kinds)
	}
}

func TestVerifyFindsEveryChange(t *testing.T) {
	t.Parallel()
	text := written(t)
	total, err := archive.Verify(strings.NewReader(text + text))
	if err != nil || total.Sessions != 4 || total.Messages != 4 || total.Bytes != 60 {
		t.Fatalf("%+v, %v", total, err)
	}
	end := strings.Index(text, `{"manifest"`)
	for i := range text[:end] {
		changed := text[:i] + string(text[i]^1) + text[i+1:]
		if _, err := archive.Verify(strings.NewReader(changed)); err == nil {
			t.Errorf("byte %d is another, and nothing is said: …%s…", i, changed[max(0, i-20):min(len(changed), i+20)])
		}
	}
	for i := 1; i < len(text)-1; i++ {
		if _, err := archive.Verify(strings.NewReader(text[:i])); err == nil {
			t.Errorf("the first %d bytes pass for the whole", i)
		}
	}
	var damage *archive.Damage
	if _, err := archive.Verify(strings.NewReader(text[:end])); !errors.As(err, &damage) {
		t.Errorf("without its manifest: %v", err)
	}
}

// TestACheckerGoesOnInAnotherProcess puts it aside behind every line.
func TestACheckerGoesOnInAnotherProcess(t *testing.T) {
	t.Parallel()
	checker := archive.NewChecker()
	for n, line := range strings.Split(strings.TrimSuffix(written(t), "\n"), "\n") {
		kind, _ := archive.KindOf([]byte(line))
		if err := checker.Line(kind, []byte(line)); err != nil {
			t.Errorf("line %d: %v", n+1, err)
		}
		aside, err := checker.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		next := archive.NewChecker()
		if err := next.UnmarshalBinary(aside); err != nil || !bytes.Equal(next.Sum(), checker.Sum()) || next.Cut() != checker.Cut() {
			t.Fatalf("line %d: %v", n+1, err)
		}
		checker = next
	}
	if checker.Cut() {
		t.Error("the archive is whole")
	}
}

func TestAScannerPassesOverLinesThatAreTooLong(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200_000)
	lines := archive.NewScanner(strings.NewReader("a\n\n"+long+"\nb\r\n"+long), 150_000)
	var got []string
	for {
		line, err := lines.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%q %v %d", line.Text, line.Text == nil, line.Bytes))
	}
	want := []string{`"a" false 2`, `"" false 1`, `"" true 200001`, `"b\r" false 3`, `"" true 200000`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestAnArchiveIsKnownByItsFirstLine(t *testing.T) {
	t.Parallel()
	for head, want := range map[string]bool{
		`{"export":{"version":1}}` + "\n":                                    true,
		` {"session":{"id":"a"}} ` + "\r\n{":                                 true,
		`{"message":{"session":"a","body":{"content":"cut o`:                 true,
		`{"message":{"role":"user","content":"x"},"type":"user","uuid":"u"}`: false,
		`{"messages":[]}`:                       false,
		`{"session":"a"}`:                       false,
		`[{"role":"user","content":"x"}]`:       false,
		`{"type":"session","export":{}}` + "\n": false,
		``:                                      false,
	} {
		if got := archive.Begins([]byte(head)); got != want {
			t.Errorf("%s: %v", head, got)
		}
	}
}

func FuzzNoLineStopsAChecker(f *testing.F) {
	for line := range strings.Lines(written(f)) {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		lines, checker := archive.NewScanner(bytes.NewReader(data), 1<<20), archive.NewChecker()
		var whole int64
		for {
			line, err := lines.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			whole += line.Bytes
			kind, at := archive.KindOf(line.Text)
			if kind != archive.Unknown && line.Text[at.Start] != '{' {
				t.Errorf("%s of %q is no object", kind, line.Text)
			}
			_ = checker.Line(kind, line.Text)
		}
		if whole != int64(len(data)) {
			t.Errorf("the lines have %d bytes, the file %d", whole, len(data))
		}
	})
}
