package frozen

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/varve-dev/varve/internal/zframe"
)

// maxViewBytes bounds what a view has when it is decompressed.
const maxViewBytes = 64 << 20

var viewDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxViewBytes))
})

// View adds a view, of which the first field is compressed as zframe does, before any row. Rows that repeat what is in
// it take no more room.
func (w *Writer) View(fields ...[]byte) error {
	var plain []byte
	for i, field := range fields {
		coding := Closed
		if i == 0 {
			coding = Blocks
		}
		cell := cellOfBytes(field, coding)
		plain = cell.append(plain)
	}
	sum := sha256.Sum256(plain)
	record := append(append(w.record[:0], viewRecord), sum[:]...)
	record = binary.AppendUvarint(record, uint64(len(plain)))
	if err := w.write(append(record, plain...)); err != nil {
		return err
	}
	err := w.frame.Flush()
	w.viewEnd = w.body.Len()
	return err
}

// ReadView reads the view of a part, of which start are the first ViewEnd bytes, into fields, whose memory it reuses.
// ErrFormat if there is none, or it is not what was written.
func ReadView(start []byte, fields ...*[]byte) error {
	decoder, err := viewDecoder()
	if err != nil {
		return err
	}
	plain, err := decoder.DecodeAll(append(slices.Clip(start), zframe.End...), nil)
	if err != nil {
		return fmt.Errorf("%w: %v", ErrFormat, err)
	}
	r := reader{in: bufio.NewReader(bytes.NewReader(plain))}
	if err := r.head(); err != nil {
		return err
	}
	record := make([]byte, 1+sha256.Size)
	if _, err := io.ReadFull(r.in, record); err != nil || record[0] != viewRecord {
		return fmt.Errorf("%w: a part has no view", ErrFormat)
	}
	view, err := r.sized()
	if sum := sha256.Sum256(view); err != nil || !bytes.Equal(sum[:], record[1:]) {
		return fmt.Errorf("%w: a view has another digest than when it was written", ErrFormat)
	}
	return readFields(bytes.NewReader(view), fields)
}

func readFields(view *bytes.Reader, fields []*[]byte) error {
	for _, field := range fields {
		cell, err := readCell(view)
		if err != nil {
			return fmt.Errorf("%w: a view has fewer fields than this program knows", ErrFormat)
		}
		if err := cell.bytes(field); err != nil {
			return err
		}
	}
	if view.Len() > 0 {
		return fmt.Errorf("%w: a view has more fields than this program knows", ErrFormat)
	}
	return nil
}
