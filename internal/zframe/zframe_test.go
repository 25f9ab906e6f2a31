package zframe_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"github.com/varve-dev/varve/internal/zframe"
	"pgregory.net/rapid"
)

// conversation returns size bytes that compress about as well as the messages of a coding agent.
func conversation(seed uint64, size int) []byte {
	random := rand.New(rand.NewPCG(seed, 1))
	words := make([]string, 400)
	for i := range words {
		words[i] = fmt.Sprintf("%x", random.Uint32()>>(random.IntN(5)*4))
	}
	var text bytes.Buffer
	for text.Len() < size {
		fmt.Fprintf(&text, `{"role":"tool","tool_call_id":"call_%016x","content":"`, random.Uint64())
		for range 20 + random.IntN(200) {
			text.WriteString(words[random.IntN(1+random.IntN(len(words)))])
			text.WriteByte(' ')
		}
		text.WriteString("\"},\n")
	}
	return text.Bytes()[:size]
}

// noise returns size bytes that do not compress.
func noise(seed uint64, size int) []byte {
	random := rand.New(rand.NewPCG(seed, 2))
	data := make([]byte, 0, size+8)
	for len(data) < size {
		data = binary.LittleEndian.AppendUint64(data, random.Uint64())
	}
	return data[:size]
}

func bodies() map[string][]byte {
	text, random := conversation(1, 300<<10), noise(2, 300<<10)
	return map[string][]byte{
		"empty":                         nil,
		"one byte":                      {'x'},
		"short text":                    []byte(`[{"role":"user","content":"hi"}]`),
		"repeats from its first byte":   bytes.Repeat([]byte("abcd"), 20),
		"zeros, stored as RLE blocks":   make([]byte, 400<<10),
		"exactly one block":             conversation(3, 128<<10),
		"one byte over one block":       conversation(4, 128<<10+1),
		"several blocks":                conversation(5, 700<<10),
		"incompressible":                noise(6, 500<<10),
		"raw blocks between compressed": bytes.Join([][]byte{text, random, text, random}, nil),
	}
}

// edgeSizes are those of heads and tails: a raw block holds 128 KiB.
var edgeSizes = []int{0, 1, 128 << 10, 128<<10 + 1, 1 << 20}

func TestAppendFrame(t *testing.T) {
	t.Parallel()
	headSource, tailSource := conversation(10, 1<<20), noise(11, 1<<20)
	for name, body := range bodies() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			blocks := zframe.Compress(body)
			for _, headSize := range edgeSizes {
				for _, tailSize := range edgeSizes {
					head, tail := headSource[:headSize], tailSource[:tailSize]
					frame := zframe.AppendFrame(nil, head, blocks, tail)
					checkFrame(t, frame, bytes.Join([][]byte{head, body, tail}, nil))
				}
			}
		})
	}
}

// The window of 8 MiB is smaller than this body, whose second half repeats the first at a distance it cannot reach.
func TestAppendFrameOfBodyLargerThanTheWindow(t *testing.T) {
	t.Parallel()
	half := bytes.Join([][]byte{conversation(20, 1<<20), noise(21, 1<<20), make([]byte, 8<<20)}, nil)
	body := append(half, half...)
	blocks := zframe.Compress(body)
	frame := zframe.AppendFrame(nil, []byte("head"), blocks, []byte("tail"))
	checkFrame(t, frame, bytes.Join([][]byte{[]byte("head"), body, []byte("tail")}, nil))

	got, err := zframe.Decompress(nil, blocks, len(body))
	if err != nil || !bytes.Equal(got, body) {
		t.Errorf("Decompress gave %d bytes, error %v; want the body of %d bytes", len(got), err, len(body))
	}
}

func TestAppendFrameKeepsWhatIsThere(t *testing.T) {
	t.Parallel()
	blocks := zframe.Compress([]byte("body"))
	got := zframe.AppendFrame([]byte("before"), []byte("head"), blocks, []byte("tail"))
	want := append([]byte("before"), zframe.AppendFrame(nil, []byte("head"), blocks, []byte("tail"))...)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("frame after other bytes (-want +got):\n%s", diff)
	}
}

func TestAppendFrameKnowsItsSize(t *testing.T) {
	t.Parallel()
	blocks := zframe.Compress(conversation(30, 200<<10))
	for _, size := range edgeSizes {
		frame := zframe.AppendFrame(nil, make([]byte, size), blocks, make([]byte, size))
		if want := cap(slices.Grow([]byte(nil), len(frame))); cap(frame) != want {
			t.Errorf("edges of %d bytes: capacity %d for a frame of %d bytes, want %d", size, cap(frame), len(frame), want)
		}
	}
}

// Receivers allocate the window, so a small view declares a small one, and no view more than RFC 9659 allows.
func TestWindowFitsTheBody(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		bodySize int
		want     uint64
	}{
		{0, 128 << 10}, {128 << 10, 128 << 10}, {128<<10 + 1, 256 << 10}, {600 << 10, 1 << 20}, {5 << 20, 8 << 20}, {20 << 20, 8 << 20},
	} {
		var header zstd.Header
		frame := zframe.AppendFrame(nil, make([]byte, 1<<20), zframe.Compress(make([]byte, test.bodySize)), nil)
		if err := header.Decode(frame); err != nil {
			t.Fatal(err)
		}
		if header.WindowSize != test.want {
			t.Errorf("body of %d bytes: window %d, want %d", test.bodySize, header.WindowSize, test.want)
		}
	}
}

func TestFrameIsAnyHeadBodyAndTail(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.OneOf(
			rapid.SliceOfN(rapid.Byte(), 0, 300),
			rapid.SliceOfN(rapid.SampledFrom([]byte("ab")), 0, 300),
			rapid.Custom(func(t *rapid.T) []byte {
				return conversation(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(0, 150<<10).Draw(t, "size"))
			}),
		)
		head, body, tail := part.Draw(t, "head"), part.Draw(t, "body"), part.Draw(t, "tail")
		blocks := zframe.Compress(body)
		frame := zframe.AppendFrame(nil, head, blocks, tail)
		checkFrame(t, frame, bytes.Join([][]byte{head, body, tail}, nil))
		got, err := zframe.Decompress(nil, blocks, len(body))
		if err != nil || !bytes.Equal(got, body) {
			t.Errorf("Decompress gave %d bytes, error %v; want the body of %d bytes", len(got), err, len(body))
		}
	})
}

func TestZstdProgramReadsTheFrame(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("zstd")
	if err != nil {
		t.Skip("the zstd program, which is the reference decoder, is not in PATH")
	}
	for name, body := range bodies() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			head, tail := conversation(40, 200<<10), conversation(41, 300<<10)
			command := exec.Command(program, "--decompress", "--stdout")
			command.Stdin = bytes.NewReader(zframe.AppendFrame(nil, head, zframe.Compress(body), tail))
			got, err := command.Output()
			if err != nil || !bytes.Equal(got, bytes.Join([][]byte{head, body, tail}, nil)) {
				t.Errorf("zstd gave %d bytes, error %v", len(got), err)
			}
		})
	}
}

type failer interface {
	Helper()
	Errorf(string, ...any)
}

// checkFrame checks that frame is one frame with the content want for three readers: the format's rules for its
// blocks, the streaming decoder, and the decoder of a whole buffer.
func checkFrame(t failer, frame, want []byte) {
	t.Helper()
	if err := checkBlockChain(frame); err != nil {
		t.Errorf("%v", err)
	}
	stream, err := zstd.NewReader(bytes.NewReader(frame), zstd.WithDecoderMaxWindow(8<<20), zstd.WithDecodeBuffersBelow(0))
	if err != nil {
		t.Errorf("open the stream: %v", err)
		return
	}
	defer stream.Close()
	if got, err := io.ReadAll(stream); err != nil || !bytes.Equal(got, want) {
		t.Errorf("streaming decoder: %d bytes, error %v; want %d bytes", len(got), err, len(want))
	}
	if got, err := stream.DecodeAll(frame, nil); err != nil || !bytes.Equal(got, want) {
		t.Errorf("buffer decoder: %d bytes, error %v; want %d bytes", len(got), err, len(want))
	}
}

// checkBlockChain follows the blocks by their headers: one frame, no block over its limit, and the only last block is
// where the frame ends.
func checkBlockChain(frame []byte) error {
	const headerSize = 6
	if len(frame) < headerSize || !bytes.HasPrefix(frame, []byte("\x28\xb5\x2f\xfd\x00")) {
		return fmt.Errorf("frame begins with % x", frame[:min(headerSize, len(frame))])
	}
	for at := headerSize; at+3 <= len(frame); {
		header := int(frame[at]) | int(frame[at+1])<<8 | int(frame[at+2])<<16
		last, kind, size := header&1 == 1, header>>1&3, header>>3
		if kind == 3 || size > 128<<10 {
			return fmt.Errorf("block at %d has type %d and size %d", at, kind, size)
		}
		if kind == 1 {
			size = 1
		}
		at += 3 + size
		if last && at != len(frame) {
			return fmt.Errorf("last block ends at %d of %d", at, len(frame))
		}
		if last {
			return nil
		}
	}
	return fmt.Errorf("no last block in %d bytes", len(frame))
}
