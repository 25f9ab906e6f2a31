package persist

import (
	"bytes"
	"context"
	"errors"

	"github.com/google/uuid"
)

// Want is what of a body is brought along when it is opened, at most eight chunks: bytes, or lines from 1. A body of
// one chunk always comes whole.
type Want struct {
	FromByte, ToByte   int64 // from the first to before the second
	FromLine, LastLine int64
}

// WantedChunks is how many chunks come along when a body is opened.
const WantedChunks = 8

// Args returns the arguments from $4 on of the statement whose rows ScanOpened reads.
func (w Want) Args() []any {
	return []any{w.FromByte, max(w.ToByte, 0), w.FromLine, w.LastLine, WantedChunks}
}

// StoredChunk is a chunk as it is stored.
type StoredChunk struct {
	Codec int16
	Bytes []byte
}

// Fetch reads chunks of a body as they are stored now: limit of them from number first on, or fewer if some are
// missing.
type Fetch func(ctx context.Context, first, limit int) ([]StoredChunk, error)

// Opened is a body's row and the index of its chunks, as the statement that opens a body returns them. All is NULL of a
// result that has no body.
type Opened struct {
	Session *uuid.UUID
	ID      *uuid.UUID
	sum     []byte
	bytes   *int64
	lines   *int64
	store   *int16
	index   opened
}

// opened is the index by column.
type opened struct {
	at, line   []int64
	inLine     []bool
	size       []int32
	digest     [][]byte
	codec      []int16
	body       [][]byte
	object     []*uuid.UUID
	objectAt   []*int64
	objectSize []*int32
}

// Dest returns where the columns of the statement are scanned to.
func (o *Opened) Dest() []any {
	i := &o.index
	return []any{&o.Session, &o.ID, &o.sum, &o.bytes, &o.lines, &o.store,
		&i.at, &i.line, &i.inLine, &i.size, &i.digest, &i.codec, &i.body, &i.object, &i.objectAt, &i.objectSize}
}

// ErrOtherBody says that a result's row and its body's do not fit.
var ErrOtherBody = errors.New("its body is another one")

// Is reports whether the body is the one that its result's row describes.
func (o *Opened) Is(r *Result) bool {
	return o.Complete() && bytes.Equal(o.sum, r.SHA256) && *o.bytes == r.Bytes
}

// Complete reports whether the body has come in whole.
func (o *Opened) Complete() bool { return len(o.sum) == 32 }

// Content returns the content of a complete body. what names the body in errors.
//
// Errors: DamagedError if the chunks are not those of a whole body, or one that came along is damaged.
func (o *Opened) Content(what string, fetch Fetch) (*Content, error) {
	c := &Content{
		what: what, whole: Body{SHA256: [32]byte(o.sum), Bytes: *o.bytes, Lines: *o.lines}, here: map[int][]byte{},
		chunks: make([]Chunk, len(o.index.at)),
	}
	for i := range c.chunks {
		c.chunks[i] = Chunk{
			At: o.index.at[i], Line: o.index.line[i], InLine: o.index.inLine[i], Size: int(o.index.size[i]),
			Digest: [32]byte(o.index.digest[i]),
		}
	}
	if !c.contiguous() {
		return nil, c.damaged(errMissing)
	}
	for i, stored := range o.index.body {
		if stored == nil {
			continue
		}
		text, err := c.decode(i, o.index.codec[i], stored)
		if err != nil {
			return nil, err
		}
		c.here[i] = text
	}
	c.source = fetch
	return c, nil
}

var errMissing = errors.New("a chunk is missing")

// fetch returns the bytes of chunks, verified.
func (c *Content) fetch(ctx context.Context, first, limit int) ([][]byte, error) {
	found, err := c.source(ctx, first, limit)
	if err != nil {
		return nil, err
	}
	if len(found) != limit {
		return nil, c.damaged(errMissing)
	}
	texts := make([][]byte, limit)
	for i := range found {
		if texts[i], err = c.decode(first+i, found[i].Codec, found[i].Bytes); err != nil {
			return nil, err
		}
	}
	return texts, nil
}
