package compact

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/varve-dev/varve/internal/session"
)

// A checkpoint's state says of every message and every part in its body what the next compaction has to know, so that it
// parses neither bodies nor replacements. Layout, in unsigned varints unless said otherwise, strings with their length
// before them:
//
//	version (one byte), format
//	number of stages; of each: the message that first needed it, 0 for none
//	number of messages
//	a message: seq - seq before, size, flags (one byte), tokens, tokens now; if it stands for others: the first of them,
//	  the last, how many, where the summary begins and ends; number of parts; its parts:
//	  index, start of its value, size of its value, flags (one byte), action (one byte), call id, tool, tokens; if it is
//	  paired: its subject, a result's call (its own number - the call's, 0 for none); if it has left: tokens now, stage,
//	  SHA-256 (32 bytes), tokens left by the cap, by collapsing, bytes, characters, head, tail, their bytes, preview
//	number of open calls; each: message, index, part + 1 (0 for none), id, tool, subject
//	CRC-32C of all that (4 bytes, little endian)
//
// A subject is what the call does (one byte), identity (16 bytes), resource, number of paths, each path. A tool, stage,
// resource or path is 0 and the string the first time, and 1 + its number in the order of first times afterwards.
const stateVersion = 2

// The flags of a message, above its role, and of a part, above its kind.
const (
	flagBegins   = 1 << 2
	flagWhole    = 1 << 3
	flagStandsIn = 1 << 4
	roleMask     = 1<<2 - 1

	flagArguments = 1 << 0
	flagPaired    = 1 << 1
	flagUsable    = 1 << 2
	flagText      = 1 << 3
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errState = errors.New("compact: the checkpoint's state is damaged or of another version")

type stateWriter struct {
	bytes []byte
	names map[string]uint64
	seq   int64
}

func newStateWriter(f session.Format, entered []int64, messages int) *stateWriter {
	w := &stateWriter{bytes: make([]byte, 0, 64+messages*64), names: map[string]uint64{}}
	w.bytes = append(w.bytes, stateVersion)
	w.ints(int(f.Number()), len(entered))
	for _, seq := range entered {
		w.ints(int(seq))
	}
	w.ints(messages)
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
	if m.coversOthers() {
		flags |= flagStandsIn
	}
	w.ints(int(m.seq-w.seq), m.size)
	w.bytes = append(w.bytes, flags)
	w.ints(m.tokens, m.now)
	if m.coversOthers() {
		w.ints(int(m.from), int(m.to), m.messages, m.inner.start, m.inner.end)
	}
	w.ints(m.last - m.first)
	w.seq = m.seq
}

// part writes a part whose own number, and that of its call, are counted anew.
func (w *stateWriter) part(p *part, number int) {
	w.ints(p.index, p.value.Start, p.valueBytes())
	w.bytes = append(w.bytes, p.flags(), byte(p.action))
	w.text(p.callID)
	w.name(p.tool)
	w.ints(p.tokens)
	if p.paired {
		w.subject(&p.subject)
		back := 0
		if p.call >= 0 {
			back = number - p.call
		}
		w.ints(back)
	}
	if p.action != Keep {
		w.ints(p.now)
		w.name(p.stage)
		w.bytes = append(w.bytes, p.sum[:]...)
		w.ints(p.capped, p.collapsed, p.bytes, p.chars, p.head, p.tail, p.headBytes, p.tailBytes)
		w.text(p.preview)
	}
}

func (p *part) flags() (flags byte) {
	for _, f := range []struct {
		set  bool
		flag byte
	}{{p.kind == arguments, flagArguments}, {p.paired, flagPaired}, {p.usable, flagUsable}, {p.replacement.onlyText, flagText}} {
		if f.set {
			flags |= f.flag
		}
	}
	return flags
}

func (w *stateWriter) subject(s *subject) {
	w.bytes = append(w.bytes, byte(s.does))
	w.bytes = append(w.bytes, s.identity[:]...)
	w.name(s.resource)
	w.ints(len(s.paths))
	for _, path := range s.paths {
		w.name(path)
	}
}

// calls writes the end and returns the whole state.
func (w *stateWriter) calls(open []call) []byte {
	w.ints(len(open))
	for i := range open {
		w.ints(open[i].message, open[i].index, open[i].part+1)
		w.text(open[i].id)
		w.name(open[i].tool)
		w.subject(&open[i].subject)
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
