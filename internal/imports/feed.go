package imports

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/archive"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

const (
	// maxForeignBytes bounds a file of another source, which is read whole.
	maxForeignBytes = 64 << 20

	// maxHeldBytes ends a batch of lines: it is what an import holds in memory, except for one line.
	maxHeldBytes = 4 << 20

	// batchTimeout bounds the storing of one batch.
	batchTimeout = 30 * time.Second
)

// feed writes a body into an import. The lines up to Done are stored already.
type feed struct {
	stored
	Store     store
	Awake     func(context.Context, session.Address) error // brings a session back that is cold
	Writers   *policy.Writers                              // the models that write summaries
	Tenant    uuid.UUID
	CPU       admit.Processors
	ChangedBy [32]byte    // the digest of the caller's key
	First     int64       // the number of the body's first line
	More      bool        // another body has the lines after this one
	Settings  []byte      // JSON of new sessions, for a file of another source; empty for none
	Branch    string      // of a file of another source: the name of the one that is read, "" for the last
	Strict    bool        // a file of which something would not be imported, and an unknown model, are refused
	Stopping  func() bool // reports whether the process stops: then the rest of the lines is refused

	bodyBytes, bodyLines int64 // how much one body may have

	checker  *archive.Checker
	lines    []entry
	held     int // bytes of the lines
	below    *session.PolicyLayers
	defaults session.Change // what Settings set
}

// Run reads the body to its end and stores its lines, and leaves the import as it is afterwards in f. After an
// error the lines up to Done are stored.
func (f *feed) Run(ctx context.Context, body io.Reader) (err error) {
	ended := f.State.Ended()
	f.checker = archive.NewChecker()
	if err := f.read(ctx, body); err != nil {
		return err
	}
	switch {
	case ended:
		f.stored, err = f.Store.read(ctx, f.Tenant, f.ID)
	case f.More:
		f.stored, err = f.Store.endAttempt(ctx, f.Tenant, f.stored, protocol.ImportQueued, "")
	case f.checker.Cut():
		return session.Invalid("", request.InvalidRequest, "the export is cut off after line %d: its last line, the "+
			"manifest, is missing. The lines before are stored; send the rest from line %d on", f.Done, f.Done+1)
	default:
		f.stored, err = f.Store.endAttempt(ctx, f.Tenant, f.stored, protocol.ImportSucceeded, "")
	}
	return err
}

func (f *feed) read(ctx context.Context, body io.Reader) error {
	if f.First > f.Done+1 {
		return session.Invalid("from_line", request.InvalidRequest,
			"the import has %d lines: line %d would be missing, send the lines from there on", f.Done, f.Done+1)
	}
	defaults, err := f.settings(ctx, f.Settings, defaultFields, f.Writers)
	if err != nil {
		return err
	}
	f.defaults = defaults.Change
	lines := archive.NewScanner(body, archive.MaxLineBytes)
	head, err := lines.Peek(archive.HeadBytes)
	if err != nil || len(head) == 0 && f.More {
		return err
	}
	if f.Source == "" {
		f.recognise(head)
	}
	switch {
	case f.Source != "" && f.Source != archive.Source:
		return f.foreign(ctx, lines.Rest())
	case f.Source != "" && f.Named != "":
		return session.Invalid("session", request.InvalidRequest, "an export names its own sessions: leave session out")
	case f.Source != "" && len(f.Settings) > 0:
		return session.Invalid("settings", request.InvalidRequest,
			"an export has the settings of its sessions: leave settings out")
	}
	if len(f.Digest) > 0 && f.First > 1 {
		if err := f.checker.UnmarshalBinary(f.Digest); err != nil {
			return err
		}
	}
	return f.each(ctx, lines)
}

// foreignSource is the name of any source but our own, until the file has been read.
const foreignSource = "foreign"

// recognise finds the source by the beginning of the first body, unless that is blank.
func (f *feed) recognise(head []byte) {
	switch {
	case len(bytes.TrimSpace(head)) == 0 && f.More:
	case f.Wanted != "":
		f.Source = f.Wanted
	case archive.Begins(head):
		f.Source = archive.Source
	default:
		f.Source = foreignSource
	}
}

// each reads the body's lines and stores them batch by batch.
func (f *feed) each(ctx context.Context, lines *archive.Scanner) error {
	known := bytes.Clone(f.Digest)
	n := f.First - 1
	size := int64(0)
	for {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return errors.Join(f.flush(ctx), err)
		}
		n++
		size += line.Bytes
		if err := f.mayHave(n, size); err != nil {
			return errors.Join(f.flush(ctx), err)
		}
		switch {
		case n <= f.Done:
			err = f.compare(n, line, known)
		case f.State.Ended():
			err = fmt.Errorf("line %d: %w", n, errEnded)
		case f.isCutOff(line):
			err = errors.Join(f.flush(ctx), session.Invalid("", request.InvalidRequest,
				"the body is cut off inside line %d: the lines before it are stored, send the lines from there on", n))
		default:
			err = f.add(ctx, n, line, size)
		}
		if err != nil {
			return err
		}
	}
	if n < f.Done && !f.More {
		return otherLines(n)
	}
	return f.flush(ctx)
}

// mayHave returns an error if line n, with which the body has a size, is more than a body may have.
func (f *feed) mayHave(n, size int64) error {
	if size <= f.bodyBytes && n-f.First < f.bodyLines {
		return nil
	}
	return request.Fail("body_too_large", "the limit of one body is %d lines and %d bytes, unpacked: the lines before "+
		"line %d are stored, send the rest from there on in another request", f.bodyLines, f.bodyBytes, n)
}

// isCutOff reports whether a line is the beginning of a line that its sender has whole.
func (f *feed) isCutOff(line archive.Line) bool {
	kind, _ := archive.KindOf(line.Text)
	unfinished := line.Text != nil && line.Bytes == int64(len(line.Text))
	return kind == archive.Unknown && unfinished && (f.More || f.checker.Cut())
}

// compare compares a line that is stored already, if the caller sends all lines again.
func (f *feed) compare(n int64, line archive.Line, known []byte) error {
	if f.First > 1 {
		return nil
	}
	kind, _ := archive.KindOf(line.Text)
	_ = f.checker.Line(kind, line.Text) // its damage was reported when it was stored
	if n < f.Done {
		return nil
	}
	var stored archive.Checker
	if err := stored.UnmarshalBinary(known); err != nil {
		return err
	}
	if !bytes.Equal(stored.Sum(), f.checker.Sum()) {
		return otherLines(n)
	}
	return nil
}

func otherLines(n int64) error {
	return request.Fail("idempotency_key_reused",
		"the %d lines of this body are not those that the import has: send those again, or begin another import", n)
}

// add reads a line of an archive into the batch. From the size on at which its body is heavy work, each line takes a
// share of the processors.
func (f *feed) add(ctx context.Context, n int64, line archive.Line, size int64) error {
	var read entry
	err := f.CPU.Step(ctx, size, func(*admit.Step) (err error) {
		read, err = f.readLine(ctx, n, line)
		return err
	})
	if err != nil {
		return err
	}
	f.Bytes += line.Bytes
	return f.hold(ctx, read, len(line.Text))
}

// hold adds a line of a number of bytes to the batch, and stores the batch if it is full.
func (f *feed) hold(ctx context.Context, line entry, bytes int) error {
	if n := len(f.lines); n > 0 && continues(&f.lines[n-1], &line) {
		f.lines[n-1].More++
		return nil
	}
	f.lines = append(f.lines, line)
	f.held += bytes
	if len(f.lines) < maxBatch && f.held < maxHeldBytes {
		return nil
	}
	return f.flush(ctx)
}

// continues reports whether a line is one more that was skipped for the same reason as the line before it. Millions of
// empty lines pack into a few bytes: they are counted.
func continues(last, next *entry) bool {
	return last.Outcome == protocol.LineSkipped && next.Outcome == protocol.LineSkipped && last.Detail == next.Detail &&
		next.Line == last.Line+last.More+1
}

// flush stores the batch.
func (f *feed) flush(ctx context.Context) error {
	if len(f.lines) == 0 {
		return nil
	}
	if f.Stopping() {
		return request.Fail(request.Unavailable, "the process is stopping: send the lines from line %d on again",
			f.Done+1)
	}
	if f.Source == archive.Source {
		digest, err := f.checker.MarshalBinary()
		if err != nil {
			return err
		}
		f.Digest = digest
	}
	ctx, cancel := context.WithTimeout(ctx, batchTimeout)
	defer cancel()
	if err := f.awake(ctx); err != nil {
		return err
	}
	if err := f.Store.storeLines(ctx, f.Tenant, &f.stored, f.lines); err != nil {
		return err
	}
	f.lines = f.lines[:0]
	f.held = 0
	return nil
}

// awake brings back the sessions of the batch that are cold.
func (f *feed) awake(ctx context.Context) error {
	var ids []string
	for i := range f.lines {
		if id, _ := f.lines[i].of(); id != "" && (len(ids) == 0 || ids[len(ids)-1] != id) {
			ids = append(ids, id)
		}
	}
	cold, err := f.Store.ColdOf(ctx, f.Tenant, ids)
	for _, id := range cold {
		if err == nil {
			err = f.Awake(ctx, session.Address{Tenant: f.Tenant, ID: id})
		}
	}
	return err
}
