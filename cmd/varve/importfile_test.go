package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/protocol"
)

// packedIn returns data in a coding.
func packedIn(t *testing.T, coding string, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser = gzip.NewWriter(&out)
	if coding == "zstd" {
		w, _ = zstd.NewWriter(&out)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestImportReadsPackedFiles(t *testing.T) {
	t.Parallel()
	api := startAPI(t)
	data, want := conversation(5)
	lines := strings.Join(want, "\n") + "\n{\"cut\n"
	run := newRun(t, api,
		write(t, "a.json.gz", packedIn(t, "gzip", data)), write(t, "b.json.zst", packedIn(t, "zstd", data)),
		write(t, "c.jsonl.gz", packedIn(t, "gzip", []byte(lines))), write(t, "d.json.gz", packedIn(t, "gzip", data)[:60]))
	problems := run.all(t.Context())
	if len(problems) != 1 || !strings.Contains(problems[0].Error(), "d.json.gz") {
		t.Fatalf("problems: %v", problems)
	}
	for _, id := range []string{"a", "b", "c"} {
		if diff := cmp.Diff(want, logOf(t, api, id)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", id, diff)
		}
	}
	kept, err := os.ReadFile(filepath.Join(run.Rejected, "c.rejected.jsonl"))
	if err != nil || !bytes.Contains(kept, []byte(`"line":6`)) || !bytes.Contains(kept, []byte(`"text":"{\"cut"`)) {
		t.Errorf("kept is %s, %v", kept, err)
	}
}

func TestAPackedExportIsImported(t *testing.T) {
	t.Parallel()
	api := startAPI(t)
	data, want := conversation(5)
	if problems := newRun(t, api, write(t, "chat.json", data)).all(t.Context()); problems != nil {
		t.Fatal(problems)
	}
	exported := filepath.Join(t.TempDir(), "all.ndjson")
	output(t, api, config.Client{}, &exportCommand{All: true, Output: exported})
	text, err := os.ReadFile(exported)
	if err != nil {
		t.Fatal(err)
	}
	other := startAPI(t)
	run := newRun(t, other, write(t, "all.ndjson.zst", packedIn(t, "zstd", text)))
	if problems := run.all(t.Context()); problems != nil {
		t.Fatal(problems)
	}
	if diff := cmp.Diff(want, logOf(t, other, "chat")); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

func TestImportReadsAPipeOnce(t *testing.T) {
	t.Parallel()
	api := startAPI(t)
	data, want := conversation(2000) // more than the beginning that is looked at
	pipe := filepath.Join(t.TempDir(), "pipe.json")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	go func() { _ = os.WriteFile(pipe, data, 0o600) }()
	run := newRun(t, api, pipe)
	if problems := run.all(t.Context()); problems != nil {
		t.Fatal(problems)
	}
	if got := logOf(t, api, "pipe"); len(got) != 1000 || got[999] != want[999] || run.files[0].Imported != 2000 {
		t.Errorf("%d messages in the first page of %d", len(got), run.files[0].Imported)
	}
}

func TestAFileThatIsMissingIsRefusedBeforeAnythingIsImported(t *testing.T) {
	t.Parallel()
	data, _ := conversation(1)
	there, missing := write(t, "there.json", data), filepath.Join(t.TempDir(), "missing.json")
	var out bytes.Buffer
	c := &importCommand{Files: []string{there, missing, t.TempDir()}}
	err := c.Run(t.Context(), &config.Client{Data: t.TempDir()}, &command.Console{Out: &out}) // without an API
	if err == nil || exitCode(err) != exitUsage || !strings.Contains(err.Error(), "missing.json: no such file") ||
		!strings.Contains(err.Error(), "it is a directory") || strings.Contains(err.Error(), "there.json") || out.Len() > 0 {
		t.Errorf("error %v, output %q", err, &out)
	}
}

func TestBytesDoneCountsSendingAndStoringForHalfEach(t *testing.T) {
	t.Parallel()
	total, export := int64(10), "varve"
	state := func(done int64, from *string) *protocol.Import {
		return &protocol.Import{Bytes: 7, From: from, Progress: protocol.ImportProgress{Done: done, Total: &total}}
	}
	tests := []struct {
		name string
		file importFile
		i    *protocol.Import
		sent int64
		want int64
	}{
		{"sending", importFile{size: 1000}, &protocol.Import{}, 400, 200},
		{"storing", importFile{size: 1000}, state(5, nil), 1000, 750},
		{"all is stored", importFile{size: 1000}, state(10, nil), 1000, 1000},
		{"an export says it", importFile{size: 1000}, state(5, &export), 400, 7},
		{"a packed export", importFile{size: 1000, packed: true}, state(5, &export), 400, 400},
		{"a pipe", importFile{}, &protocol.Import{}, 400, 400},
	}
	for _, tt := range tests {
		if got := tt.file.bytesDone(tt.i, tt.sent); got != tt.want {
			t.Errorf("%s: %d bytes, want %d", tt.name, got, tt.want)
		}
	}
}

func TestARefusedFileHasNoRowInTheTable(t *testing.T) {
	t.Parallel()
	api := startAPI(t)
	data, _ := conversation(1)
	for name, files := range map[string][]string{
		"":          {write(t, "verse.json", []byte(`{"verse":1}`))},
		"chat.json": {write(t, "verse.json", []byte(`{"verse":1}`)), write(t, "chat.json", data)},
	} {
		run := newRun(t, api, files...)
		problems := run.all(t.Context())
		var out, notes bytes.Buffer
		if err := run.print(&out, &notes, false); err != nil || len(problems) != 1 {
			t.Fatal(err, problems)
		}
		if strings.Contains(out.String(), "verse") || !strings.Contains(out.String(), name) || (name == "") != (out.Len() == 0) {
			t.Errorf("the table is\n%s", &out)
		}
	}
}
