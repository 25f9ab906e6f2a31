package packed_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/varve-dev/varve/internal/packed"
)

func TestOpenUnpacksWhatIsPacked(t *testing.T) {
	t.Parallel()
	text := strings.Repeat(`{"role":"user","content":"a"}`+"\n", 10_000)
	var gz, zst bytes.Buffer
	g := gzip.NewWriter(&gz)
	z, _ := zstd.NewWriter(&zst)
	for _, w := range []io.WriteCloser{g, z} {
		_, _ = io.WriteString(w, text)
		_ = w.Close()
	}
	for name, file := range map[string]string{"as it is": text, "gzip": gz.String(), "two members": gz.String() + gz.String(), "zstd": zst.String(), "nothing": ""} {
		in, err := packed.Open(strings.NewReader(file))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := io.ReadAll(in)
		want := map[string]string{"two members": text + text, "nothing": ""}
		if w, known := want[name]; err != nil || known && w != string(got) || !known && text != string(got) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, file := range []string{gz.String()[:gz.Len()-9], zst.String()[:zst.Len()-9], "\x1f\x8b\x08\x00", "\x28\xb5\x2f\xfd\xff\xff"} {
		in, err := packed.Open(strings.NewReader(file))
		if err == nil {
			_, err = io.ReadAll(in)
		}
		if err == nil {
			t.Errorf("%q… was read to its end", file[:4])
		}
	}
}

func TestAWindowThatIsTooLargeIsRefused(t *testing.T) {
	t.Parallel()
	var file bytes.Buffer
	w, err := zstd.NewWriter(&file, zstd.WithWindowSize(16<<20))
	if err != nil {
		t.Fatal(err)
	}
	for range 3000 { // more than one window, so that the frame does not say its size
		_, _ = w.Write(make([]byte, 10_000))
	}
	_ = w.Close()
	in, err := packed.Open(&file)
	if err == nil {
		_, err = io.ReadAll(in)
	}
	if err == nil {
		t.Error("it was unpacked")
	}
}
