package api

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/varve-dev/varve/internal/archive"
	"github.com/varve-dev/varve/internal/session"
)

const (
	// maxForeignBytes bounds a file of another source, which is read whole.
	maxForeignBytes = 64 << 20

	// maxHeldBytes ends a batch of lines: it is what an import holds in memory, but for one line.
	maxHeldBytes = 4 << 20
)

// feed is a body on its way into an import. Its lines up to Done are known to be stored already.
type feed struct {
	*session.Import
	s       *Server
	x       *exchange
	first   int64 // the number of the body's first line
	more    bool  // there are lines behind the body's last
	checker *archive.Checker
	lines   []session.ImportLine
	held    int // bytes of the lines
	below   *session.PolicyLayers
}

// feedImport imports the request's body, and answers with the import as it is then.
func (s *Server) feedImport(x *exchange, i session.Import, first int64, more bool) error {
	x.ctx = x.r.Context()
	x.w.Header().Set("Location", "/v1/imports/"+i.ID.String())
	f := &feed{Import: &i, s: s, x: x, first: first, more: more, checker: archive.NewChecker()}
	replayed := i.State.Ended()
	err := f.body()
	switch {
	case err == nil && replayed:
		i, err = s.Store.Import(x.ctx, x.tenant, i.ID)
	case err == nil:
		err = f.leave()
	}
	if err != nil {
		f.pause(err)
		x.drain()
		return err
	}
	return x.importing(i, replayed)
}

// pause notes why an import waits for its lines, for who asks about it later. The request may be gone; who took the
// import over says what becomes of it.
func (f *feed) pause(cause error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(f.x.ctx), requestTimeout)
	defer cancel()
	if !f.State.Ended() {
		_, _ = f.s.Store.PauseImport(ctx, f.x.tenant, *f.Import, failureOf(cause).detail)
	}
}

// leave is what becomes of the import behind the body's last line.
func (f *feed) leave() (err error) {
	switch {
	case f.more:
		*f.Import, err = f.s.Store.PauseImport(f.x.ctx, f.x.tenant, *f.Import, "")
	case f.checker.Cut():
		return session.Invalid("", invalidRequest, "the export is cut off behind line %d: its last line, the manifest, is missing. What came is stored; send the rest from line %d on", f.Done, f.Done+1)
	default:
		*f.Import, err = f.s.Store.EndImport(f.x.ctx, f.x.tenant, *f.Import, "")
	}
	return err
}

// body reads the body to its end.
func (f *feed) body() error {
	if f.first > f.Done+1 {
		return session.Invalid("from_line", invalidRequest, "the import has %d lines: line %d would be missing, send the lines from there on", f.Done, f.Done+1)
	}
	source, closeSource, err := f.open()
	if err != nil {
		return err
	}
	defer closeSource()
	lines := archive.NewScanner(source, archive.MaxLineBytes)
	if f.Source == "" {
		if err := f.recognise(lines); err != nil {
			return err
		}
	}
	if f.Source != "" && f.Source != archive.Source {
		return f.foreign(lines.Rest())
	}
	if len(f.Digest) > 0 && f.first > 1 {
		if err := f.checker.UnmarshalBinary(f.Digest); err != nil {
			return err
		}
	}
	return f.each(lines)
}

// recognise says what an import's lines are when the first of them comes.
func (f *feed) recognise(lines *archive.Scanner) error {
	head, err := lines.Peek(archive.HeadBytes)
	switch {
	case err != nil:
		return bodyError(err)
	case len(bytes.TrimSpace(head)) == 0 && f.more:
		return nil
	case f.Wanted != "":
		f.Source = f.Wanted
	case archive.Begins(head):
		f.Source = archive.Source
	default:
		f.Source = foreignSource
	}
	if f.Source == archive.Source && f.Session != "" {
		return session.Invalid("session", invalidRequest, "an export names its sessions itself: leave session out")
	}
	return nil
}

// foreignSource stands for any source that is not ours, until its file was read.
const foreignSource = "foreign"

// each takes the body's lines one after the other, and stores them batch by batch.
func (f *feed) each(lines *archive.Scanner) error {
	known := append([]byte(nil), f.Digest...)
	n := f.first - 1
	for {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return errors.Join(f.flush(), bodyError(err))
		}
		switch n++; {
		case n <= f.Done:
			if err := f.pass(n, line, known); err != nil {
				return err
			}
			continue
		case f.State.Ended():
			return fmt.Errorf("line %d: %w", n, session.ErrImportEnded)
		case f.broken(line):
			return errors.Join(f.flush(), session.Invalid("", invalidRequest, "the body is cut off inside line %d: what came before it is stored, send the lines from there on", n))
		}
		if err := f.take(n, line); err != nil {
			return err
		}
	}
	if n < f.Done && !f.more {
		return f.another(n)
	}
	return f.flush()
}

// broken reports whether a line is the beginning of one that was cut off, which its sender has as a whole.
func (f *feed) broken(line archive.Line) bool {
	kind, _ := archive.KindOf(line.Text)
	return kind == archive.Unknown && line.Text != nil && line.Bytes == int64(len(line.Text)) && (f.more || f.checker.Cut())
}

// pass passes over a line that is stored already. Who sends all of them again sends the same.
func (f *feed) pass(n int64, line archive.Line, known []byte) error {
	if f.first > 1 {
		return nil
	}
	kind, _ := archive.KindOf(line.Text)
	_ = f.checker.Line(kind, line.Text) // what it says was told when it was stored
	if n < f.Done {
		return nil
	}
	var stored archive.Checker
	if err := stored.UnmarshalBinary(known); err != nil {
		return err
	}
	if !bytes.Equal(stored.Sum(), f.checker.Sum()) {
		return f.another(n)
	}
	return nil
}

func (f *feed) another(n int64) error {
	return fail("idempotency_key_reused", "the %d lines of this body are not those that the import has: send those again, or begin another import", n)
}

// take takes a line up, and stores the batch if it is full.
func (f *feed) take(n int64, line archive.Line) error {
	read, err := f.read(n, line)
	if err != nil {
		return err
	}
	f.lines = append(f.lines, read)
	f.held += len(line.Text)
	f.Bytes += line.Bytes
	if len(f.lines) < session.MaxImportLines && f.held < maxHeldBytes {
		return nil
	}
	return f.flush()
}

// flush stores the lines that were taken up.
func (f *feed) flush() error {
	if len(f.lines) == 0 {
		return nil
	}
	if f.s.draining.Load() {
		return fail(unavailable, "the process is stopping: send the lines from line %d on again", f.Done+1)
	}
	if f.Source == archive.Source {
		digest, err := f.checker.MarshalBinary()
		if err != nil {
			return err
		}
		f.Digest = digest
	}
	ctx, cancel := context.WithTimeout(f.x.ctx, requestTimeout)
	defer cancel()
	if err := f.s.Store.StoreImportLines(ctx, f.x.tenant, f.Import, f.lines); err != nil {
		return err
	}
	f.lines, f.held = f.lines[:0], 0
	return nil
}

// open reads the body as long as something of it comes now and then.
func (f *feed) open() (io.Reader, func(), error) {
	body := &patientBody{f.x.r.Body, http.NewResponseController(f.x.raw)}
	switch coding, err := contentCoding(f.x.r.Header["Content-Encoding"]); {
	case err != nil:
		return nil, nil, err
	case coding == "gzip":
		unpacked, err := gzip.NewReader(body)
		if err != nil {
			return nil, nil, bodyError(err)
		}
		return unpacked, func() {}, nil
	case coding == "zstd":
		unpacked, err := zstd.NewReader(body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxRequestWindow))
		if err != nil {
			return nil, nil, err
		}
		return unpacked, unpacked.Close, nil
	}
	return body, func() {}, nil
}

// patientBody is a body without an end in sight: it may take any time as a whole, but not stepTimeout to go on.
type patientBody struct {
	io.Reader
	connection *http.ResponseController
}

// Read puts the connection's deadlines off. Connections that have none do not need them.
func (b *patientBody) Read(p []byte) (int, error) {
	until := time.Now().Add(stepTimeout)
	_, _ = b.connection.SetReadDeadline(until), b.connection.SetWriteDeadline(until.Add(stepTimeout))
	return b.Reader.Read(p)
}

// bodyError is the error of a body that cannot be read on. What was read of it is stored.
func bodyError(err error) error {
	if errors.Is(err, zstd.ErrWindowSizeExceeded) {
		return fail(invalidJSON, "the body cannot be unpacked: it asks for a window of more than %d MiB", maxRequestWindow>>20)
	}
	return readError(err)
}
