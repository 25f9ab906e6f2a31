package persist

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"sort"

	"github.com/varve-dev/varve/internal/session"
)

// Body is what is known of a whole body.
type Body struct {
	SHA256 [32]byte
	Bytes  int64
	Lines  int64 // a line feed at the end ends the last of them
}

// Content is a body that is read chunk by chunk. It may be used by several goroutines; it holds no transaction and
// need not be closed.
type Content struct {
	whole  Body
	what   string // names the body in errors: "result r17.1-9f3a"
	chunks []Chunk
	here   map[int][]byte // chunks that came with the index, decoded
	source Fetch
	quick  bool // chunks are not compared with their digests
}

// ContentOf returns the content of a body in memory. Its chunks alias the body.
func ContentOf(body []byte) *Content {
	c := &Content{here: map[int][]byte{}, whole: Body{SHA256: sha256.Sum256(body), Bytes: int64(len(body))}}
	next := Chunk{Line: 1}
	for first := true; first || len(body) > 0; first = false {
		end := cutAt(body)
		if end == 0 {
			end = len(body)
		}
		next.Size = end
		c.here[len(c.chunks)] = body[:end:end]
		c.chunks = append(c.chunks, next)
		next = next.after(body[:end])
		body = body[end:]
	}
	c.whole.Lines = next.Line - 1
	if next.InLine {
		c.whole.Lines++
	}
	return c
}

// Size returns how many bytes the body has.
func (c *Content) Size() int64 { return c.whole.Bytes }

// Lines returns how many lines the body has. A line feed at its end ends the last of them.
func (c *Content) Lines() int64 { return c.whole.Lines }

// SHA256 returns the digest of the whole body.
func (c *Content) SHA256() [32]byte { return c.whole.SHA256 }

// Index returns the chunks of the body, at least one. It must not be changed.
func (c *Content) Index() []Chunk { return c.chunks }

// At returns the number of the chunk that has the byte at an offset: the last one for an offset beyond the end.
func (c *Content) At(offset int64) int {
	return max(sort.Search(len(c.chunks), func(i int) bool { return c.chunks[i].At > offset })-1, 0)
}

// AtLine returns the number of the chunk in which a line begins, from 1: the last one for a line beyond the end.
func (c *Content) AtLine(line int64) int {
	i := sort.Search(len(c.chunks), func(i int) bool {
		return c.chunks[i].Line > line || c.chunks[i].Line == line && c.chunks[i].InLine
	})
	return max(i-1, 0)
}

// Chunk returns the bytes of chunk i, verified. They must not be changed.
//
// Errors: DamagedError, ErrNotFound if the session was deleted meanwhile.
func (c *Content) Chunk(ctx context.Context, i int) ([]byte, error) {
	if text, ok := c.here[i]; ok {
		return text, nil
	}
	texts, err := c.fetch(ctx, i, 1)
	if err != nil {
		return nil, err
	}
	return texts[0], nil
}

// Between returns the bytes of the body from one offset to before another, or to its end, verified.
//
// Errors: those of Chunk.
func (c *Content) Between(ctx context.Context, from, to int64) (found []byte, err error) {
	if to = min(to, c.Size()); from >= to {
		return nil, nil
	}
	for i := c.At(from); i < len(c.chunks) && c.chunks[i].At < to; i++ {
		chunk, err := c.Chunk(ctx, i)
		if err != nil {
			return nil, err
		}
		first, last := max(from-c.chunks[i].At, 0), min(to-c.chunks[i].At, int64(len(chunk)))
		found = append(found, chunk[first:last]...)
	}
	return found, nil
}

// readAhead is how many chunks From reads at once.
const readAhead = 16

// From returns the bytes of the chunks from number first on, one after another, verified. It reads some chunks ahead.
// It ends after an error, which is one of those of Chunk.
func (c *Content) From(ctx context.Context, first int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for i := first; i < len(c.chunks); {
			texts, err := c.run(ctx, i)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, text := range texts {
				if !yield(text, nil) {
					return
				}
			}
			i += len(texts)
		}
	}
}

// Scan returns what From returns, for a reader that looks for something and shows none of it: a chunk is held to the
// checksum of its compressed form only, which costs half as much. What is shown must be read by Chunk.
func (c *Content) Scan(ctx context.Context, first int) iter.Seq2[[]byte, error] {
	quick := *c
	quick.quick = true
	return quick.From(ctx, first)
}

// run returns chunk i and some after it.
func (c *Content) run(ctx context.Context, i int) ([][]byte, error) {
	if text, ok := c.here[i]; ok {
		return [][]byte{text}, nil
	}
	return c.fetch(ctx, i, min(readAhead, len(c.chunks)-i))
}

// All returns the whole body, whose digest is compared, too. It must not be changed.
//
// Errors: those of Chunk.
func (c *Content) All(ctx context.Context) ([]byte, error) {
	if len(c.chunks) == 1 && c.chunks[0].Digest == c.whole.SHA256 {
		return c.Chunk(ctx, 0)
	}
	body := make([]byte, 0, c.whole.Bytes)
	for text, err := range c.From(ctx, 0) {
		if err != nil {
			return nil, err
		}
		body = append(body, text...)
	}
	if sha256.Sum256(body) != c.whole.SHA256 {
		return nil, c.damaged(errors.New("it has another SHA-256"))
	}
	return body, nil
}

func (c *Content) damaged(cause error) error {
	return &session.DamagedError{What: c.what, Cause: cause}
}

// contiguous reports whether the chunks are those of the whole body.
func (c *Content) contiguous() bool {
	at := int64(0)
	for _, chunk := range c.chunks {
		if chunk.At != at || chunk.Size < 0 {
			return false
		}
		at += int64(chunk.Size)
	}
	return len(c.chunks) > 0 && at == c.whole.Bytes
}

// decode returns the bytes of chunk i as it is stored, if they are those that were put.
func (c *Content) decode(i int, codec int16, stored []byte) ([]byte, error) {
	text, err := decompress(codec, stored, c.chunks[i].Size)
	checked := c.quick && hasChecksum(codec, stored)
	if err == nil && (len(text) != c.chunks[i].Size || !checked && sha256.Sum256(text) != c.chunks[i].Digest) {
		err = errors.New("it has another SHA-256")
	}
	if err != nil {
		return nil, c.damaged(fmt.Errorf("chunk %d: %w", i, err))
	}
	return text, nil
}
