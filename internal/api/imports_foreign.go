package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/importer"
	"github.com/varve-dev/varve/internal/session"
)

// foreign imports a file of another source, which is read whole: its conversations may be scattered over its lines.
func (f *feed) foreign(rest io.Reader) error {
	if f.first > 1 || f.more {
		return session.Invalid("from_line", request.InvalidRequest, "a file of another source comes whole in one body: leave from_line and more out")
	}
	data, err := io.ReadAll(io.LimitReader(rest, maxForeignBytes+1))
	if err != nil {
		return request.StreamError(err)
	}
	if len(data) > maxForeignBytes {
		return request.Fail("body_too_large", "a file of another source has %d MiB at most: varve import sends larger ones in parts", maxForeignBytes>>20)
	}
	sum := sha256.Sum256(data)
	if len(f.Digest) > 0 && !bytes.Equal(f.Digest, sum[:]) {
		return f.another(f.Done)
	}
	if f.State.Ended() {
		return nil
	}
	file, err := f.importFile(data)
	if err != nil {
		return err
	}
	f.Digest, f.Source = sum[:], string(file.Source)
	return f.storeFile(file, int64(len(data)))
}

// importFile reads the file. One that cannot be read ends the import.
func (f *feed) importFile(data []byte) (*importer.File, error) {
	id := f.Session
	if id == "" {
		id = f.ID.String()
	}
	file, err := importer.Read(id, data, importer.Source(f.Wanted))
	if err == nil && len(file.Report.Rejected) == 0 && !slices.ContainsFunc(file.Conversations, func(c importer.Conversation) bool { return len(c.Messages) > 0 }) {
		err = &emptyFileError{file}
	}
	if err == nil {
		return file, nil
	}
	ended, endErr := f.s.Store.EndImport(f.req.Ctx, f.req.Tenant, *f.Import, err.Error())
	if endErr != nil {
		return nil, endErr
	}
	*f.Import = ended
	var unsupported *importer.UnsupportedError
	var empty *emptyFileError
	if errors.As(err, &unsupported) || errors.As(err, &empty) {
		return nil, request.Fail("unsupported_source", "%s", err)
	}
	return nil, request.Fail("unsupported_source", "the file is no %s: %s", f.Wanted, err)
}

// emptyFileError says that a file could be read and holds nothing to import: often from= says what the file is not.
type emptyFileError struct{ file *importer.File }

func (e *emptyFileError) Error() string {
	skipped := 0
	for _, n := range e.file.Report.Skipped {
		skipped += n
	}
	return fmt.Sprintf("read as %s, there is no conversation in it: %d things of %d kinds were skipped", e.file.Source, skipped, len(e.file.Report.Skipped))
}

// storeFile stores what a file holds, from behind what is stored of it already.
func (f *feed) storeFile(file *importer.File, size int64) error {
	all := fileLines(file)
	total := int64(len(all))
	report, err := json.Marshal(map[string]any{"lines": file.Report.Lines, "skipped": file.Report.Skipped, "notes": append([]importer.Note{}, file.Report.Notes...)})
	if err != nil {
		return err
	}
	f.Total, f.Report, f.Bytes = &total, report, size
	for all = all[min(f.Done, total):]; len(all) > 0; {
		n := 0
		for n < len(all) && n < session.MaxImportLines && f.held < maxHeldBytes {
			f.held += held(all[n])
			n++
		}
		f.lines, all = append(f.lines, all[:n]...), all[n:]
		if err := f.flush(); err != nil {
			return err
		}
	}
	return nil
}

func held(l session.ImportLine) int {
	if l.Message == nil {
		return 0
	}
	return len(l.Message.Body)
}

// fileLines are the lines of a file as an archive would have them: each conversation begins with its session.
func fileLines(file *importer.File) (all []session.ImportLine) {
	for _, c := range file.Conversations {
		if len(c.Messages) == 0 {
			continue
		}
		all = append(all, session.ImportLine{Line: int64(c.Messages[0].Line), Session: &session.ImportedSession{ID: c.ID, Change: session.Change{Format: &c.Format}}})
		for _, m := range c.Messages {
			line := session.ImportLine{Line: int64(m.Line)}
			read, err := newMessage(c.Format, m.Body)
			if err != nil {
				all = append(all, rejected(line, err.Error()))
				continue
			}
			read.ClientID = m.ClientID
			line.Message = &session.ImportedMessage{Session: c.ID, Format: c.Format, NewMessage: read}
			all = append(all, line)
		}
	}
	for _, r := range file.Report.Rejected {
		all = append(all, rejected(session.ImportLine{Line: int64(r.Line)}, r.Reason))
	}
	return all
}
