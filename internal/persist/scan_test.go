package persist

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"

	"github.com/varve-dev/varve/internal/session"
)

// TestAScanNoticesAFlippedBitOfACompressedChunk flips bits all over a frame, whose checksum must tell.
func TestAScanNoticesAFlippedBitOfACompressedChunk(t *testing.T) {
	t.Parallel()
	var text []byte
	for i := range 2000 {
		text = fmt.Appendf(text, "line %d %x\n", i, sha256.Sum256([]byte{byte(i), byte(i >> 8)}))
	}
	codec, stored := compress(text[:ChunkBytes], false)
	if !hasChecksum(codec, stored) || hasChecksum(codecRaw, stored) {
		t.Fatal("frames have no checksum")
	}
	scan := func(stored []byte, digest [32]byte) (err error) {
		c := &Content{what: "result x", whole: Body{Bytes: ChunkBytes}, chunks: []Chunk{{Line: 1, Size: ChunkBytes, Digest: digest}}}
		c.source = func(context.Context, int, int) ([]StoredChunk, error) { return []StoredChunk{{codec, stored}}, nil }
		for _, err = range c.Scan(t.Context(), 0) {
		}
		return err
	}
	if err := scan(stored, [32]byte{}); err != nil {
		t.Errorf("a whole frame: %v", err)
	}
	for at := 0; at < len(stored); at += 997 {
		broken := append([]byte(nil), stored...)
		broken[at] ^= 1 << (at % 8)
		if err := scan(broken, [32]byte{}); !errors.Is(err, session.ErrDamaged) {
			t.Errorf("byte %d of %d is another: %v", at, len(stored), err)
		}
	}
}
