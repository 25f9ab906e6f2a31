package search

import (
	"context"
	_ "embed"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// store has the SQL of the search.
type store struct{ *postgres.Store }

// candidate is a block that may have the words of a search.
type candidate struct {
	ID   int64
	Key  uuid.UUID // of the session
	N    int       // see block
	Seqs []int64   // none of an uploaded result
}

// look is what a search looks at.
type look struct {
	State
	Query  string
	Words  [][]string  // lists, of which a hit has all words of one
	Newest int64       // the newest block when the first page was read
	Blocks []candidate // the best first
	Fresh  []candidate // messages that are not indexed yet, or were not when the first page was read
}

// tierOf returns the blocks of a tier.
func (l *look) tierOf(tier int) []candidate {
	from := min(tier*tierBlocks, len(l.Blocks))
	return l.Blocks[from:min(from+tierBlocks, len(l.Blocks))]
}

// look looks for the words of a query; newest is the newest block when the first page was read.
//
// Errors: InvalidError for a query without a word that can be looked for.
func (s store) look(ctx context.Context, tenant uuid.UUID, query string, newest int64) (*look, error) {
	return postgres.ReadTx(ctx, s.Store, tenant, func(tx pgx.Tx) (*look, error) {
		l := &look{Query: query, Newest: newest}
		var err error
		if l.State, err = stateIn(ctx, tx, tenant); err != nil {
			return nil, err
		}
		if l.Words, err = wordsIn(ctx, tx, l.Language, query); err != nil {
			return nil, err
		}
		if l.Fresh, err = freshIn(ctx, tx, tenant, l.State.rules()); err != nil {
			return nil, err
		}
		return l, l.addCandidates(ctx, tx, tenant)
	})
}

// wordsIn returns lists of words, of which what a query finds has all words of one.
func wordsIn(ctx context.Context, tx pgx.Tx, language, query string) ([][]string, error) {
	tree, err := postgres.RowIn(ctx, tx, pgx.RowTo[string], `
		SELECT querytree(websearch_to_tsquery($1::text::regconfig, $2))`, language, query)
	if err == nil && (tree == "" || tree == "T") { // it would find nothing, or everything
		err = session.Invalid("q", "invalid_request", "must have a word to look for: %q has none that the language %q "+
			"keeps", query, language)
	}
	return alternatives(tree), err
}

// addCandidates adds the blocks that have the words. The first page takes note of the newest of all. A block that is
// newer has what was not indexed then, or takes in a smaller one: it is read as what is not indexed.
func (l *look) addCandidates(ctx context.Context, tx pgx.Tx, tenant uuid.UUID) error {
	lists := make([]string, len(l.Words))
	for i, list := range l.Words {
		lists[i] = strings.ReplaceAll(fmt.Sprintf("{%d}", wordsOf(tenant, list)), " ", ",")
		lists[i] = strings.NewReplacer("{[", "{", "]}", "}").Replace(lists[i])
	}
	blocks, err := postgres.RowsIn(ctx, tx, pgx.RowToStructByPos[candidate], `
		SELECT id, session_key, n, seqs::bigint[]
		  FROM search_candidates($1, $2)`, lists, maxCandidates)
	if l.Newest == math.MaxInt64 {
		l.Newest = 0
		for i := range blocks {
			l.Newest = max(l.Newest, blocks[i].ID)
		}
	}
	for _, b := range blocks {
		if b.ID > l.Newest {
			l.Fresh = append(l.Fresh, b)
		} else {
			l.Blocks = append(l.Blocks, b)
		}
	}
	return err
}

// The bounds of the messages of each of the sessions in which a search reads what is not indexed yet.
const (
	freshSessions = 32 // those of which it is known for the shortest time that they have such messages
	freshMessages = 200
	freshBytes    = 1 << 20
	freshResult   = 16 << 10 // of a message that answers calls, if results are not found
)

// freshIn returns the newest messages that are not indexed yet, as one candidate for each session.
func freshIn(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, by rules) ([]candidate, error) {
	return postgres.RowsIn(ctx, tx, pgx.RowToStructByPos[candidate], `
		SELECT 0, f.session_key, 0, m.seqs
		  FROM (SELECT i.session_key, i.indexed_seq
		          FROM search_sessions i
		          JOIN sessions s ON s.tenant_id = i.tenant_id AND s.key = i.session_key
		         WHERE i.tenant_id = $1
		           AND i.due_since IS NOT NULL
		           AND i.indexed_seq < s.last_seq
		         ORDER BY i.due_since DESC, i.session_key
		         LIMIT $2) f
		 CROSS JOIN LATERAL (
		       SELECT array_agg(m.seq ORDER BY m.seq) AS seqs
		         FROM (SELECT seq, sum(octet_length(body)) OVER (ORDER BY seq DESC) - octet_length(body) AS newer
		                 FROM messages
		                WHERE tenant_id = $1
		                  AND session_key = f.session_key
		                  AND seq > f.indexed_seq
		                  AND removed_at IS NULL
		                  AND ($5 OR coalesce(cardinality(answers), 0) = 0 OR octet_length(body) <= $6)
		                ORDER BY seq DESC
		                LIMIT $3) m
		        WHERE coalesce(m.newer, 0) < $4) m
		 WHERE m.seqs IS NOT NULL`, tenant, freshSessions, freshMessages, freshBytes, by.results(), freshResult)
}

// match is a passage that a search finds.
type match struct {
	N         int // of the passages that were looked at, from 1
	Rank      float32
	Session   string
	CreatedAt time.Time
	Upload    string // ref of the uploaded result; "" of a message
}

//go:embed search.sql
var matchesSQL string

// matches returns which passages a search finds. A message that was removed is not found. One that a fork shares is
// found in the session that the fork was made of, as long as that has it.
func (s store) matches(ctx context.Context, tenant uuid.UUID, l *look, passages []passage) ([]match, error) {
	if len(passages) == 0 {
		return nil, nil
	}
	var keys []uuid.UUID
	var seqs, uploads []int64
	var texts []string
	for i := range passages {
		p := &passages[i]
		keys = append(keys, p.Key)
		seqs = append(seqs, p.Seq)
		uploads = append(uploads, int64(p.N/uploadPassages))
		texts = append(texts, p.Text)
	}
	return postgres.QueryRows(ctx, s.Store, tenant, pgx.RowToStructByPos[match], matchesSQL,
		tenant, l.Language, l.Query, keys, seqs, uploads, texts)
}

// addSnippets cuts the texts of hits down to what is shown of them.
func (s store) addSnippets(ctx context.Context, tenant uuid.UUID, l *look, hits []Hit) error {
	texts := make([]string, len(hits))
	for i := range hits {
		texts[i] = hits[i].Snippet
	}
	shown, err := postgres.QueryRows(ctx, s.Store, tenant, pgx.RowTo[string], `
		SELECT ts_headline($1::text::regconfig, t.text, websearch_to_tsquery($1::text::regconfig, $2),
		                   'StartSel="", StopSel="", MinWords=15, MaxWords=40, MaxFragments=2, FragmentDelimiter=" … "')
		  FROM unnest($3::text[]) WITH ORDINALITY AS t (text, n)
		 ORDER BY t.n`, l.Language, l.Query, texts)
	if err == nil && len(shown) != len(texts) {
		err = fmt.Errorf("%d headlines of %d texts", len(shown), len(texts))
	}
	for i := range shown {
		hits[i].Snippet = shown[i]
	}
	return err
}
