package zframe

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// ErrCorrupt is wrapped by the error of Decompress when the blocks cannot be decoded to the size given.
var ErrCorrupt = errors.New("corrupt zstd blocks")

// encoder works at the library's default level: on conversations of coding agents 400 to 700 MB/s at ratios of 3.5 to
// 12; the next level saves 2 to 8 % of the size in 1.5 to 2 times the time. Low memory halves the history
// that an encoder keeps and is no slower up to maxWindow. Each of the concurrent encoders still keeps about 10 MB,
// hence few.
var encoder = encoderOf(zstd.SpeedDefault)

// quick is for what is compressed for one reader: a fifth faster, 6 % larger.
var quick = encoderOf(zstd.SpeedFastest)

func encoderOf(level zstd.EncoderLevel) *zstd.Encoder {
	return must(zstd.NewWriter(nil,
		zstd.WithEncoderLevel(level),
		zstd.WithWindowSize(maxWindow),
		zstd.WithEncoderCRC(false),
		zstd.WithEncoderConcurrency(min(4, runtime.GOMAXPROCS(0))),
		zstd.WithLowerEncoderMem(true),
	))
}

// decoder refuses to allocate beyond the buffer that Decompress gives it, whatever corrupt blocks may declare.
var decoder = must(zstd.NewReader(nil,
	zstd.WithDecoderConcurrency(0),
	zstd.WithDecoderMaxWindow(maxWindow),
	zstd.WithDecodeAllCapLimit(true),
))

// must returns a coder whose options are fixed at compile time.
func must[T any](coder T, err error) T {
	if err != nil {
		panic(err)
	}
	return coder
}

// Compress returns body as zstd blocks without a frame, none marked last, to be stored and spliced by AppendFrame. The
// same body has the same blocks in every process of one build; an empty body has none.
func Compress(body []byte) []byte { return blocksOf(encoder, body) }

// CompressQuickly does what Compress does for a body that is not kept.
func CompressQuickly(body []byte) []byte { return blocksOf(quick, body) }

func blocksOf(encoder *zstd.Encoder, body []byte) []byte {
	if len(body) == 0 {
		return nil
	}
	frame := encoder.EncodeAll(body, nil)
	var header zstd.Header
	if err := header.Decode(frame); err != nil {
		panic(err) // the encoder's own output
	}
	blocks := frame[header.HeaderSize:]
	for at := 0; at < len(blocks); at += blockSize(blocks[at:]) {
		blocks[at] &^= lastFlag
	}
	return blocks
}

// NewWriter returns a writer of one frame that compresses what it is given, for a view that is sent piece by piece and
// has no stored blocks. It takes a MiB or two of memory.
func NewWriter(out io.Writer) (*zstd.Encoder, error) {
	return zstd.NewWriter(out, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(writerWindow),
		zstd.WithEncoderCRC(false), zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
}

const writerWindow = 512 << 10

const (
	blockHeaderSize = 3 // little endian: the last-block flag, two bits of type, 21 bits of size
	lastFlag        = 1
	typeRLE         = 1
)

// blockSize returns the length of the first of blocks with its header. It exceeds len(blocks) if they are cut off.
func blockSize(blocks []byte) int {
	header := int(blocks[0]) | int(blocks[1])<<8 | int(blocks[2])<<16
	if header>>1&3 == typeRLE {
		return blockHeaderSize + 1 // its size is that of the content, one repeated byte
	}
	return blockHeaderSize + header>>3
}

// inputs holds the buffers in which Decompress puts a frame around blocks.
var inputs = sync.Pool{New: func() any { return new([]byte) }}

// Decompress appends to dst the body of size bytes that Compress stored as blocks. Its error wraps ErrCorrupt. Blocks
// carry no checksum: damage that leaves them well formed and the size right goes unnoticed.
func Decompress(dst, blocks []byte, size int) ([]byte, error) {
	if size < 0 {
		return nil, fmt.Errorf("%w: size %d", ErrCorrupt, size)
	}
	input := inputs.Get().(*[]byte)
	defer inputs.Put(input)
	*input = appendSizedFrame((*input)[:0], blocks, size)

	// Up to 16 bytes past the end the decoder copies in whole words instead of checking every byte.
	const slack = 16
	start := len(dst)
	dst, err := decoder.DecodeAll(*input, slices.Grow(dst, size+slack))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if got := len(dst) - start; got != size {
		return nil, fmt.Errorf("%w: %d bytes instead of %d", ErrCorrupt, got, size)
	}
	return dst, nil
}

const pieceSize = 1 << 20

// Pieces yields the body of size bytes that Compress stored as blocks, piece by piece. A piece may be read until the
// next one. Its error wraps ErrCorrupt.
func Pieces(blocks []byte, size int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		var header [headerSize]byte
		start, end := AppendStart(header[:0], blocks), strings.NewReader(frameEnd)
		source := io.MultiReader(bytes.NewReader(start), bytes.NewReader(blocks), end)
		decoder, err := zstd.NewReader(source, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			yield(nil, fmt.Errorf("%w: %w", ErrCorrupt, err))
			return
		}
		defer decoder.Close()
		piece := make([]byte, min(size+1, pieceSize))
		for got := 0; ; {
			n, err := io.ReadFull(decoder, piece)
			got += n
			ended := err == io.EOF || err == io.ErrUnexpectedEOF
			switch {
			case err != nil && !ended:
				yield(nil, fmt.Errorf("%w: %w", ErrCorrupt, err))
				return
			case got > size || ended && got < size:
				yield(nil, fmt.Errorf("%w: %d bytes instead of %d", ErrCorrupt, got, size))
				return
			case n > 0 && !yield(piece[:n], nil) || ended:
				return
			}
		}
	}
}

// appendSizedFrame appends a frame that declares its content size, which bounds the decoder from its first byte on.
func appendSizedFrame(dst, blocks []byte, size int) []byte {
	const contentSize64 = 3 << 6
	dst = append(dst, frameStart...)
	dst = append(dst, contentSize64, windowDescriptor(blocks))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(size))
	dst = append(dst, blocks...)
	return append(dst, frameEnd...)
}
