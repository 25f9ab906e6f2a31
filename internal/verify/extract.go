package verify

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// errOnlyThere says why a result cannot be made again.
var errOnlyThere = errors.New("its message does not have it any more, and the bytes are nowhere else: " +
	"restore the session from a backup")

// results takes damaged and missing results from the log, as far as it has them.
func (r *repairing) results(ctx context.Context) error {
	return r.each(func(f *Finding) (string, error) {
		ref, err := session.ParseResultRef(f.Ref)
		if err != nil || ref.IsUpload() {
			return "", errOnlyThere
		}
		found, err := r.extract(ctx, ref)
		if err != nil {
			return "", err
		}
		switch {
		case f.Kind == Ref:
			if _, err := r.Store.PutResults(ctx, r.key, []persist.NewResult{*found}); err != nil {
				return "", err
			}
			return "it was taken from the log again", nil
		case f.body != uuid.Nil:
			return "its body was taken from the log again", r.Store.RewriteBody(ctx, r.key, f.body, found.Body)
		}
		return "its row was written again", r.Store.RewriteResult(ctx, r.key, &found.Result)
	}, Chunk, Result, Ref)
}

// extract takes the result that a ref names from its message, as a compaction would persist it.
func (r *repairing) extract(ctx context.Context, ref session.ResultRef) (found *persist.NewResult, err error) {
	err = r.Store.Audit(ctx, r.key, func(a *postgres.Audit) error {
		m, err := messageOf(ctx, a, ref.Seq)
		if err != nil {
			return err
		}
		part := partOf(a.Format, &m, ref)
		if part == nil {
			return errOnlyThere
		}
		found = &persist.NewResult{Body: part.content.Stored, Result: part.result(ref)}
		found.Tool, err = toolOf(ctx, a, ref.Seq, part)
		return err
	})
	if err != nil {
		return nil, err
	}
	return found, r.categorise(ctx, found)
}

// partOf returns the part of a message that a ref names, nil if it has none.
func partOf(f session.Format, m *postgres.AuditedMessage, ref session.ResultRef) *namedPart {
	for p := range partsOf(f, m, nil) {
		if p.ref == ref {
			return &p
		}
	}
	return nil
}

// result returns the row that a part gets as a result.
func (p *namedPart) result(ref session.ResultRef) persist.Result {
	return persist.Result{
		Ref: ref.String(), Seq: ref.Seq, Part: ref.Part, Tool: postgres.Text(p.Name), CallID: postgres.Text(p.CallID),
		MediaType: p.content.MediaType, Bytes: int64(len(p.content.Stored)), Lines: int64(p.content.Lines()),
		Tokens: int64(p.Tokens), SHA256: p.sum[:],
	}
}

// toolOf returns the tool whose call a part of message seq is, or answers.
func toolOf(ctx context.Context, a *postgres.Audit, seq int64, of *namedPart) (tool string, err error) {
	var calls compactor.OpenCalls
	for after := int64(0); ; {
		page, err := a.WholeMessages(ctx, after)
		if err != nil || len(page) == 0 {
			return "", err
		}
		for m := range page {
			facts, err := wire.Inspect(page[m].Format, page[m].Body)
			if err != nil {
				return "", fmt.Errorf("message %d: %w", page[m].Seq, err)
			}
			for p := range facts.Parts {
				part := &facts.Parts[p]
				name, _ := calls.Tool(part)
				if part.Kind == wire.Call {
					name = part.Name
				}
				if page[m].Seq == seq && part.Kind == of.Kind && part.CallID == of.CallID {
					return postgres.Text(name), nil
				}
			}
		}
		after = page[len(page)-1].Seq
	}
}

// categorise sets what a result's row says of its tool.
func (r *repairing) categorise(ctx context.Context, found *persist.NewResult) error {
	snap, err := r.Store.Snapshot(ctx, r.key)
	if err != nil {
		return err
	}
	own, err := policy.Parse(snap.Policy.Document)
	if err == nil {
		found.Category = string(own.Trim.Categories[found.Tool])
	}
	return err
}
