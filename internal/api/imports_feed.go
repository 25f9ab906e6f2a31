package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/varve-dev/varve/internal/api/request"
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
	req     *request.Request
	first   int64 // the number of the body's first line
	more    bool  // there are lines behind the body's last
	checker *archive.Checker
	lines   []session.ImportLine
	held    int // bytes of the lines
	below   *session.PolicyLayers
}

// feedImport imports the request's body, and answers with the import as it is then.
func (s *Server) feedImport(req *request.Request, i session.Import, first int64, more bool) error {
	req.Ctx = req.R.Context()
	req.W.Header().Set("Location", "/v1/imports/"+i.ID.String())
	f := &feed{Import: &i, s: s, req: req, first: first, more: more, checker: archive.NewChecker()}
	replayed := i.State.Ended()
	err := f.body()
	switch {
	case err == nil && replayed:
		i, err = s.Store.Import(req.Ctx, req.Tenant, i.ID)
	case err == nil:
		err = f.leave()
	}
	if err != nil {
		f.pause(err)
		req.Drain()
		return err
	}
	return answerImport(req, i, replayed)
}

// pause notes why an import waits for its lines, for who asks about it later. The request may be gone; who took the
// import over says what becomes of it.
func (f *feed) pause(cause error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(f.req.Ctx), requestTimeout)
	defer cancel()
	if !f.State.Ended() {
		_, _ = f.s.Store.PauseImport(ctx, f.req.Tenant, *f.Import, failureOf(cause).Detail)
	}
}

// leave is what becomes of the import behind the body's last line.
func (f *feed) leave() (err error) {
	switch {
	case f.more:
		*f.Import, err = f.s.Store.PauseImport(f.req.Ctx, f.req.Tenant, *f.Import, "")
	case f.checker.Cut():
		return session.Invalid("", request.InvalidRequest, "the export is cut off behind line %d: its last line, the manifest, is missing. What came is stored; send the rest from line %d on", f.Done, f.Done+1)
	default:
		*f.Import, err = f.s.Store.EndImport(f.req.Ctx, f.req.Tenant, *f.Import, "")
	}
	return err
}

// body reads the body to its end.
func (f *feed) body() error {
	if f.first > f.Done+1 {
		return session.Invalid("from_line", request.InvalidRequest, "the import has %d lines: line %d would be missing, send the lines from there on", f.Done, f.Done+1)
	}
	source, err := f.req.Stream()
	if err != nil {
		return err
	}
	defer source.Close()
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
		return request.StreamError(err)
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
		return session.Invalid("session", request.InvalidRequest, "an export names its sessions itself: leave session out")
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
			return errors.Join(f.flush(), request.StreamError(err))
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
			return errors.Join(f.flush(), session.Invalid("", request.InvalidRequest, "the body is cut off inside line %d: what came before it is stored, send the lines from there on", n))
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
	return request.Fail("idempotency_key_reused", "the %d lines of this body are not those that the import has: send those again, or begin another import", n)
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
		return request.Fail(request.Unavailable, "the process is stopping: send the lines from line %d on again", f.Done+1)
	}
	if f.Source == archive.Source {
		digest, err := f.checker.MarshalBinary()
		if err != nil {
			return err
		}
		f.Digest = digest
	}
	ctx, cancel := context.WithTimeout(f.req.Ctx, requestTimeout)
	defer cancel()
	if err := f.s.Store.StoreImportLines(ctx, f.req.Tenant, f.Import, f.lines); err != nil {
		return err
	}
	f.lines, f.held = f.lines[:0], 0
	return nil
}
