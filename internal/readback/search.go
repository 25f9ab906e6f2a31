package readback

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"net/url"
	"strings"
	"time"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// The bounds of a search. A call reads at least wholeSession, however long that takes: most sessions are smaller.
const (
	DefaultHits = 10
	MaxHits     = 50

	wholeSession = 4 << 20
	searchBytes  = 64 << 20
	searchTime   = 250 * time.Millisecond
	searchPage   = 2 << 20
)

// SearchWanted says what to search for. Zero fields mean the defaults.
type SearchWanted struct {
	Query    string // words, and "phrases" between quotes
	Limit    int    // hits
	MaxBytes int
	Cursor   string // of the answer to go on from, for the same query

	sure, bytes int64         // instead of wholeSession and searchBytes
	time        time.Duration // instead of searchTime
}

func (w *SearchWanted) check() error {
	if w.Limit == 0 {
		w.Limit = DefaultHits
	}
	if err := (bound{"limit", int64(w.Limit), 1, MaxHits}).check(); err != nil {
		return err
	}
	if w.sure == 0 {
		w.sure = wholeSession
	}
	if w.bytes == 0 {
		w.bytes = searchBytes
	}
	if w.time == 0 {
		w.time = searchTime
	}
	return checkBytes(&w.MaxBytes)
}

// Search looks for words in the texts of all messages of a session: what was said, calls with their arguments, and
// results, whether or not a view shows them. It begins with the newest message. The passages with all words come first,
// then those with more and rarer words; of equal ones the newest.
//
// Errors: InvalidError, ErrNotFound for the session, ErrBusy if the tenant has too many greps and searches at once.
func Search(
	ctx context.Context, store *postgres.Store, at session.Address, want SearchWanted,
) (*protocol.Found, error) {
	if err := want.check(); err != nil {
		return nil, err
	}
	q, err := parseQuery(want.Query)
	if err != nil {
		return nil, err
	}
	s := &search{SearchWanted: want, query: q, store: store, at: at, began: time.Now()}
	s.counts.with = make([]int, len(q.words))
	s.mark = markOf("search", at.Tenant.String(), at.ID, want.Query)
	if err := s.begin(); err != nil {
		return nil, err
	}
	done, err := takeTurn(ctx, at.Tenant)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := s.read(ctx); err != nil {
		return nil, err
	}
	return s.answer(), nil
}

// search is a call of Search.
type search struct {
	SearchWanted
	query
	counts
	store   *postgres.Store
	at      session.Address
	mark    string
	began   time.Time
	skip    int  // hits that earlier answers had
	pinned  bool // the messages to search are those of an earlier answer
	newest  int64
	oldest  int64 // of the messages that were searched
	ended   bool  // nothing is older
	scanned int64
	found   []passage
	lower   []byte
}

// begin goes to the place of the cursor: the messages that an answer was about, and how many of its hits are known; or
// all from a message back, if none is.
func (s *search) begin() error {
	if s.Cursor == "" {
		return nil
	}
	ref, p, ok := readCursor(s.Cursor, s.mark)
	if !ok {
		return errCursor
	}
	run, _ := session.ParseMessagesRef(ref)
	s.newest, s.skip = run.Last, int(p.at)
	if s.pinned = s.skip > 0; s.pinned {
		s.oldest = run.First
	}
	return nil
}

// read searches messages from the newest to the oldest.
func (s *search) read(ctx context.Context) error {
	page := postgres.Range{Descending: true, Limit: 500, Bytes: searchPage}
	until := s.oldest
	if s.newest > 0 {
		page.After = s.newest + 1
	}
	for {
		_, messages, err := s.store.Messages(ctx, s.at, page)
		if err != nil {
			return err
		}
		for i := range messages {
			m := &messages[i]
			if m.Seq < until {
				return nil
			}
			if !s.mayGoOn(int64(len(m.Body))) {
				return nil
			}
			if err := s.message(m); err != nil {
				return err
			}
		}
		if len(messages) == 0 {
			s.ended = true
			return nil
		}
		page.After = s.oldest
	}
}

// mayGoOn reports whether the budget has room for a message. A search of the same messages again has it.
func (s *search) mayGoOn(size int64) bool {
	return s.pinned || s.scanned+size <= s.sure ||
		s.scanned+size <= s.bytes && time.Since(s.began) < s.time || s.scanned == 0
}

func (s *search) message(m *session.Message) error {
	s.scanned += int64(len(m.Body))
	s.newest = max(s.newest, m.Seq)
	s.oldest = m.Seq
	s.pieces++
	if s.lower = s.folded(s.lower[:0], m.Body); !s.mayOccur(s.lower) {
		return nil
	}
	pieces, err := piecesOf(m)
	if err != nil {
		return err
	}
	seen := uint32(0)
	for i := range pieces {
		s.lower = s.folded(s.lower[:0], pieces[i].text)
		found := s.occurrences(s.lower)
		for _, o := range found {
			seen |= 1 << o.word
		}
		s.found = append(s.found, s.passages(&pieces[i], s.lower, found)...)
	}
	for w := range s.with {
		s.with[w] += int(seen >> w & 1)
	}
	s.found = prune(s.found)
	return nil
}

func (s *search) answer() *protocol.Found {
	a := &protocol.Found{
		Hits: []protocol.Hit{}, Words: s.given, FirstSeq: s.oldest, LastSeq: s.newest, ScannedBytes: s.scanned,
	}
	ranked := rank(s.found, &s.counts)
	shown := min(s.skip, len(ranked))
	size := 0
	for _, p := range ranked[shown:] {
		hit := s.hit(&p)
		size += len(hit.Snippet) + len(hit.ReadBack)
		if len(a.Hits) == s.Limit || size > s.MaxBytes && len(a.Hits) > 0 {
			break
		}
		a.Hits = append(a.Hits, hit)
	}
	shown += len(a.Hits)
	switch {
	case shown < len(ranked):
		a.StoppedBy = "limit"
		if len(a.Hits) < s.Limit {
			a.StoppedBy = byBytes
		}
		a.Truncated = true
		a.NextCursor = new(s.cursor(s.oldest, s.newest, shown))
	case !s.ended && s.oldest > 1:
		a.StoppedBy, a.Truncated = byBudget, true
		a.NextCursor = new(s.cursor(1, s.oldest-1, 0))
		a.Note = fmt.Sprintf("messages before %d are not searched yet: go on with next_cursor", s.oldest)
	}
	if len(a.Hits) == 0 && a.Note == "" {
		a.Note = "no passage has any of the words: try other words, or parts of them"
	}
	return a
}

func (s *search) cursor(first, last int64, shown int) string {
	return cursorAt(session.MessagesRef{First: first, Last: last}.String(), place{at: int64(shown)}, s.mark)
}

func (s *search) hit(p *passage) protocol.Hit {
	h := protocol.Hit{
		Ref: p.ref, Line: p.line, CharOffset: p.char, Seq: p.seq, Role: p.role, Part: p.part, Kind: p.kind.String(),
		Tool: p.tool, Words: make([]string, 0, bits.OnesCount32(p.here)), Score: math.Round(p.score*100) / 100,
		Snippet: p.snippet,
	}
	for w := range s.given {
		if p.here>>w&1 == 1 {
			h.Words = append(h.Words, s.given[w])
		}
	}
	h.ReadBack = readBack(s.at.ID, p)
	return h
}

// readBack returns the path that reads on from a passage, or from a little before it.
func readBack(id string, p *passage) string {
	path := fmt.Sprintf("/v1/sessions/%s/results/%s", url.PathEscape(id), p.ref)
	var query []string
	if p.char > 0 {
		query = append(query, fmt.Sprintf("offset=%d&char_offset=%d", p.line, p.char))
	} else if p.line > leadLines {
		query = append(query, fmt.Sprintf("offset=%d", p.line-leadLines))
	}
	if p.json {
		query = append(query, "text=true")
	}
	if len(query) > 0 {
		path += "?" + strings.Join(query, "&")
	}
	return path
}

// leadLines is how many lines before a passage are read with it.
const leadLines = 5
