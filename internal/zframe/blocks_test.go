package zframe_test

import (
	"bytes"
	"errors"
	"sync"
	"testing"

	"github.com/varve-dev/varve/internal/zframe"
)

// The encoder is shared, keeps its tables between calls and clears them after some hundred: neither may be visible.
func TestCompressIsDeterministic(t *testing.T) {
	t.Parallel()
	texts := [][]byte{conversation(1, 200<<10), noise(2, 1000), bytes.Repeat([]byte("ab"), 4000)}
	for seed := range uint64(20) {
		texts = append(texts, conversation(seed, 3000))
	}
	want := make([][]byte, len(texts))
	for i, text := range texts {
		want[i] = zframe.Compress(text)
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for i := range 500 {
				n := i % len(texts)
				if !bytes.Equal(zframe.Compress(texts[n]), want[n]) {
					t.Errorf("call %d: text %d was compressed in another way than the first time", i, n)
				}
			}
		})
	}
	group.Wait()
}

func TestCompressOfNothingIsNothing(t *testing.T) {
	t.Parallel()
	if got := zframe.Compress(nil); len(got) != 0 {
		t.Errorf("Compress(nil) = % x, want no blocks", got)
	}
}

func TestDecompress(t *testing.T) {
	t.Parallel()
	for name, body := range bodies() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, blocks := range [][]byte{zframe.Compress(body), zframe.CompressQuickly(body)} {
				got, err := zframe.Decompress([]byte("before"), blocks, len(body))
				if err != nil || !bytes.Equal(got, append([]byte("before"), body...)) {
					t.Errorf("Decompress gave %d bytes, error %v; want 6 + %d", len(got), err, len(body))
				}
			}
		})
	}
}

func TestDecompressRefusesCorruptBlocks(t *testing.T) {
	t.Parallel()
	body := conversation(4, 300<<10)
	blocks := zframe.Compress(body)
	// A frame of its own after the last block, which declares a content of 2^40 bytes.
	second := "\x01\x00\x00" + "\x28\xb5\x2f\xfd\xe0\x00\x00\x00\x00\x00\x01\x00\x00"
	for name, test := range map[string]struct {
		blocks []byte
		size   int
	}{
		"cut off":                         {blocks[:len(blocks)-1], len(body)},
		"cut off inside a block header":   {blocks[:2], len(body)},
		"first byte gone":                 {blocks[1:], len(body)},
		"no blocks for a body":            {nil, len(body)},
		"size one too small":              {blocks, len(body) - 1},
		"size one too large":              {blocks, len(body) + 1},
		"blocks for an empty body":        {blocks, 0},
		"negative size":                   {blocks, -1},
		"zeros that grow beyond the size": {zframe.Compress(make([]byte, 20<<20)), 1000},
		"a second frame":                  {append(bytes.Clone(blocks), second...), len(body)},
		"a second frame instead of blocks": {
			append([]byte("\x01\x00\x00"), zframe.AppendFrame(nil, nil, blocks, nil)...), len(body),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := zframe.Decompress(nil, test.blocks, test.size)
			if !errors.Is(err, zframe.ErrCorrupt) || got != nil {
				t.Errorf("Decompress gave %d bytes, error %v; want ErrCorrupt", len(got), err)
			}
		})
	}
}

func FuzzDecompress(f *testing.F) {
	for _, body := range bodies() {
		if len(body) < 1000 {
			f.Add(zframe.Compress(body), uint32(len(body)))
		}
	}
	f.Add(zframe.Compress(conversation(5, 3000)), uint32(3000))
	f.Add([]byte("\x01\x00\x00"), uint32(0))
	f.Fuzz(func(t *testing.T, blocks []byte, size uint32) {
		size %= 1 << 20
		before := []byte("before")
		got, err := zframe.Decompress(before, blocks, int(size))
		switch {
		case err != nil && !errors.Is(err, zframe.ErrCorrupt):
			t.Errorf("error %v, want ErrCorrupt", err)
		case err == nil && (len(got) != len(before)+int(size) || !bytes.HasPrefix(got, before)):
			t.Errorf("%d bytes, want %d after %q", len(got), size, before)
		}
		zframe.AppendFrame(nil, nil, blocks, nil)
	})
}
