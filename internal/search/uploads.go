package search

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/readback"
	"github.com/varve-dev/varve/internal/session"
)

// stepUploads is how many uploaded results of a session are indexed before others have their turn.
const stepUploads = 8

// uploadPassages is more than the passages that a message or an uploaded result can have. The numbers of those of an
// uploaded result begin at a multiple of it.
const uploadPassages = 2 * messageBytes / passageBytes

// uploads indexes the next uploaded results of a session, if results are found; ErrNotFound if it is gone.
func (x *indexer) uploads(ctx context.Context, tenant uuid.UUID, step indexStep) error {
	if !step.Rules.results() {
		return nil
	}
	key := session.Key{Tenant: tenant, Key: step.Key}
	list, err := x.store.uploadsToIndex(ctx, key, step.Rules, stepUploads)
	if err != nil {
		return err
	}
	for i := range list {
		if err := x.upload(ctx, key, step, &list[i]); err != nil {
			return err
		}
	}
	return nil
}

// upload indexes one uploaded result.
func (x *indexer) upload(ctx context.Context, key session.Key, step indexStep, u *uploadToIndex) error {
	at := session.Address{Tenant: key.Tenant, ID: step.Session}
	passages, whole, err := uploadedPassages(ctx, x.store, at, u)
	if errors.Is(err, session.ErrDamaged) {
		x.log.WarnContext(ctx, "a damaged result is not indexed", "tenant", key.Tenant, "session_key", key.Key,
			"ref", u.Ref, "error", err)
		err = nil
	}
	if err != nil {
		return err
	}
	indexed, err := x.store.withWords(ctx, key.Tenant, step.Rules, passages)
	if err != nil {
		return err
	}
	blocks := make([]block, len(indexed))
	for i, p := range indexed {
		blocks[i] = block{N: passages[i].N, Bytes: p.Bytes, Seqs: []int32{}, Words: wordsOf(key.Tenant, p.Words)}
	}
	return x.store.putUploadIndex(ctx, key, u.N, step.Rules, !whole, blocks)
}

// uploadedPassages cuts an uploaded result into passages, and reports whether they have all of it. Bytes that are no
// text are passed over.
func uploadedPassages(
	ctx context.Context, s store, at session.Address, u *uploadToIndex,
) (list []passage, whole bool, err error) {
	source, err := readback.Open(ctx, s.Store, at, u.Ref)
	if err != nil {
		return nil, false, err
	}
	content, err := source.Text(ctx)
	if err != nil {
		return nil, false, err
	}
	head, err := content.Between(ctx, 0, messageBytes)
	if err != nil {
		return nil, false, err
	}
	whole = int64(len(head)) == content.Size()
	if !whole {
		head, _ = compact.WholeRunes(head, nil)
	}
	if !compact.IsText(u.MediaType, head) {
		return nil, true, nil
	}
	for _, text := range cutAll(string(head)) {
		list = append(list, passage{
			N: u.N*uploadPassages + len(list), Kind: "result", Tool: source.Result.Tool, Ref: u.Ref, Text: text,
		})
	}
	return list, whole, nil
}

// passagesOfUpload reads the passage of an uploaded result that has a number. What is gone since, or damaged, has none.
func (s store) passagesOfUpload(ctx context.Context, key session.Key, n int) ([]passage, error) {
	id, u, err := s.uploadNumbered(ctx, key, n/uploadPassages)
	if err != nil {
		return nil, unlessLost(err)
	}
	list, _, err := uploadedPassages(ctx, s, session.Address{Tenant: key.Tenant, ID: id}, u)
	i := n % uploadPassages
	return list[min(i, len(list)):min(i+1, len(list))], unlessLost(err)
}
