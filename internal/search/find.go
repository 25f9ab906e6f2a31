package search

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/readback"
	"github.com/varve-dev/varve/internal/session"
)

// The bounds of what is indexed. A passage of 32 KiB cannot have as many words as a tsvector may have, nor as many
// positions.
const (
	passageBytes = 32 << 10
	messageBytes = 1 << 20 // of a message, or of an uploaded result
)

// maxQuery is how long a query may be.
const maxQuery = 512

// find finds passages of all messages and uploaded results of a tenant, the best first. The ids of the passages are for
// the next page.
//
// Errors: InvalidError.
func find(ctx context.Context, s store, tenant uuid.UUID, want searchPage) (
	hits []Hit, covers Coverage, err error,
) {
	if err := check(want.Query); err != nil {
		return nil, covers, err
	}
	found, err := s.search(ctx, tenant, want)
	if err != nil {
		return nil, covers, err
	}
	covers.State, covers.Ranked = found.State, found.Matches
	covers.RankedAll = found.Matches < rankedPassages
	texts := make([]string, len(found.Passages))
	for i := range found.Passages {
		hit, text, err := read(ctx, s, tenant, &found.Passages[i])
		if err != nil {
			return nil, covers, err
		}
		hits, texts[i] = append(hits, hit), text
	}
	shown, err := s.headlines(ctx, tenant, found.State.Language, want.Query, texts)
	for i := range shown {
		hits[i].Snippet = shown[i]
	}
	return hits, covers, err
}

func check(query string) error {
	if query == "" || len(query) > maxQuery || !utf8.ValidString(query) || strings.ContainsRune(query, 0) {
		return session.Invalid("q", "invalid_request", "must have 1 to %d bytes of UTF-8 without zero bytes, not %d",
			maxQuery, len(query))
	}
	return nil
}

// read reads what was found, a message from the log. What is gone since, or damaged, has no text.
func read(ctx context.Context, s store, tenant uuid.UUID, p *passage) (
	hit Hit, text string, err error,
) {
	if p.Upload != "" {
		return readUpload(ctx, s, tenant, p)
	}
	ref := session.MessagesRef{First: p.Seq, Last: p.Seq}.String()
	messages, err := s.MessagesAt(ctx, session.Key{Tenant: tenant, Key: p.Key}, []int64{p.Seq})
	if err != nil && !errors.Is(err, session.ErrDamaged) && !errors.Is(err, session.ErrNotFound) {
		return hit, "", err
	}
	hit = hitAt(p, ref)
	if err == nil && len(messages) == 1 {
		texts, _ := readback.Texts(&messages[0])
		if p.Block < len(texts) {
			t := texts[p.Block]
			hit = hitAt(p, t.Ref)
			hit.Kind, hit.Tool = t.Kind, t.Tool
			text = t.Text[min(p.At, len(t.Text)):min(p.At+p.Bytes, len(t.Text))]
		}
		hit.Role = messages[0].Role
	}
	return hit, text, nil
}

// hitAt returns the hit of a passage that a ref reads.
func hitAt(p *passage, ref string) Hit {
	return Hit{
		Session: p.Session, Seq: p.Seq, Ref: ref, Rank: p.Rank, CreatedAt: p.AppendedAt, ID: p.ID,
		ReadBack: fmt.Sprintf("/v1/sessions/%s/results/%s", url.PathEscape(p.Session), ref),
	}
}

// cut returns how much of a text is the next passage: all of it, or as much as a passage may have, up to the end of a
// word if there is one near.
func cut(text string) int {
	if len(text) <= passageBytes {
		return len(text)
	}
	const near = 1 << 10
	if space := strings.LastIndexAny(text[passageBytes-near:passageBytes], " \t\r\n"); space >= 0 {
		return passageBytes - near + space + 1
	}
	end := passageBytes
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return end
}
