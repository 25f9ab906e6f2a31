package frozen

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/varve-dev/varve/internal/zframe"
)

// Coding is how PostgreSQL has a value compressed. A part has such a value decompressed, so that it is compressed
// together with all others. What comes back is compressed anew, to the bytes that were there before: a value that the
// coding's encoder makes other bytes of stays as it is.
type Coding byte

// The codings. Their numbers, and what they mean, are part of the format.
const (
	Closed Coding = iota // none, or one that is unknown here
	Frame                // a zstd frame of the default level, with a checksum; else Better is tried
	Better               // a zstd frame of the next level, with a checksum, as packs had before
	Blocks               // as package zframe compresses
)

// maxOpened bounds what a value has that is decompressed.
const maxOpened = 8 << 20

// sumBytes is how much a part has of the SHA-256 of the bytes that a value was decompressed from. It tells whether the
// encoder of now still makes these bytes.
const sumBytes = 8

var (
	frameEncoder, _  = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(2))
	betterEncoder, _ = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBetterCompression),
		zstd.WithEncoderConcurrency(2))
	opener, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxOpened))
)

func (c Coding) compress(plain []byte) []byte {
	switch c {
	case Frame:
		return frameEncoder.EncodeAll(plain, nil)
	case Better:
		return betterEncoder.EncodeAll(plain, nil)
	case Blocks:
		return zframe.Compress(plain)
	}
	return plain
}

// open returns what a value was compressed from, if the coding makes the value of that again.
func (c Coding) open(stored []byte) (plain []byte, ok bool) {
	if c == Closed || len(stored) == 0 {
		return nil, false
	}
	frame := stored
	if c == Blocks {
		frame = zframe.AppendFrame(nil, nil, stored, nil)
	}
	plain, err := opener.DecodeAll(frame, nil)
	return plain, err == nil && bytes.Equal(c.compress(plain), stored)
}

// The kinds of cells. Behind cellBytes, each is a coding that the value was decompressed from.
const (
	cellText = iota
	cellBytes
	cellKinds = cellBytes + 1 + int(Blocks)
)

// Cell is a value of a row as a part has it.
type Cell struct {
	null bool
	kind int
	data []byte
	sum  [sumBytes]byte // of the bytes that data was decompressed from
}

// cellOf returns a value, as PostgreSQL writes it as text, as a part has it.
func cellOf(text *string, coding Coding) Cell {
	if text == nil {
		return Cell{null: true}
	}
	if stored, ok := bytesOf(*text); ok {
		return cellOfBytes(stored, coding)
	}
	return Cell{kind: cellText, data: []byte(*text)}
}

func cellOfBytes(stored []byte, coding Coding) Cell {
	plain, ok := coding.open(stored)
	if !ok && coding == Frame {
		coding = Better
		plain, ok = coding.open(stored)
	}
	if !ok {
		return Cell{kind: cellBytes, data: stored}
	}
	return Cell{kind: cellBytes + int(coding), data: plain, sum: sumOf(stored)}
}

func sumOf(stored []byte) (sum [sumBytes]byte) {
	whole := sha256.Sum256(stored)
	copy(sum[:], whole[:])
	return sum
}

const hexPrefix = `\x`

// bytesOf returns the bytes that a text names as PostgreSQL writes them, if it is that very text which names them.
func bytesOf(text string) ([]byte, bool) {
	if len(text) < len(hexPrefix) || text[:len(hexPrefix)] != hexPrefix {
		return nil, false
	}
	stored, err := hex.DecodeString(text[len(hexPrefix):])
	return stored, err == nil && hexPrefix+hex.EncodeToString(stored) == text
}

// append appends a cell as a part has it: 0 for NULL, else one more than its length and its kind; the sum of what it
// was decompressed from; its bytes.
func (c *Cell) append(dst []byte) []byte {
	if c.null {
		return append(dst, 0)
	}
	dst = binary.AppendUvarint(dst, 1+uint64(len(c.data)*cellKinds+c.kind))
	if c.kind > cellBytes {
		dst = append(dst, c.sum[:]...)
	}
	return append(dst, c.data...)
}

// input is what cells are read from.
type input interface {
	io.Reader
	io.ByteReader
}

func readCell(in input) (c Cell, err error) {
	n, err := binary.ReadUvarint(in)
	if err != nil || n == 0 {
		return Cell{null: true}, err
	}
	n--
	c.kind = int(n % uint64(cellKinds))
	if c.kind > cellBytes {
		if _, err := io.ReadFull(in, c.sum[:]); err != nil {
			return c, err
		}
	}
	c.data, err = readBytes(in, n/uint64(cellKinds))
	return c, err
}

// readBytes reads as many bytes. It takes no more memory than there is to read, whatever is said.
func readBytes(in io.Reader, n uint64) ([]byte, error) {
	const atOnce = 1 << 20
	if n <= atOnce {
		data := make([]byte, n)
		_, err := io.ReadFull(in, data)
		return data, err
	}
	var data bytes.Buffer
	read, err := io.Copy(&data, io.LimitReader(in, int64(min(n, 1<<62))))
	if err == nil && uint64(read) < n {
		err = io.ErrUnexpectedEOF
	}
	return data.Bytes(), err
}

// stored returns the bytes of a cell, and whether they are those that it was made of: if not, they are another
// compression of the same.
func (c *Cell) stored() (stored []byte, same bool) {
	if c.kind <= cellBytes {
		return c.data, true
	}
	stored = Coding(c.kind - cellBytes).compress(c.data)
	return stored, sumOf(stored) == c.sum
}

// Text returns a value as PostgreSQL writes it, and whether it is the value that was archived. If it is not, the
// program that wrote the part had another encoder, and the value is another compression of the same bytes.
func (c *Cell) Text() (text *string, same bool) {
	switch {
	case c.null:
		return nil, true
	case c.kind == cellText:
		return new(string(c.data)), true
	}
	stored, same := c.stored()
	return new(hexPrefix + hex.EncodeToString(stored)), same
}

// bytes reads a cell that has bytes into dst; ErrFormat if it has not those that were archived.
func (c *Cell) bytes(dst *[]byte) error {
	stored, same := c.stored()
	if !same || c.null {
		return fmt.Errorf("%w: a field of a view is not what was written", ErrFormat)
	}
	*dst = append((*dst)[:0], stored...)
	return nil
}
