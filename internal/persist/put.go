package persist

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// newBody is a complete body that is about to be stored.
type newBody struct {
	Body
	id     uuid.UUID
	store  Kind
	chunks []encoded
}

// newBodyOf cuts a body.
func newBodyOf(content []byte) newBody {
	c := newCutter()
	chunks := c.take(content)
	last, whole := c.end()
	return newBody{Body: whole, id: uuid.Must(uuid.NewV7()), chunks: append(chunks, last...)}
}

// stored returns how many bytes the chunks have as they are stored.
func (b *newBody) stored() (bytes int64) {
	for i := range b.chunks {
		bytes += int64(len(b.chunks[i].stored))
	}
	return bytes
}

// Put persists results of a session in PostgreSQL. A result that is there already stays as it is, so a compaction that
// was interrupted simply puts again. stored is the number of bytes that the compressed bodies have.
func Put(ctx context.Context, tx pgx.Tx, key session.Key, results []NewResult) (stored int64, err error) {
	p, err := Prepare(results)
	if err != nil {
		return 0, err
	}
	return p.Stored, p.Commit(ctx, tx, key)
}

// Prepared are results whose bodies are cut and compressed. Those that shall lie outside the database must be put there
// before the transaction of Commit.
type Prepared struct {
	Stored  int64 // bytes that the compressed bodies have
	results []NewResult
	bodies  []newBody
	put     time.Time // when the first object was put; zero for none
}

// Prepare cuts and compresses the bodies of results.
func Prepare(results []NewResult) (*Prepared, error) {
	bodies, stored, err := bodiesOf(results)
	return &Prepared{Stored: stored, results: results, bodies: bodies}, err
}

// Sums returns the SHA-256 of each body.
func (p *Prepared) Sums() [][]byte {
	sums := make([][]byte, len(p.bodies))
	for i := range p.bodies {
		sums[i] = p.bodies[i].SHA256[:]
	}
	return sums
}

// PutOutside puts the bodies where new ones go, except those that the session has, and verifies them. No transaction
// may be open.
func (p *Prepared) PutOutside(ctx context.Context, stores *Stores, key session.Key, known [][]byte) error {
	has := map[[32]byte]bool{}
	for _, sum := range known {
		has[[32]byte(sum)] = true
	}
	p.put = time.Now()
	for i := range p.bodies {
		b := &p.bodies[i]
		if has[b.SHA256] {
			continue
		}
		b.store = stores.New
		if err := stores.putChunks(ctx, key, b.store, b.chunks); err != nil {
			return err
		}
	}
	return nil
}

// Commit stores the rows of the results and their bodies. If a body that the session had is gone, its bytes go to
// PostgreSQL.
func (p *Prepared) Commit(ctx context.Context, tx pgx.Tx, key session.Key) error {
	if !p.put.IsZero() {
		if err := InTime(p.put); err != nil {
			return err
		}
	}
	ids, err := putBodies(ctx, tx, key, p.bodies)
	if err != nil {
		return err
	}
	return putResults(ctx, tx, key, p.results, ids)
}

// bodiesOf returns the bodies that results have, equal ones once, in the order in which every transaction locks them.
func bodiesOf(results []NewResult) (bodies []newBody, stored int64, err error) {
	seen := map[[32]byte]int64{}
	for i := range results {
		r := &results[i]
		if r.InLog {
			continue
		}
		sum := [32]byte(r.SHA256)
		if size, ok := seen[sum]; ok {
			stored += size
			continue
		}
		body := newBodyOf(r.Body)
		if body.SHA256 != sum {
			return nil, 0, fmt.Errorf("result %s: its body has another SHA-256 than it says", r.Ref)
		}
		seen[sum] = body.stored()
		stored += seen[sum]
		bodies = append(bodies, body)
	}
	slices.SortFunc(bodies, func(a, b newBody) int { return bytes.Compare(a.SHA256[:], b.SHA256[:]) })
	return bodies, stored, nil
}

// putAttempts bounds how often equal bodies are looked for and inserted in turn. Only a collection that deletes one
// between the two makes a second attempt necessary.
const putAttempts = 10

// putBodies stores bodies that the session does not have yet, and returns the ids of all. They cannot be deleted until
// the transaction ends.
func putBodies(ctx context.Context, tx pgx.Tx, key session.Key, bodies []newBody) (map[[32]byte]uuid.UUID, error) {
	ids := map[[32]byte]uuid.UUID{}
	for range putAttempts {
		if err := findBodies(ctx, tx, key, bodies, ids); err != nil {
			return nil, err
		}
		if err := insertBodies(ctx, tx, key, bodies, ids); err != nil {
			return nil, err
		}
		if len(ids) == len(bodies) {
			return ids, nil
		}
	}
	return nil, errors.New("the bodies of results are deleted as fast as they are stored")
}

// findBodies adds the ids of the bodies that the session has to ids, and locks them against deletion.
func findBodies(ctx context.Context, tx pgx.Tx, key session.Key, bodies []newBody, ids map[[32]byte]uuid.UUID) error {
	sums := make([][]byte, len(bodies))
	for i := range bodies {
		sums[i] = bodies[i].SHA256[:]
	}
	rows, err := tx.Query(ctx, `
		SELECT sha256, id
		  FROM result_bodies
		 WHERE tenant_id = $1 AND session_key = $2 AND sha256 = ANY ($3)
		   FOR KEY SHARE`, key.Tenant, key.Key, sums)
	if err != nil {
		return err
	}
	return collectIDs(rows, ids)
}

func collectIDs(rows pgx.Rows, ids map[[32]byte]uuid.UUID) error {
	var sum []byte
	var id uuid.UUID
	_, err := pgx.ForEachRow(rows, []any{&sum, &id}, func() error {
		ids[[32]byte(sum)] = id
		return nil
	})
	return err
}

// insertBodies stores the bodies that are not in ids, and adds theirs, except those that another transaction stored
// first.
func insertBodies(ctx context.Context, tx pgx.Tx, key session.Key, bodies []newBody, ids map[[32]byte]uuid.UUID) error {
	var c bodyColumns
	for i := range bodies {
		if _, ok := ids[bodies[i].SHA256]; !ok {
			c.add(&bodies[i])
		}
	}
	if len(c.ids) == 0 {
		return nil
	}
	rows, err := tx.Query(ctx, `
		INSERT INTO result_bodies (tenant_id, session_key, id, sha256, bytes, lines, store)
		SELECT $1, $2, b.*
		  FROM unnest($3::uuid[], $4::bytea[], $5::bigint[], $6::bigint[], $7::smallint[]) b
		ON CONFLICT (tenant_id, session_key, sha256) DO NOTHING
		RETURNING sha256, id`, key.Tenant, key.Key, c.ids, c.sums, c.bytes, c.lines, c.stores)
	if err != nil {
		return err
	}
	inserted := map[[32]byte]uuid.UUID{}
	if err := collectIDs(rows, inserted); err != nil {
		return err
	}
	var chunks chunkColumns
	for i := range bodies {
		if id, ok := inserted[bodies[i].SHA256]; ok {
			ids[bodies[i].SHA256] = id
			chunks.add(id, bodies[i].chunks)
		}
	}
	return chunks.insert(ctx, tx, key)
}

// bodyColumns are bodies by column, as unnest takes them.
type bodyColumns struct {
	ids          []uuid.UUID
	sums         [][]byte
	bytes, lines []int64
	stores       []Kind
}

func (c *bodyColumns) add(b *newBody) {
	c.ids = append(c.ids, b.id)
	c.sums = append(c.sums, b.SHA256[:])
	c.bytes = append(c.bytes, b.Bytes)
	c.lines = append(c.lines, b.Lines)
	c.stores = append(c.stores, b.store)
}

// putResults stores results whose bodies are there.
func putResults(
	ctx context.Context, tx pgx.Tx, key session.Key, results []NewResult, ids map[[32]byte]uuid.UUID,
) error {
	var c resultColumnsOf
	for i := range results {
		c.add(&results[i], ids)
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO results (tenant_id, session_key, ref, seq, part, tool_name, call_id, category, media_type, bytes,
		                     lines, tokens, sha256, body_id)
		SELECT $1, $2, r.*
		  FROM unnest($3::text[], $4::bigint[], $5::int[], $6::text[], $7::text[], $8::text[], $9::text[],
		              $10::bigint[], $11::bigint[], $12::bigint[], $13::bytea[], $14::uuid[]) r
		ON CONFLICT (tenant_id, session_key, ref) DO NOTHING`,
		key.Tenant, key.Key, c.refs, c.seqs, c.parts, c.tools, c.calls, c.categories, c.mediaTypes,
		c.bytes, c.lines, c.tokens, c.sums, c.bodies)
	return err
}

// resultColumnsOf are results by column, as unnest takes them.
type resultColumnsOf struct {
	refs, tools, calls, categories, mediaTypes []string
	seqs, bytes, lines, tokens                 []int64
	parts                                      []int32
	sums                                       [][]byte
	bodies                                     []*uuid.UUID
}

func (c *resultColumnsOf) add(r *NewResult, ids map[[32]byte]uuid.UUID) {
	var body *uuid.UUID
	if id, ok := ids[[32]byte(r.SHA256)]; ok && !r.InLog {
		body = &id
	}
	c.refs = append(c.refs, r.Ref)
	c.seqs = append(c.seqs, r.Seq)
	c.parts = append(c.parts, int32(r.Part))
	c.tools = append(c.tools, r.Tool)
	c.calls = append(c.calls, r.CallID)
	c.categories = append(c.categories, r.Category)
	c.mediaTypes = append(c.mediaTypes, r.MediaType)
	c.bytes = append(c.bytes, int64(len(r.Body)))
	c.lines = append(c.lines, r.Lines)
	c.tokens = append(c.tokens, r.Tokens)
	c.sums = append(c.sums, r.SHA256)
	c.bodies = append(c.bodies, body)
}
