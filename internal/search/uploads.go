package search

import (
	"bytes"
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/readback"
	"github.com/varve-dev/varve/internal/session"
)

// stepUploads is how many uploaded results of a session are indexed before others have their turn.
const stepUploads = 8

// uploadPassages is more than the passages that an uploaded result can have, whose numbers begin at a multiple of it.
const uploadPassages = 2 * messageBytes / passageBytes

// uploads indexes the next uploaded results of a session; ErrNotFound if it is gone.
func (x *indexer) uploads(ctx context.Context, tenant uuid.UUID, step indexStep) error {
	list, err := x.store.uploadsToIndex(ctx, session.Key{Tenant: tenant, Key: step.Key}, step.Language, stepUploads)
	if err != nil {
		return err
	}
	for i := range list {
		if err := x.upload(ctx, tenant, step, &list[i]); err != nil {
			return err
		}
	}
	return nil
}

// upload indexes one uploaded result.
func (x *indexer) upload(
	ctx context.Context, tenant uuid.UUID, step indexStep, u *uploadToIndex,
) error {
	text, whole, err := x.uploadedText(ctx, session.Address{Tenant: tenant, ID: step.Session}, u)
	if errors.Is(err, session.ErrDamaged) {
		x.log.WarnContext(ctx, "a damaged result is not indexed", "tenant", tenant, "session_key", step.Key,
			"ref", u.Ref, "error", err)
		err = nil
	}
	if err != nil {
		return err
	}
	key := session.Key{Tenant: tenant, Key: step.Key}
	return x.store.putUploadIndex(ctx, key, u.N, step.Language, !whole, passagesOfUpload(u.N, text))
}

// uploadedText returns what is indexed of an uploaded result, and reports whether it is all of it. Bytes that are no
// text are passed over.
func (x *indexer) uploadedText(
	ctx context.Context, at session.Address, u *uploadToIndex,
) (text string, whole bool, err error) {
	source, err := readback.Open(ctx, x.store.Store, at, u.Ref)
	if err != nil {
		return "", false, err
	}
	content, err := source.Text(ctx)
	if err != nil {
		return "", false, err
	}
	head, err := content.Between(ctx, 0, messageBytes)
	if err != nil {
		return "", false, err
	}
	whole = int64(len(head)) == content.Size()
	if !whole {
		head, _ = compact.WholeRunes(head, nil)
	}
	if !compact.IsText(u.MediaType, head) {
		return "", true, nil
	}
	return string(head), whole, nil
}

func passagesOfUpload(n int, text string) (list []indexedPassage) {
	for at := 0; at < len(text); {
		size := cut(text[at:])
		list = append(list, indexedPassage{
			N: n*uploadPassages + len(list), Block: n, At: at, Bytes: size, Text: text[at : at+size],
		})
		at += size
	}
	return list
}

// readUpload reads a passage of an uploaded result. What is gone since, or damaged, has no text.
func readUpload(ctx context.Context, s store, tenant uuid.UUID, p *passage) (
	hit Hit, text string, err error,
) {
	hit = hitAt(p, p.Upload)
	source, err := readback.Open(ctx, s.Store, session.Address{Tenant: tenant, ID: p.Session}, p.Upload)
	if err == nil {
		hit.Kind, hit.Tool = "result", source.Result.Tool
		text, err = passageIn(ctx, source, p)
	}
	if errors.Is(err, session.ErrDamaged) || errors.Is(err, session.ErrNotFound) {
		err = nil
	}
	return hit, text, err
}

func passageIn(ctx context.Context, source *readback.Source, p *passage) (string, error) {
	content, err := source.Text(ctx)
	if err != nil {
		return "", err
	}
	found, err := content.Between(ctx, int64(p.At), int64(p.At+p.Bytes))
	return string(bytes.ToValidUTF8(found, []byte("\uFFFD"))), err
}
