package compact

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// A checkpoint's state says of every message and every result in its body what the next compaction has to know, so that
// it parses neither bodies nor replacements. Layout, in unsigned varints unless said otherwise, strings with their
// length before them:
//
//	version (one byte), format, number of messages
//	a message: seq - seq before, size, flags (one byte), tokens, tokens now, number of results; its results:
//	  part, start of its value, size of its value, flags (one byte), call id, tool, tokens; if it is paired:
//	  identity (16 bytes); if it has left: tokens now, stage, SHA-256 (32 bytes), characters, head, tail, their bytes, preview
//	number of open calls; each: message, part, id, tool, identity (16 bytes)
//	CRC-32C of all that (4 bytes, little endian)
//
// A tool or a stage is 0 and the string the first time, and 1 + its number in the order of first times afterwards.
const stateVersion = 1

// The flags of a message, above its role, and of a result, above its action.
const (
	flagBegins = 1 << 2
	flagWhole  = 1 << 3
	roleMask   = 1<<2 - 1

	flagPaired = 1 << 3
	flagUsable = 1 << 4
	flagText   = 1 << 5
	doMask     = 1<<3 - 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errState = errors.New("compact: the checkpoint's state is damaged or of another version")

type stateWriter struct {
	bytes []byte
	names map[string]uint64
	seq   int64
}

func newStateWriter(f session.Format, messages int) *stateWriter {
	w := &stateWriter{bytes: make([]byte, 0, 64+messages*48), names: map[string]uint64{}}
	w.bytes = append(w.bytes, stateVersion)
	w.ints(int(f.Number()), messages)
	return w
}

func (w *stateWriter) ints(values ...int) {
	for _, v := range values {
		w.bytes = binary.AppendUvarint(w.bytes, uint64(v))
	}
}

func (w *stateWriter) text(s string) {
	w.ints(len(s))
	w.bytes = append(w.bytes, s...)
}

func (w *stateWriter) name(s string) {
	n, known := w.names[s]
	w.bytes = binary.AppendUvarint(w.bytes, n)
	if !known {
		w.names[s] = uint64(len(w.names) + 1)
		w.text(s)
	}
}

func (w *stateWriter) message(m *message) {
	flags := byte(m.role)
	if m.begins {
		flags |= flagBegins
	}
	if m.whole {
		flags |= flagWhole
	}
	w.ints(int(m.seq-w.seq), m.size)
	w.bytes = append(w.bytes, flags)
	w.ints(m.tokens, m.now, m.last-m.first)
	w.seq = m.seq
}

func (w *stateWriter) result(r *result) {
	flags := byte(r.do)
	if r.paired {
		flags |= flagPaired
	}
	if r.usable {
		flags |= flagUsable
	}
	if r.left.text {
		flags |= flagText
	}
	w.ints(r.part, r.value.Start, r.value.End-r.value.Start)
	w.bytes = append(w.bytes, flags)
	w.text(r.callID)
	w.name(r.tool)
	w.ints(r.tokens)
	if r.paired {
		w.bytes = append(w.bytes, r.identity[:]...)
	}
	if r.do != Keep {
		w.ints(r.now)
		w.name(r.stage)
		w.bytes = append(w.bytes, r.sum[:]...)
		w.ints(r.chars, r.head, r.tail, r.headBytes, r.tailBytes)
		w.text(r.preview)
	}
}

// calls writes the end and returns the whole state.
func (w *stateWriter) calls(open []call) []byte {
	w.ints(len(open))
	for i := range open {
		w.ints(open[i].message, open[i].part)
		w.text(open[i].id)
		w.name(open[i].tool)
		w.bytes = append(w.bytes, open[i].identity[:]...)
	}
	return binary.LittleEndian.AppendUint32(w.bytes, crc32.Checksum(w.bytes, castagnoli))
}

// restore fills an empty history from a checkpoint.
func (h *history) restore(base *Checkpoint) error {
	end := len(base.State) - 4
	if end < 0 || crc32.Checksum(base.State[:end], castagnoli) != binary.LittleEndian.Uint32(base.State[end:]) || !h.decode(base, base.State[:end]) {
		return fmt.Errorf("%w: checkpoint through message %d", errState, base.Through)
	}
	return nil
}

// decode reports whether state is one of the base's body.
func (h *history) decode(base *Checkpoint, state []byte) bool {
	r := stateReader{rest: string(state)}
	if r.byte() != stateVersion || r.int() != int(h.in.Format.Number()) {
		return false
	}
	n := r.count()
	h.messages = make([]message, 0, n+len(h.in.Tail))
	for offset := 0; n > 0 && r.err == nil; n-- {
		m := r.message()
		m.offset, m.first = offset, len(h.results)
		for range r.count() {
			h.results = append(h.results, r.result(len(h.messages), m.size))
		}
		m.last = len(h.results)
		offset += m.size + 1
		h.push(m)
	}
	for range r.count() {
		c := r.call(len(h.messages))
		h.open[c.id] = append(h.open[c.id], c)
		if c.message == h.asked {
			h.waiting++
		}
	}
	h.based = len(h.messages)
	return r.err == nil && r.rest == "" && h.describes(base)
}

// describes reports whether what was restored fits the checkpoint's other fields.
func (h *history) describes(base *Checkpoint) bool {
	if len(h.messages) == 0 {
		return len(base.Body) == 0 && base.Through == 0
	}
	m := &h.messages[len(h.messages)-1]
	return m.offset+m.size == len(base.Body) && m.seq == base.Through && h.messages[0].whole && h.messages[0].begins
}

// stateReader reads what stateWriter wrote. After the first thing that does not fit it returns zeros.
type stateReader struct {
	rest  string
	names []string
	seq   int64
	err   error
}

// most bounds every number in a state, so that sums of them cannot overflow.
const most = 1 << 40

func (r *stateReader) int() int {
	v, shift := uint64(0), 0
	for i := 0; i < len(r.rest) && i < 7; i++ {
		b := r.rest[i]
		v |= uint64(b&0x7F) << shift
		if shift += 7; b < 0x80 && v < most {
			r.rest = r.rest[i+1:]
			return int(v)
		}
	}
	r.fail()
	return 0
}

func (r *stateReader) fail() {
	r.rest, r.err = "", errState
}

// count reads how many of something come, of which each has a byte at least.
func (r *stateReader) count() int {
	n := r.int()
	if n > len(r.rest) {
		r.fail()
		return 0
	}
	return n
}

func (r *stateReader) text() string { return r.take(r.int()) }

func (r *stateReader) take(n int) string {
	if n > len(r.rest) {
		r.fail()
		return ""
	}
	s := r.rest[:n]
	r.rest = r.rest[n:]
	return s
}

func (r *stateReader) byte() byte {
	s := r.take(1)
	if s == "" {
		return 0
	}
	return s[0]
}

func (r *stateReader) name() string {
	n := r.int()
	switch {
	case n == 0:
		r.names = append(r.names, r.text())
		n = len(r.names)
	case n > len(r.names):
		r.fail()
		return ""
	}
	return r.names[n-1]
}

func (r *stateReader) message() message {
	r.seq += int64(r.int())
	m := message{seq: r.seq, size: r.int()}
	flags := r.byte()
	m.role, m.begins, m.whole = role(flags&roleMask), flags&flagBegins != 0, flags&flagWhole != 0
	m.tokens, m.now = r.int(), r.int()
	return m
}

func (r *stateReader) result(message, size int) result {
	v := result{message: message, part: r.int(), asked: -1}
	start, length := r.int(), r.int()
	v.value = wire.Span{Start: start, End: start + length}
	flags := r.byte()
	v.do, v.paired, v.usable = Do(flags&doMask), flags&flagPaired != 0, flags&flagUsable != 0
	v.left.text = flags&flagText != 0
	v.callID, v.tool, v.tokens = r.text(), r.name(), r.int()
	v.now = v.tokens
	if v.paired {
		copy(v.identity[:], r.take(len(v.identity)))
	}
	if v.do != Keep {
		r.left(&v)
	}
	if v.value.End > size || v.do > Clear || v.headBytes+v.tailBytes > length {
		r.fail()
	}
	return v
}

func (r *stateReader) left(v *result) {
	v.now, v.stage = r.int(), r.name()
	copy(v.sum[:], r.take(len(v.sum)))
	v.chars, v.head, v.tail, v.headBytes, v.tailBytes = r.int(), r.int(), r.int(), r.int(), r.int()
	v.preview = r.text()
}

func (r *stateReader) call(messages int) call {
	c := call{message: r.int(), part: r.int(), id: r.text(), tool: r.name()}
	copy(c.identity[:], r.take(len(c.identity)))
	if c.message >= messages {
		r.fail()
	}
	return c
}
