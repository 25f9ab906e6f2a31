package frozen_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/varve-dev/varve/internal/tier/frozen"
	"github.com/varve-dev/varve/internal/zframe"
)

// readView reads a view with n fields, into memory that has something already.
func readView(start []byte, n int) (found [][]byte, err error) {
	found = make([][]byte, n)
	into := make([]*[]byte, n)
	for i := range found {
		found[i] = []byte("what was there before")
		into[i] = &found[i]
	}
	return found, frozen.ReadView(start, into...)
}

// viewed returns a part with a view and a row, and where the view ends.
func viewed(t *testing.T, row []*string, fields ...[]byte) (part []byte, end int) {
	t.Helper()
	w, err := frozen.NewWriter()
	if err == nil {
		err = w.View(fields...)
	}
	if err == nil {
		err = w.Add(of, row, codings)
	}
	if err != nil {
		t.Fatal(err)
	}
	made, err := w.End()
	if err != nil || made.ViewEnd == 0 || made.ViewEnd >= len(made.Body) {
		t.Fatal(made.ViewEnd, err)
	}
	return made.Body, made.ViewEnd
}

// TestAViewIsReadFromTheStartOfAPart changes and cuts it.
func TestAViewIsReadFromTheStartOfAPart(t *testing.T) {
	t.Parallel()
	for _, body := range [][]byte{zframe.Compress(text(2, 3000)), []byte("by an encoder of before"), {}} {
		fields := [][]byte{body, nil, bytes.Repeat([]byte("tail"), 1000)}
		row := []*string{new("a"), nil, nil, nil}
		part, end := viewed(t, row, fields...)
		found, err := readView(part[:end], len(fields))
		if err != nil || !bytes.Equal(bytes.Join(found, []byte("|")), bytes.Join(fields, []byte("|"))) {
			t.Errorf("%.60q, %v", found, err)
		}
		if rows, others, err := read(part); err != nil || others > 0 || len(rows) != 1 {
			t.Errorf("behind it are %d rows, %v", len(rows), err)
		}
		for at := range end {
			changed := bytes.Clone(part[:end])
			changed[at] ^= 1
			found, err := readView(changed, len(fields))
			if !errors.Is(err, frozen.ErrFormat) && !bytes.Equal(bytes.Join(found, nil), bytes.Join(fields, nil)) {
				t.Errorf("byte %d is another: %v", at, err)
			}
			if _, err := readView(part[:at], len(fields)); !errors.Is(err, frozen.ErrFormat) {
				t.Errorf("cut at %d: %v", at, err)
			}
		}
		for _, n := range []int{len(fields) - 1, len(fields) + 1} {
			if _, err := readView(part[:end], n); !errors.Is(err, frozen.ErrFormat) {
				t.Errorf("as %d fields: %v", n, err)
			}
		}
	}
	if _, err := readView(written(t, nil, []*string{new("a"), nil, nil, nil}), 1); !errors.Is(err, frozen.ErrFormat) {
		t.Errorf("a part without a view: %v", err)
	}
	old := frame(zstd.SpeedDefault, []byte("{\"version\":1}\n"))
	if _, err := readView(old, 0); !errors.Is(err, frozen.ErrFormat) {
		t.Errorf("a part of the first version: %v", err)
	}
}

// TestRowsThatRepeatTheViewTakeNoRoom has a row whose values are the view's, compressed in other ways.
func TestRowsThatRepeatTheViewTakeNoRoom(t *testing.T) {
	t.Parallel()
	row := rowsOf()[0]
	part, end := viewed(t, row, zframe.Compress(text(1, 300_000)))
	if behind := len(part) - end; behind > end/20 {
		t.Errorf("the view has %d bytes, what repeats it %d", end, behind)
	}
}
