package imports

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/archive"
	"github.com/varve-dev/varve/internal/importer"
	"github.com/varve-dev/varve/internal/ingest"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// sources returns the names of all sources of a file. The first, "", means recognition by the content.
func sources() []string {
	names := []string{string(importer.Auto), archive.Source}
	for _, source := range importer.Sources() {
		names = append(names, string(source))
	}
	return names
}

// foreign imports a file of another source, which is read whole: its conversations may be scattered over its lines.
func (f *feed) foreign(ctx context.Context, rest io.Reader) error {
	if f.First > 1 || f.More {
		return session.Invalid("from_line", request.InvalidRequest,
			"a file of another source must come whole in one body: leave from_line and more out")
	}
	data, err := io.ReadAll(io.LimitReader(rest, maxForeignBytes+1))
	if err != nil {
		return err
	}
	if len(data) > maxForeignBytes {
		return request.Fail("body_too_large", "the limit of a file of another source is %d MiB: split it",
			maxForeignBytes>>20)
	}
	sum := sha256.Sum256(data)
	if len(f.Digest) > 0 && !bytes.Equal(f.Digest, sum[:]) {
		return otherLines(f.Done)
	}
	if f.State.Ended() {
		return nil
	}
	file, err := f.parse(ctx, data)
	if err != nil {
		return err
	}
	f.Digest = sum[:]
	f.Source = string(file.Source)
	return f.storeFile(ctx, file, int64(len(data)))
}

// parse reads the file. A file that cannot be read ends the import.
func (f *feed) parse(ctx context.Context, data []byte) (*importer.File, error) {
	id := f.Named
	if id == "" {
		id = f.ID.String()
	}
	var file *importer.File
	err := f.CPU.Step(ctx, int64(len(data)), func(*admit.Step) (err error) {
		file, err = importer.ReadBranch(ctx, id, data, importer.Source(f.Wanted), f.Branch)
		return err
	})
	hasMessages := func(c importer.Conversation) bool { return len(c.Messages) > 0 }
	switch {
	case err == nil && f.Strict && len(file.Report.Skipped)+len(file.Report.Rejected) > 0:
		err = notWholeError(file)
	case err == nil && (len(file.Report.Rejected) > 0 || slices.ContainsFunc(file.Conversations, hasMessages)):
		return file, nil
	case err == nil: // often from= names the wrong source
		err = emptyFileError(file)
	case ctx.Err() != nil:
		return nil, err
	case !errors.As(err, new(*importer.UnsupportedError)):
		err = fmt.Errorf("the file cannot be read as %s: %w", f.Wanted, err)
	}
	ended, endErr := f.Store.endAttempt(ctx, f.Tenant, f.stored, protocol.ImportFailed, err.Error())
	if endErr != nil {
		return nil, endErr
	}
	f.stored = ended
	return nil, request.Fail("unsupported_source", "%s", err)
}

// notWholeError returns the error of a file of which something would not be imported, for a strict request.
func notWholeError(file *importer.File) error {
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(file.Report.Skipped)) {
		kinds = append(kinds, fmt.Sprintf("%d × %s", file.Report.Skipped[kind], kind))
	}
	if all := file.Report.Rejected; len(all) > 0 {
		kinds = append(kinds, fmt.Sprintf("%d that cannot be read, such as line %d: %s", len(all), all[0].Line,
			all[0].Reason))
	}
	return fmt.Errorf("read as %s, the file has records that are not imported: %s. Leave strict out to import the rest",
		file.Source, strings.Join(kinds, "; "))
}

// emptyFileError returns the error of a file that could be read and contains nothing to import.
func emptyFileError(file *importer.File) error {
	skipped := 0
	for _, n := range file.Report.Skipped {
		skipped += n
	}
	return fmt.Errorf("read as %s, the file contains no conversation: %d things of %d kinds were skipped",
		file.Source, skipped, len(file.Report.Skipped))
}

// storeFile stores what a file contains, from the first line that is not stored yet.
func (f *feed) storeFile(ctx context.Context, file *importer.File, size int64) error {
	read := &file.Report
	found := protocol.ImportReport{Lines: read.Lines, Skipped: read.Skipped, Notes: []protocol.ImportNote{}}
	for _, n := range read.Notes {
		found.Notes = append(found.Notes, protocol.ImportNote(n))
	}
	report, err := json.Marshal(found)
	if err != nil {
		return err
	}
	all := f.fileLines(file)
	total := int64(len(all))
	f.Total = &total
	f.Report = report
	f.Bytes = size
	for _, line := range all[min(f.Done, total):] {
		bytes := 0
		if line.Message != nil {
			bytes = len(line.Message.Body)
		}
		if err := f.hold(ctx, line, bytes); err != nil {
			return err
		}
	}
	return f.flush(ctx)
}

// fileLines returns the lines of a file as an archive would have them: each conversation begins with its session.
func (f *feed) fileLines(file *importer.File) (all []entry) {
	for i := range file.Conversations {
		c := &file.Conversations[i]
		if len(c.Messages) == 0 {
			continue
		}
		made := &madeSession{ID: c.ID, Change: f.defaults}
		made.Change.Format = &c.Format
		all = append(all, entry{Line: int64(c.Messages[0].Line), Session: made})
		last := ""
		for _, m := range c.Messages {
			read, err := ingest.Message(c.Format, m.Body)
			if err != nil {
				all = append(all, rejected(int64(m.Line), err.Error()))
				continue
			}
			after := last // the client id of the message before this one
			last = m.ClientID
			read.ClientID = m.ClientID
			brought := &message{Session: c.ID, Format: c.Format, After: &after}
			brought.NewMessage = read
			all = append(all, entry{Line: int64(m.Line), Message: brought})
		}
	}
	for _, r := range file.Report.Rejected {
		all = append(all, rejected(int64(r.Line), r.Reason))
	}
	return all
}
