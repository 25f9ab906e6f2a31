package backup

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/zstd"
)

const manifestName = "manifest.json"

func tableName(t *Table) string { return "tables/" + t.Name }

// writer writes a backup.
type writer struct {
	Manifest
	zip *zip.Writer
}

// write writes the database as a transaction sees it, and reads it back.
func (w *writer) write(ctx context.Context, tx pgx.Tx, to *os.File) error {
	if _, err := tx.Exec(ctx, unlimited); err != nil {
		return err
	}
	if err := checkVisible(ctx, tx); err != nil {
		return err
	}
	if err := w.look(ctx, tx); err != nil {
		return err
	}
	w.zip = zip.NewWriter(to)
	w.zip.RegisterCompressor(zstd.ZipMethodWinZip, zstd.ZipCompressor())
	for i := range w.Tables {
		if err := w.table(ctx, tx, &w.Tables[i]); err != nil {
			return fmt.Errorf("table %s: %w", w.Tables[i].Name, err)
		}
	}
	if err := w.sequences(ctx, tx); err != nil {
		return err
	}
	if err := w.manifest(); err != nil {
		return err
	}
	if err := errors.Join(w.zip.Close(), to.Sync()); err != nil {
		return err
	}
	return w.readBack(ctx, to)
}

// look reads what the manifest says of the whole; ErrEmpty.
func (w *writer) look(ctx context.Context, tx pgx.Tx) (err error) {
	var tenants int64
	err = tx.QueryRow(ctx, `
		SELECT now(), (SELECT count(*) FROM tenants), (SELECT count(*) FROM result_bodies WHERE store <> 0)`).
		Scan(&w.At, &tenants, &w.Outside)
	if err == nil && tenants == 0 {
		err = ErrEmpty
	}
	if err != nil {
		return err
	}
	w.Tables, err = tables(ctx, tx)
	return err
}

// digest counts and digests what is written to it.
type digest struct {
	hash.Hash
	bytes int64
	lines int64
}

func newDigest() *digest { return &digest{Hash: sha256.New()} }

// Write implements io.Writer.
func (d *digest) Write(p []byte) (int, error) {
	d.bytes += int64(len(p))
	d.lines += int64(bytes.Count(p, []byte{'\n'})) // COPY writes a row as a line, and a newline in it as \n
	return d.Hash.Write(p)
}

func (d *digest) sum() string { return hex.EncodeToString(d.Sum(nil)) }

// table writes a table. Its rows are counted by COPY, and once more by the database: both must be the same.
func (w *writer) table(ctx context.Context, tx pgx.Tx, t *Table) error {
	entry, err := w.zip.CreateHeader(&zip.FileHeader{Name: tableName(t), Method: zstd.ZipMethodWinZip})
	if err != nil {
		return err
	}
	read := newDigest()
	tag, err := tx.Conn().PgConn().CopyTo(ctx, io.MultiWriter(entry, read), `COPY `+t.copied()+` TO STDOUT`)
	if err != nil {
		return err
	}
	t.Rows, t.Bytes = tag.RowsAffected(), read.bytes
	t.SHA256 = read.sum()
	var counted int64
	if err := tx.QueryRow(ctx, `SELECT count(*) FROM `+t.ident()).Scan(&counted); err != nil {
		return err
	}
	if counted != t.Rows || read.lines != t.Rows {
		return fmt.Errorf("%w: of %d rows %d were copied, in %d lines", ErrDamaged, counted, t.Rows, read.lines)
	}
	return nil
}

// sequences come last: they have not given a number by then that a row of the backup does not have.
func (w *writer) sequences(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `
		SELECT sequencename::text, coalesce(last_value, 0)
		  FROM pg_sequences
		 WHERE schemaname = current_schema()
		 ORDER BY 1`)
	if err != nil {
		return err
	}
	w.Sequences, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Sequence])
	return err
}

func (w *writer) manifest() error {
	entry, err := w.zip.Create(manifestName)
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(entry)
	encoder.SetIndent("", "  ")
	return encoder.Encode(w.Manifest)
}

// readBack compares what lies in the file with what was written.
func (w *writer) readBack(ctx context.Context, file *os.File) error {
	r, err := newReader(file)
	if err != nil {
		return err
	}
	if len(r.Tables) != len(w.Tables) {
		return fmt.Errorf("%w: it has %d tables of %d", ErrDamaged, len(r.Tables), len(w.Tables))
	}
	for i := range r.Tables {
		if r.Tables[i].SHA256 != w.Tables[i].SHA256 {
			return fmt.Errorf("%w: another table %s was read than was written", ErrDamaged, w.Tables[i].Name)
		}
	}
	return r.check(ctx)
}

// reader reads a backup.
type reader struct {
	Manifest
	zip *zip.Reader
}

func newReader(file *os.File) (*reader, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	opened, err := zip.NewReader(file, info.Size())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	opened.RegisterDecompressor(zstd.ZipMethodWinZip, zstd.ZipDecompressor())
	r := &reader{zip: opened}
	text, err := fs.ReadFile(opened, manifestName) // all of it: the checksum comes at the end
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if err := json.Unmarshal(text, &r.Manifest); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, manifestName, err)
	}
	if r.Format != format {
		return nil, fmt.Errorf("the backup has form %d, this program reads form %d", r.Format, format)
	}
	return r, nil
}

// check reads all tables and compares them with the manifest; ErrDamaged.
func (r *reader) check(ctx context.Context) error {
	for i := range r.Tables {
		if err := errors.Join(ctx.Err(), r.read(&r.Tables[i], io.Discard)); err != nil {
			return err
		}
	}
	return nil
}

// read writes a table to to, and returns ErrDamaged if it is not that of the manifest.
func (r *reader) read(t *Table, to io.Writer) error {
	entry, err := r.zip.Open(tableName(t))
	if err != nil {
		return fmt.Errorf("%w: table %s: %w", ErrDamaged, t.Name, err)
	}
	defer entry.Close()
	read := newDigest()
	if _, err := io.Copy(io.MultiWriter(read, to), entry); err != nil {
		return fmt.Errorf("%w: table %s: %w", ErrDamaged, t.Name, err)
	}
	if read.sum() != t.SHA256 || read.lines != t.Rows {
		return fmt.Errorf("%w: table %s has %d rows of %d, or others", ErrDamaged, t.Name, read.lines, t.Rows)
	}
	return nil
}
