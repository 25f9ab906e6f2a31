package verify

import (
	"context"
	"crypto/sha256"
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
			return "it was taken from the log again", r.Store.LinkResults(ctx, r.key, f.Checkpoint, []string{f.Ref})
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
		if found, err = partOf(a.Format, &m, ref); err != nil {
			return err
		}
		found.Tool, err = toolOf(ctx, a, ref)
		return err
	})
	if err != nil {
		return nil, err
	}
	return found, r.categorise(ctx, found)
}

// partOf returns a part of a message whose content has the digits of a ref.
func partOf(f session.Format, m *postgres.AuditedMessage, ref session.ResultRef) (*persist.NewResult, error) {
	before := 0 // parts of the message in the bodies before
	for _, body := range inFormat(f, m) {
		facts, err := wire.Inspect(f, body)
		if err != nil {
			return nil, err
		}
		for p := range facts.Parts {
			part := facts.Parts[p]
			content := wire.ResultText(f, body, part)
			sum := sha256.Sum256(content.Stored)
			if part.Index+before != ref.Part || session.NewResultRef(ref.Seq, ref.Part, sum) != ref {
				continue
			}
			return &persist.NewResult{Body: content.Stored, Result: persist.Result{
				Ref: ref.String(), Seq: ref.Seq, Part: ref.Part, Tool: postgres.Text(part.Name),
				CallID: postgres.Text(part.CallID), MediaType: content.MediaType, Bytes: int64(len(content.Stored)),
				Lines: int64(content.Lines()), Tokens: int64(part.Tokens), SHA256: sum[:],
			}}, nil
		}
		before += max(len(facts.Parts), 1)
	}
	return nil, errOnlyThere
}

// toolOf returns the tool whose call a part is, or answers.
func toolOf(ctx context.Context, a *postgres.Audit, ref session.ResultRef) (tool string, err error) {
	var calls compactor.OpenCalls
	for seq := int64(0); ; {
		page, err := a.WholeMessages(ctx, seq)
		if err != nil || len(page) == 0 {
			return "", err
		}
		for m := range page {
			before := 0
			for _, body := range inFormat(a.Format, &page[m]) {
				facts, err := wire.Inspect(a.Format, body)
				if err != nil {
					return "", fmt.Errorf("message %d: %w", page[m].Seq, err)
				}
				for p := range facts.Parts {
					part := &facts.Parts[p]
					name, _ := calls.Tool(part)
					if page[m].Seq == ref.Seq && part.Index+before == ref.Part {
						if part.Kind == wire.Call {
							name = part.Name
						}
						return postgres.Text(name), nil
					}
				}
				before += max(len(facts.Parts), 1)
			}
		}
		seq = page[len(page)-1].Seq
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
