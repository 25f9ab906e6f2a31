package persist

import (
	"bytes"
	"crypto/sha256"
	"encoding"
	"encoding/gob"
	"fmt"
	"hash"
	"slices"
	"unicode/utf8"

	"github.com/google/uuid"
)

// ChunkBytes is how many bytes a chunk has at most. A line that is no longer lies in one chunk, unless it begins before
// the end of a chunk that a longer line fills.
const ChunkBytes = 128 << 10

// Chunk is a piece of a body. The chunks of a body follow one another without a gap; an empty body has one, which is
// empty.
type Chunk struct {
	At     int64    // offset of its first byte in the body
	Line   int64    // number of the line that this byte belongs to, from 1
	InLine bool     // this line began in an earlier chunk
	Size   int      // bytes
	Digest [32]byte // SHA-256 of the bytes; zero in a body that lies in memory
}

// encoded is a chunk as it is stored.
type encoded struct {
	Chunk
	n      int
	codec  int16
	stored []byte

	object   *uuid.UUID // that has the bytes; nil if the row has them
	objectAt int64
	size     int // of stored
}

// cutAt returns where a chunk ends that begins with text, 0 if more text must be known. It ends after a line, else
// between two characters.
func cutAt(text []byte) int {
	if len(text) <= ChunkBytes {
		return 0
	}
	if feed := bytes.LastIndexByte(text[:ChunkBytes], '\n'); feed >= 0 {
		return feed + 1
	}
	for end := ChunkBytes; end > ChunkBytes-utf8.UTFMax; end-- {
		if utf8.RuneStart(text[end]) {
			return end
		}
	}
	return ChunkBytes
}

// after returns where the chunk after c begins, whose text is c's.
func (c Chunk) after(text []byte) Chunk {
	return Chunk{
		At:     c.At + int64(len(text)),
		Line:   c.Line + int64(bytes.Count(text, []byte{'\n'})),
		InLine: len(text) > 0 && text[len(text)-1] != '\n',
	}
}

// cutter cuts a body that arrives in pieces into chunks: always the same ones, whatever the pieces are.
type cutter struct {
	next Chunk // where the chunk begins that is not finished
	n    int   // its number
	rest []byte
	sum  hash.Hash
}

func newCutter() *cutter { return &cutter{next: Chunk{Line: 1}, sum: sha256.New()} }

// offset returns how many bytes have arrived.
func (c *cutter) offset() int64 { return c.next.At + int64(len(c.rest)) }

// write takes the next bytes of the body and returns the chunks that they finish.
func (c *cutter) write(p []byte) (done []encoded) {
	done = c.take(p)
	c.rest = bytes.Clone(c.rest)
	return done
}

// take does what write does for bytes that do not change before end.
func (c *cutter) take(p []byte) (done []encoded) {
	c.sum.Write(p)
	if len(c.rest) > 0 {
		p = slices.Concat(c.rest, p)
	}
	for end := cutAt(p); end > 0; end = cutAt(p) {
		done = append(done, c.chunk(p[:end], sha256.Sum256(p[:end]), false))
		p = p[end:]
	}
	c.rest = p
	return done
}

// end returns the last chunk and what the whole body is.
func (c *cutter) end() (last []encoded, whole Body) {
	c.sum.Sum(whole.SHA256[:0])
	switch {
	case c.n == 0:
		last = []encoded{c.chunk(c.rest, whole.SHA256, true)}
	case len(c.rest) > 0:
		last = []encoded{c.chunk(c.rest, sha256.Sum256(c.rest), false)}
	}
	c.rest = nil
	whole.Bytes, whole.Lines = c.next.At, c.next.Line-1
	if c.next.InLine {
		whole.Lines++
	}
	return last, whole
}

// chunk finishes a chunk; only says that the body has no other.
func (c *cutter) chunk(text []byte, digest [sha256.Size]byte, only bool) encoded {
	made := encoded{Chunk: c.next, n: c.n}
	made.Size = len(text)
	made.Digest = digest
	made.codec, made.stored = compress(text, only)
	c.next = c.next.after(text)
	c.n++
	return made
}

// cutterState is what a cutter needs to go on later, as gob writes it.
type cutterState struct {
	Next Chunk
	N    int
	Rest []byte
	Sum  []byte // the state of the SHA-256
}

// save returns the state of the cutter.
func (c *cutter) save() ([]byte, error) {
	sum, err := c.sum.(encoding.BinaryMarshaler).MarshalBinary()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = gob.NewEncoder(&out).Encode(cutterState{Next: c.next, N: c.n, Rest: c.rest, Sum: sum})
	return out.Bytes(), err
}

// loadCutter returns the cutter whose state was saved.
func loadCutter(saved []byte) (*cutter, error) {
	var state cutterState
	if err := gob.NewDecoder(bytes.NewReader(saved)).Decode(&state); err != nil {
		return nil, fmt.Errorf("state of a body that is being written: %w", err)
	}
	c := &cutter{next: state.Next, n: state.N, rest: state.Rest, sum: sha256.New()}
	if err := c.sum.(encoding.BinaryUnmarshaler).UnmarshalBinary(state.Sum); err != nil {
		return nil, fmt.Errorf("state of a body that is being written: %w", err)
	}
	return c, nil
}
