package search

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/session"
)

// The bounds of a search.
const (
	maxQuery      = 512  // bytes of a query
	maxCandidates = 2000 // blocks that are read for one search, on all its pages
	tierBlocks    = 32
	searchTime    = 250 * time.Millisecond // from which on no further tier is read for a page
)

// find finds passages of all messages and uploaded results of a tenant, the best first, behind a place. It returns a
// place to go on from if it has looked at as many blocks as it may without finding enough.
//
// Errors: InvalidError.
func find(ctx context.Context, s store, tenant uuid.UUID, query string, after place, limit int) (
	hits []Hit, covers Coverage, beyond *place, err error,
) {
	if err := check(query); err != nil {
		return nil, covers, nil, err
	}
	began := time.Now()
	look, err := s.look(ctx, tenant, query, after.Newest)
	if err != nil {
		return nil, covers, nil, err
	}
	covers = Coverage{State: look.State, Ranked: len(look.Blocks), RankedAll: len(look.Blocks) < maxCandidates}
	if after.Tier > 0 {
		look.Fresh = nil
	}
	for tier := after.Tier; len(hits) < limit && (tier == 0 || tier*tierBlocks < len(look.Blocks)); tier++ {
		if tier > after.Tier {
			after = beginning(tier, look.Newest)
			if time.Since(began) > searchTime {
				beyond = &after
				break
			}
		}
		found, err := s.tier(ctx, tenant, look, after)
		if err != nil {
			return nil, covers, nil, err
		}
		hits = append(hits, found...)
	}
	hits = hits[:min(len(hits), limit)]
	return hits, covers, beyond, s.addSnippets(ctx, tenant, look, hits)
}

func check(query string) error {
	if query == "" || len(query) > maxQuery || !utf8.ValidString(query) || strings.ContainsRune(query, 0) {
		return session.Invalid("q", "invalid_request", "must have 1 to %d bytes of UTF-8 without zero bytes, not %d",
			maxQuery, len(query))
	}
	return nil
}

// tier reads the passages of a tier that may have the words, and returns the hits behind a place.
func (s store) tier(ctx context.Context, tenant uuid.UUID, l *look, after place) (hits []Hit, err error) {
	var passages []passage
	for _, b := range append(l.Fresh, l.tierOf(after.Tier)...) {
		read, err := s.passagesIn(ctx, tenant, l, &b)
		if err != nil {
			return nil, err
		}
		passages = append(passages, read...)
	}
	l.Fresh = nil
	matches, err := s.matches(ctx, tenant, l, passages)
	if err != nil {
		return nil, err
	}
	for i := range matches {
		m := &matches[i]
		p := &passages[m.N-1]
		hit := p.hit(m)
		hit.at = place{after.Tier, m.Rank, l.Newest, m.CreatedAt.UnixMicro(), tieOf(p)}
		if hit.at.compare(after) > 0 {
			hits = append(hits, hit)
		}
	}
	slices.SortFunc(hits, func(a, b Hit) int { return a.at.compare(b.at) })
	return hits, nil
}

// hit returns the hit of a passage that has the words.
func (p *passage) hit(m *match) Hit {
	ref := p.Ref
	if m.Upload != "" {
		ref = m.Upload
	}
	return Hit{
		Session: m.Session, Seq: p.Seq, Ref: ref, Role: p.Role, Kind: p.Kind, Tool: p.Tool, Snippet: p.Text,
		Rank: m.Rank, CreatedAt: m.CreatedAt,
		ReadBack: fmt.Sprintf("/v1/sessions/%s/results/%s", url.PathEscape(m.Session), ref),
	}
}
