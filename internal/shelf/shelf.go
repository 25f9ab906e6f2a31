// Package shelf writes the rows of an archived session into parts, and reads them. It is pure.
//
// A part is one zstd frame of lines. The first says which version of this format it has. A line that is an object says
// of which table the rows are that follow, and which columns they have; a line that is an array is a row: its columns
// as PostgreSQL writes them as text, or null. So what is restored is byte for byte what was archived, whatever it is,
// and a column that is new gets its default. Each part can be read without the others.
package shelf

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/zstd"
)

// Version is the version of the format that Writer writes. Parts of every version before are read for ever.
const Version = 1

// PartBytes is how many bytes of rows a part has before it ends. It has one row at least.
const PartBytes = 8 << 20

// Table is a table of which rows are archived, and their columns.
type Table struct {
	Name    string   `json:"table"`
	Columns []string `json:"columns"`
}

type head struct {
	Version int `json:"version"`
}

// Part is a part that is complete.
type Part struct {
	Body   []byte
	Digest [sha256.Size]byte // SHA-256 of Body
	Rows   int64
}

// Writer writes one part.
type Writer struct {
	body  bytes.Buffer
	frame *zstd.Encoder
	table string
	bytes int
	rows  int64
}

// NewWriter begins a part.
func NewWriter() (*Writer, error) {
	w := &Writer{}
	var err error
	w.frame, err = zstd.NewWriter(&w.body, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(8<<20),
		zstd.WithEncoderLevel(zstd.SpeedBetterCompression))
	if err != nil {
		return nil, err
	}
	return w, w.line(head{Version})
}

func (w *Writer) line(value any) error {
	line, err := json.Marshal(value)
	if err == nil {
		_, err = w.frame.Write(append(line, '\n'))
	}
	return err
}

// Add adds a row of a table: a JSON array on one line.
func (w *Writer) Add(of Table, row []byte) error {
	if w.table != of.Name {
		w.table = of.Name
		if err := w.line(of); err != nil {
			return err
		}
	}
	w.rows++
	w.bytes += len(row)
	if _, err := w.frame.Write(row); err != nil {
		return err
	}
	_, err := w.frame.Write([]byte{'\n'})
	return err
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
	return Part{Body: w.body.Bytes(), Digest: sha256.Sum256(w.body.Bytes()), Rows: w.rows}, nil
}

// ErrFormat says that bytes are no part that this program can read.
var ErrFormat = errors.New("not a part of an archive that this program reads")

// Read calls do with every row of a part. The row is do's own.
func Read(part []byte, do func(of *Table, row []*string) error) error {
	frame, err := zstd.NewReader(bytes.NewReader(part), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		return err
	}
	defer frame.Close()
	lines := bufio.NewReaderSize(frame, 64<<10)
	r := reader{do: do}
	for {
		line, err := lines.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0:
			return r.end()
		case err != nil:
			return fmt.Errorf("%w: %v", ErrFormat, err)
		}
		if err := r.line(line); err != nil {
			return err
		}
	}
}

// reader reads the lines of a part.
type reader struct {
	begun bool
	table *Table
	do    func(of *Table, row []*string) error
}

func (r *reader) end() error {
	if !r.begun {
		return fmt.Errorf("%w: it is empty", ErrFormat)
	}
	return nil
}

func (r *reader) line(line []byte) error {
	switch {
	case !r.begun:
		var h head
		if err := json.Unmarshal(line, &h); err != nil || h.Version < 1 || h.Version > Version {
			return fmt.Errorf("%w: it has the version %d, and this program reads those up to %d",
				ErrFormat, h.Version, Version)
		}
		r.begun = true
	case line[0] == '{':
		r.table = &Table{}
		if err := json.Unmarshal(line, r.table); err != nil || len(r.table.Columns) == 0 {
			return fmt.Errorf("%w: a line names no columns of a table", ErrFormat)
		}
	default:
		return r.row(line)
	}
	return nil
}

func (r *reader) row(line []byte) error {
	var row []*string
	if err := json.Unmarshal(line, &row); err != nil || r.table == nil || len(row) != len(r.table.Columns) {
		return fmt.Errorf("%w: a row is not one of its table's", ErrFormat)
	}
	return r.do(r.table, row)
}

// Column returns the value of a column in a row, nil for NULL or no such column.
func (t *Table) Column(row []*string, name string) *string {
	if i := slices.Index(t.Columns, name); i >= 0 {
		return row[i]
	}
	return nil
}
