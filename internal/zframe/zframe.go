// Package zframe puts a view on the wire as one zstd frame without compressing anything at read time. A checkpoint's
// body is compressed once, when it is written, and kept as bare zstd blocks; a read puts the JSON head before them and
// the tail after them as raw blocks. One frame, never several: some decoders return the first and drop the rest.
//
// Start at AppendFrame. Compress returns the blocks to store, Decompress returns the body for a client without zstd.
//
// The splice is sound because a zstd block depends on what precedes it in two ways only (RFC 8878, section 3.1.1.3):
// on the entropy tables and repeat offsets of the previous compressed block, which raw blocks leave alone, so that the
// first stored block finds what a new frame starts with; and on match offsets, which count backwards from the current
// byte and never reach before the first byte of the body.
package zframe

import (
	"math/bits"
	"slices"
)

const (
	maxBlockSize = 128 << 10 // the limit of the content of one block
	maxWindow    = 8 << 20   // what every receiver of the zstd content coding must accept (RFC 9659)

	frameStart = "\x28\xb5\x2f\xfd" // magic number
	headerSize = len(frameStart) + 2
	frameEnd   = "\x01\x00\x00" // an empty raw block marked last, so that no other block ever needs the mark
)

// AppendFrame appends to dst one zstd frame whose content is head, the body that Compress stored as blocks, and tail.
func AppendFrame(dst, head, blocks, tail []byte) []byte {
	dst = slices.Grow(dst, headerSize+rawSize(head)+len(blocks)+rawSize(tail)+len(frameEnd))
	dst = AppendStart(dst, blocks)
	dst = AppendRaw(dst, head)
	dst = append(dst, blocks...)
	dst = AppendRaw(dst, tail)
	return append(dst, frameEnd...)
}

// AppendStart, AppendRaw and End are the parts of a frame that is sent piece by piece: what AppendFrame makes is its
// start for the blocks, the head as raw blocks, the blocks, the tail as raw blocks, and its end.
func AppendStart(dst, blocks []byte) []byte {
	dst = append(dst, frameStart...)
	return append(dst, 0, windowDescriptor(blocks)) // 0: no content size, single segment, checksum or dictionary
}

// AppendRaw appends data as raw blocks; none if it is empty.
func AppendRaw(dst, data []byte) []byte {
	for chunk := range slices.Chunk(data, maxBlockSize) {
		n := len(chunk)
		dst = append(dst, byte(n<<3), byte(n>>5), byte(n>>13))
		dst = append(dst, chunk...)
	}
	return dst
}

// End ends a frame.
const End = frameEnd

// windowDescriptor declares the smallest window that every match in blocks fits in. Receivers allocate the window
// before they see content: declaring the maximum for a small view would cost them far more than decoding it.
func windowDescriptor(blocks []byte) byte {
	count := 0
	for at := 0; at+blockHeaderSize <= len(blocks) && count < maxWindow/maxBlockSize; count++ {
		at += blockSize(blocks[at:])
	}
	window := max(1, count) * maxBlockSize // at least one: a block may not be larger than the window
	exponent := bits.Len(uint(window - 1))
	return byte(exponent-10) << 3
}

// rawSize returns the length of data as raw blocks.
func rawSize(data []byte) int {
	count := (len(data) + maxBlockSize - 1) / maxBlockSize
	return len(data) + count*blockHeaderSize
}
