// Package pack keeps consecutive messages of a log in little room: compressed together, and with holes in the place of
// tool results that are stored elsewhere.
//
// Start at Cut, which makes holes in a message, Record.Fill, which closes them, and Encode and Decode for many messages
// as one pack. The package is pure: who asks for the body of a hole, and where packs are stored, is package postgres'.
package pack

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"
)

// Record is a message in a pack.
type Record struct {
	Seq    int64
	Rest   []byte // the message without what its holes hold
	Holes  []Hole // by place
	Digest []byte // SHA-256 of the message if it has holes, else nil: the pack's digest covers the rest
	Shape  string // as column messages.shape has it
	View   []byte // what views show of the message; nil if that is the message
}

// Hole is a place in a message where the content of a stored body was.
type Hole struct {
	At    int // offset in Record.Rest
	Body  uuid.UUID
	Style Style // how the content was written there
}

// ErrCorrupt reports that bytes are no pack.
var ErrCorrupt = errors.New("not a pack of messages")

// version is the first byte of a pack before compression.
const version = 1

// About how many bytes the numbers of a record take, and a hole.
const (
	recordBytes = 16 + digestBytes
	holeBytes   = 24
)

// maxPack bounds what a pack may decompress to: a pack has at least one message, and that may have 8 MiB.
const maxPack = 64 << 20

// encoder has the default level: the next makes packs of recorded conversations 4.5 % smaller and takes almost three
// times as long.
var encoder, _ = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(2))

var decoder, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxPack))

// Encode compresses records, whose seqs must ascend, as one pack. What is alike stands together: first the numbers and
// holes of all records, then their shapes, then their bytes.
func Encode(records []Record) []byte {
	size := 1
	for i := range records {
		r := &records[i]
		size += recordBytes + len(r.Holes)*holeBytes + len(r.Shape) + len(r.Rest) + len(r.View)
	}
	out := append(make([]byte, 0, size), version)
	out = binary.AppendUvarint(out, uint64(len(records)))
	before := int64(0)
	for i := range records {
		r := &records[i]
		out = binary.AppendUvarint(out, uint64(r.Seq-before))
		before = r.Seq
		out = r.appendFacts(out)
	}
	for i := range records {
		out = append(out, records[i].Shape...)
	}
	for i := range records {
		out = append(out, records[i].Rest...)
		out = append(out, records[i].View...)
	}
	return encoder.EncodeAll(out, nil)
}

func (r *Record) appendFacts(out []byte) []byte {
	out = binary.AppendUvarint(out, uint64(len(r.Shape)))
	out = binary.AppendUvarint(out, uint64(len(r.Rest)))
	view := 0 // one more than its length, so that an empty view is not the same as none
	if r.View != nil {
		view = len(r.View) + 1
	}
	out = binary.AppendUvarint(out, uint64(view))
	out = binary.AppendUvarint(out, uint64(len(r.Holes)))
	for _, h := range r.Holes {
		out = binary.AppendUvarint(out, uint64(h.At))
		out = binary.AppendUvarint(out, uint64(h.Style))
		out = append(out, h.Body[:]...)
	}
	if len(r.Holes) > 0 {
		out = append(out, r.Digest...)
	}
	return out
}

// Decode returns the records of a pack; ErrCorrupt. They share one memory.
func Decode(packed []byte) ([]Record, error) {
	data, err := decoder.DecodeAll(packed, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	r := reader{rest: data}
	if string(r.bytes(1)) != string([]byte{version}) {
		return nil, fmt.Errorf("%w: this version knows packs of version %d", ErrCorrupt, version)
	}
	facts := make([]facts, r.count(len(data)))
	for i := range facts {
		facts[i] = r.facts()
	}
	records := make([]Record, len(facts))
	seq := int64(0)
	for i, f := range facts {
		seq += f.after
		records[i] = Record{Seq: seq, Holes: f.holes, Digest: f.digest, Shape: string(r.bytes(f.shape))}
	}
	for i, f := range facts {
		records[i].Rest = r.bytes(f.rest)
		if f.view > 0 {
			records[i].View = r.bytes(f.view - 1)
		}
	}
	if r.failed || len(r.rest) > 0 {
		return nil, fmt.Errorf("%w: its lengths do not fit", ErrCorrupt)
	}
	return records, nil
}

// facts are what a record has besides its texts, and the lengths of those.
type facts struct {
	after             int64
	shape, rest, view int
	holes             []Hole
	digest            []byte
}

// reader reads a pack and remembers that it was too short.
type reader struct {
	rest   []byte
	failed bool
}

const digestBytes = 32

func (r *reader) facts() (f facts) {
	f.after = int64(r.number())
	f.shape = r.count(len(r.rest))
	f.rest = r.count(len(r.rest))
	f.view = r.count(len(r.rest) + 1)
	if n := r.count(len(r.rest)); n > 0 {
		f.holes = make([]Hole, n)
		for i := range f.holes {
			h := &f.holes[i]
			h.At = r.count(f.rest)
			h.Style = Style(r.number())
			copy(h.Body[:], r.bytes(len(h.Body)))
		}
		f.digest = r.bytes(digestBytes)
	}
	return f
}

func (r *reader) number() uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.failed = true
		r.rest = nil
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

// count reads a number that cannot be more than limit.
func (r *reader) count(limit int) int {
	n := r.number()
	if n > uint64(limit) {
		r.failed = true
		r.rest = nil
		return 0
	}
	return int(n)
}

func (r *reader) bytes(n int) []byte {
	if n > len(r.rest) {
		r.failed = true
		r.rest = nil
		return nil
	}
	taken := r.rest[:n:n]
	r.rest = r.rest[n:]
	return taken
}
