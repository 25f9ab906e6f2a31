package verify

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/session"
)

// Pages of results and bodies.
const (
	resultPage = 500
	bodyPage   = 500
)

// readResults checks the rows of persisted results, and looks for those in the log that have no body of their own.
func (i *inspection) readResults(ctx context.Context) error {
	for after := (persist.Place{Part: -1}); ; {
		page, err := i.audit.Results(ctx, after, resultPage)
		if err != nil || len(page) == 0 {
			return err
		}
		for r := range page {
			i.result(&page[r])
		}
		last := &page[len(page)-1]
		after = persist.Place{Seq: last.Seq, Part: last.Part}
	}
}

func (i *inspection) result(r *persist.Result) {
	i.report.Results++
	i.results[r.Ref] = true
	sum := [32]byte(r.SHA256)
	if want := session.NewResultRef(r.Seq, r.Part, sum); want.String() != r.Ref {
		i.add(Finding{Kind: Result, Ref: r.Ref, Seq: r.Seq},
			"its row says message %d, part %d and the SHA-256 %x: that is %s", r.Seq, r.Part, r.SHA256, want)
		return
	}
	if r.InLog {
		i.wanted[r.Seq] = append(i.wanted[r.Seq], wantedRef{ref: r.Ref, sum: &sum})
	} else {
		i.rows[r.Ref] = *r
	}
}

// readBodies lists the bodies of results. They are read when the snapshot is closed: they may lie outside of the
// database, and a complete one never changes.
func (i *inspection) readBodies(ctx context.Context) error {
	for after := uuid.Nil; ; {
		page, err := i.audit.Bodies(ctx, after, bodyPage)
		if err != nil || len(page) == 0 {
			return err
		}
		i.bodies = append(i.bodies, page...)
		after = page[len(page)-1].ID
	}
}

// orphanAfter is how long a body must have been left alone before it is an orphan: until then a writer may finish it,
// or a result be committed that names it.
const orphanAfter = 48 * time.Hour

// lookAtBodies reads every body, chunk by chunk.
func (v *Verifier) lookAtBodies(ctx context.Context, i *inspection) error {
	for b := range i.bodies {
		body := &i.bodies[b]
		if body.SHA256 == nil {
			continue
		}
		before := len(i.report.Findings)
		if err := v.lookAtBody(ctx, i, body); err != nil {
			return err
		}
		if len(i.report.Findings) > before {
			i.damaged[body.ID] = before
		}
	}
	return nil
}

// bodiless reports the results whose bodies are gone.
func (i *inspection) bodiless() {
	for b := range i.bodies {
		for _, ref := range i.bodies[b].Refs {
			delete(i.rows, ref)
		}
	}
	for _, ref := range slices.Sorted(maps.Keys(i.rows)) {
		i.add(Finding{Kind: Result, Ref: ref, Seq: i.rows[ref].Seq}, "its row names a body that is not there")
	}
}

// orphans reports the bodies that neither a result nor a hole has.
func (i *inspection) orphans() {
	for b := range i.bodies {
		body := &i.bodies[b]
		idle := time.Duration(body.Idle * float64(time.Second))
		if len(body.Refs) == 0 && idle > orphanAfter && !i.held[body.ID] {
			i.report.Unexplained += body.Bytes
			i.add(Finding{Kind: Orphan, Name: "body " + body.ID.String()},
				"nothing has named it for %s", idle.Round(time.Hour))
		}
	}
}

func (v *Verifier) lookAtBody(ctx context.Context, i *inspection, body *persist.AuditedBody) error {
	at := Finding{Kind: Result, Name: "body " + body.ID.String(), body: body.ID}
	if len(body.Refs) > 0 {
		at.Ref = body.Refs[0]
	}
	content, err := v.Store.OpenBody(ctx, i.audit.Key, body.ID)
	switch {
	case errors.Is(err, session.ErrDamaged):
		i.add(at, "%v%s", err, others(body.Refs))
		return nil
	case errors.Is(err, session.ErrNotFound):
		return nil // it was collected meanwhile
	case err != nil:
		return err
	}
	read := reader{inspection: i, body: body, line: 1, sum: sha256.New(), whole: true}
	for n := range content.Index() {
		text, err := content.Chunk(ctx, n)
		if errors.Is(err, session.ErrNotFound) {
			return nil
		}
		if err != nil && !errors.Is(err, session.ErrDamaged) {
			return err
		}
		at.Kind, at.Name = Chunk, fmt.Sprintf("body %s chunk %d", body.ID, n)
		read.chunk(at, content.Index()[n], text, err)
	}
	at.Kind, at.Name = Result, "body "+body.ID.String()
	read.end(at)
	return nil
}

// reader reads a body from its first chunk to its last.
type reader struct {
	*inspection
	body   *persist.AuditedBody
	line   int64 // of the next byte
	inLine bool  // the line began in an earlier chunk
	sum    hash.Hash
	whole  bool // no chunk was damaged
}

func (r *reader) chunk(at Finding, index persist.Chunk, text []byte, damaged error) {
	if damaged != nil {
		r.report.Unexplained += int64(index.Size)
		r.add(at, "%v%s", damaged, others(r.body.Refs))
		r.whole = false
		return
	}
	if r.whole && (index.Line != r.line || index.InLine != r.inLine) {
		r.add(at, "it says that it begins in line %d, and that is line %d%s", index.Line, r.line, others(r.body.Refs))
	}
	r.sum.Write(text)
	r.report.Bytes += int64(len(text))
	r.line += int64(bytes.Count(text, []byte{'\n'}))
	r.inLine = len(text) > 0 && text[len(text)-1] != '\n'
}

func (r *reader) end(at Finding) {
	if r.inLine {
		r.line++
	}
	if r.whole {
		r.wholeBody(at, r.body, r.sum.Sum(nil), r.line-1)
	}
}

// wholeBody compares a body whose chunks are whole with its row, and with those of its results.
func (i *inspection) wholeBody(at Finding, body *persist.AuditedBody, sum []byte, lines int64) {
	switch {
	case !bytes.Equal(sum, body.SHA256):
		i.add(at, "it has the SHA-256 %x instead of %x%s", sum, body.SHA256, others(body.Refs))
		return
	case lines != body.Lines:
		i.add(at, "it has %d lines instead of %d%s", lines, body.Lines, others(body.Refs))
		return
	}
	for _, ref := range body.Refs {
		if r, ok := i.rows[ref]; ok && (!bytes.Equal(r.SHA256, sum) || r.Bytes != body.Bytes) {
			i.add(Finding{Kind: Result, Ref: ref, Seq: r.Seq},
				"its row says %d bytes with the SHA-256 %x, its body has %d with %x",
				r.Bytes, r.SHA256, body.Bytes, sum)
		}
	}
}

// others names the other results that have a body.
func others(refs []string) string {
	if len(refs) < 2 {
		return ""
	}
	return "; it is also that of " + strings.Join(refs[1:], ", ")
}
