package shelf_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/varve-dev/varve/internal/shelf"
)

// TestAViewIsReadAsItWasPacked packs fields, and changes, cuts and prolongs what that makes.
func TestAViewIsReadAsItWasPacked(t *testing.T) {
	t.Parallel()
	fields := [][]byte{[]byte("body"), nil, bytes.Repeat([]byte("tail"), 1000)}
	packed, err := shelf.PackView(fields...)
	if err != nil {
		t.Fatal(err)
	}
	read := func(packed []byte, n int) (found [][]byte, err error) {
		found = make([][]byte, n)
		into := make([]*[]byte, n)
		for i := range found {
			found[i] = []byte("what was there before")
			into[i] = &found[i]
		}
		return found, shelf.UnpackView(packed, into...)
	}
	found, err := read(packed, len(fields))
	if err != nil || !bytes.Equal(bytes.Join(found, []byte("|")), bytes.Join(fields, []byte("|"))) {
		t.Errorf("%.60q, %v", found, err)
	}
	for at := range packed {
		changed := bytes.Clone(packed)
		changed[at] ^= 1
		if _, err := read(changed, len(fields)); !errors.Is(err, shelf.ErrFormat) {
			t.Errorf("byte %d is another: %v", at, err)
		}
		if _, err := read(packed[:at], len(fields)); !errors.Is(err, shelf.ErrFormat) {
			t.Errorf("cut at %d: %v", at, err)
		}
	}
	for _, n := range []int{len(fields) - 1, len(fields) + 1} {
		if _, err := read(packed, n); !errors.Is(err, shelf.ErrFormat) {
			t.Errorf("as %d fields: %v", n, err)
		}
	}
}
