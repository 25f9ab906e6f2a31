// Package frozen writes the rows of an archived session into parts, and reads them. It is pure.
//
// A part is one zstd frame. It begins with a line, a JSON object, that says which version of this format it has. Behind
// that are records: the view of a cold session, if there is one, a table with the columns of the rows that follow, or a
// row: its columns as PostgreSQL writes them as text, or null. So what is restored is byte for byte what was archived,
// whatever it is, and a column that is new gets its default. Values that PostgreSQL has compressed are in a part
// decompressed: see Coding. Each part can be read without the others.
package frozen

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Version is the version of the format that Writer writes. Parts of every released version are read for ever.
const Version = 1

// PartBytes is how many bytes of rows a part has before it ends. It has one row at least.
const PartBytes = 8 << 20

// Table is a table of which rows are archived, and their columns.
type Table struct {
	Name    string   `json:"table"`
	Columns []string `json:"columns"`
}

// Row is a row of a table as a part has it.
type Row []Cell

// The records of a part, by their first byte.
const (
	tableRecord = 't' // and its JSON behind its length
	rowRecord   = 'r' // and its cells
	viewRecord  = 'v' // and its SHA-256, and its fields behind their length
)

type head struct {
	Version int `json:"version"`
}

// Part is a part that is complete.
type Part struct {
	Body    []byte
	Digest  [sha256.Size]byte // SHA-256 of Body
	Rows    int64
	ViewEnd int // how many bytes of Body ReadView reads the view from; 0 if there is none
}

// Writer writes one part.
type Writer struct {
	body    bytes.Buffer
	frame   *zstd.Encoder
	table   string
	record  []byte // its memory is used again
	bytes   int
	rows    int64
	viewEnd int
}

// NewWriter begins a part. It has no checksum: it has a digest.
func NewWriter() (*Writer, error) {
	w := &Writer{}
	var err error
	w.frame, err = zstd.NewWriter(&w.body, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(8<<20),
		zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, err
	}
	line, err := json.Marshal(head{Version})
	if err != nil {
		return nil, err
	}
	return w, w.write(append(line, '\n'))
}

func (w *Writer) write(record []byte) error {
	w.record = record
	_, err := w.frame.Write(record)
	return err
}

// Add adds a row of a table, its columns as PostgreSQL writes them as text. codings are those of the columns, by their
// names.
func (w *Writer) Add(of Table, row []*string, codings map[string]Coding) error {
	if w.table != of.Name {
		w.table = of.Name
		text, err := json.Marshal(of)
		if err != nil {
			return err
		}
		record := binary.AppendUvarint(append(w.record[:0], tableRecord), uint64(len(text)))
		if err := w.write(append(record, text...)); err != nil {
			return err
		}
	}
	record := append(w.record[:0], rowRecord)
	for i, text := range row {
		if text != nil {
			w.bytes += len(*text)
		}
		cell := cellOf(text, codings[of.Columns[i]])
		record = cell.append(record)
	}
	w.rows++
	return w.write(record)
}

// Full reports whether the part should end.
func (w *Writer) Full() bool { return w.bytes >= PartBytes }

// Empty reports whether the part has no rows.
func (w *Writer) Empty() bool { return w.rows == 0 }

// End ends the part.
func (w *Writer) End() (Part, error) {
	if err := w.frame.Close(); err != nil {
		return Part{}, err
	}
	body := w.body.Bytes()
	return Part{Body: body, Digest: sha256.Sum256(body), Rows: w.rows, ViewEnd: w.viewEnd}, nil
}

// ErrFormat says that bytes are no part that this program can read.
var ErrFormat = errors.New("not a part of an archive that this program reads")

// Read calls do with every row of a part. The row is do's own.
func Read(part []byte, do func(of *Table, row Row) error) error {
	frame, err := zstd.NewReader(bytes.NewReader(part), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		return err
	}
	defer frame.Close()
	r := reader{in: bufio.NewReaderSize(frame, 64<<10), do: do}
	return r.all()
}

// reader reads a part.
type reader struct {
	in    *bufio.Reader
	table *Table
	do    func(of *Table, row Row) error
}

func (r *reader) all() error {
	if err := r.head(); err != nil {
		return err
	}
	for {
		err := r.next()
		switch {
		case errors.Is(err, errEnd):
			return nil
		case err != nil:
			return err
		}
	}
}

// errEnd says that there is nothing more in a part.
var errEnd = errors.New("the end of a part")

func (r *reader) next() error {
	kind, err := r.in.ReadByte()
	if errors.Is(err, io.EOF) {
		return errEnd
	}
	switch {
	case err != nil:
	case kind == rowRecord && r.table != nil:
		var row Row
		if row, err = r.cells(); err == nil {
			return r.do(r.table, row)
		}
	case kind == tableRecord:
		var text []byte
		if text, err = r.sized(); err == nil {
			return r.begin(text)
		}
	case kind == viewRecord:
		if _, err = r.in.Discard(sha256.Size); err == nil {
			_, err = r.sized()
		}
	default:
		err = errors.New("there is a record that is none")
	}
	if err != nil {
		err = fmt.Errorf("%w: %v", ErrFormat, err)
	}
	return err
}

func (r *reader) cells() (Row, error) {
	row := make(Row, len(r.table.Columns))
	for i := range row {
		var err error
		if row[i], err = readCell(r.in); err != nil {
			return nil, err
		}
	}
	return row, nil
}

// sized reads bytes behind their length.
func (r *reader) sized() ([]byte, error) {
	n, err := binary.ReadUvarint(r.in)
	if err != nil {
		return nil, err
	}
	return readBytes(r.in, n)
}

// begin begins a table.
func (r *reader) begin(text []byte) error {
	r.table = &Table{}
	if err := json.Unmarshal(text, r.table); err != nil || len(r.table.Columns) == 0 {
		return fmt.Errorf("%w: a line names no columns of a table", ErrFormat)
	}
	return nil
}

// head reads the line that a part begins with.
func (r *reader) head() error {
	line, err := r.in.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("%w: %v", ErrFormat, err)
	}
	var h head
	if err := json.Unmarshal(line, &h); err != nil || h.Version < 1 || h.Version > Version {
		return fmt.Errorf("%w: it has the version %d, and this program reads those up to %d",
			ErrFormat, h.Version, Version)
	}
	return nil
}
