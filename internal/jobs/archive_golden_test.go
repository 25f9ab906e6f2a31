package jobs_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/zstd"

	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tier/frozen"
)

var update = flag.Bool("update", false, "write the golden archive of the newest version; only if it has none")

// The golden archive of a version: its part, what session_archives says of it, and the numbers of its session.
func goldenPart(version int) string { return fmt.Sprintf("testdata/archive-%d.part", version) }
func goldenRow(version int) string  { return fmt.Sprintf("testdata/archive-%d.json", version) }

type golden struct {
	Rows    int64           `json:"rows"`
	Digest  string          `json:"digest"`
	Session json.RawMessage `json:"session"`
}

// TestAnArchiveOfEachVersionIsRestoredForEver restores those that each version made, by the schema of now.
func TestAnArchiveOfEachVersionIsRestoredForEver(t *testing.T) {
	t.Parallel()
	for version := 1; version <= frozen.Version; version++ {
		t.Run(strconv.Itoa(version), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.work(jobs.Config{})
			bodies := turns(40, 1500)
			if *update && version == frozen.Version {
				w.writeGolden(bodies)
			}
			w.restoreGolden(version, bodies)
		})
	}
}

func (w *world) restoreGolden(version int, bodies [][]byte) {
	w.Helper()
	part, err := os.ReadFile(goldenPart(version))
	if err != nil {
		w.Fatal(err)
	}
	row, err := os.ReadFile(goldenRow(version))
	if err != nil {
		w.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(row, &g); err != nil {
		w.Fatal(err)
	}
	at := w.session("old")
	w.archived(at)
	w.asOwner(`DELETE FROM archive_parts`)
	w.asOwner(`INSERT INTO archive_parts (tenant_id, session_key, n, body)
		SELECT tenant_id, session_key, 0, $1 FROM session_archives`, part)
	w.asOwner(`UPDATE session_archives SET rows = $1, digest = decode($2, 'hex'), parts = 1`, g.Rows, g.Digest)
	w.asOwner(`UPDATE sessions s SET last_seq = r.last_seq, format = r.format, tail_bytes = r.tail_bytes, context_tokens = r.context_tokens,
		total_tokens = r.total_tokens, checkpoint_n = r.checkpoint_n, through_seq = r.through_seq, checkpoint_size = r.checkpoint_size,
		offloaded_n = r.offloaded_n, last_append_at = r.last_append_at, policy_version = r.policy_version, engine_version = r.engine_version,
		floor_tokens = r.floor_tokens, armed_threshold = r.armed_threshold
		FROM jsonb_populate_record(NULL::sessions, $1) r WHERE s.id = 'old'`, g.Session)
	w.restored(at)
	w.whole(at, bodies)
	if found, err := w.store.Session(w.Context(), at); err != nil || found.Checkpoint == 0 {
		w.Errorf("%+v, %v", found, err)
	}
}

// writeGolden writes the archive of a session with these messages.
func (w *world) writeGolden(bodies [][]byte) {
	w.Helper()
	at := w.session("golden")
	w.appendLog(at, session.OpenAIChat, bodies)
	w.offloaded()
	w.archived(at)
	conn, err := pgx.Connect(w.Context(), w.dsn)
	if err != nil {
		w.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(w.Context()))
	var g golden
	var part []byte
	err = conn.QueryRow(w.Context(), `
		SELECT a.rows, encode(a.digest, 'hex'), to_jsonb(s) - 'tenant_id' - 'key' - 'policy_id', p.body
		  FROM session_archives a
		  JOIN sessions s ON s.key = a.session_key
		  JOIN archive_parts p ON p.session_key = a.session_key
		 WHERE s.id = 'golden'`).Scan(&g.Rows, &g.Digest, &g.Session, &part)
	if err != nil {
		w.Fatal(err)
	}
	row, err := json.MarshalIndent(g, "", "  ")
	if err != nil {
		w.Fatal(err)
	}
	for name, body := range map[string][]byte{goldenPart(frozen.Version): part, goldenRow(frozen.Version): row} {
		if err := os.WriteFile(name, body, 0o644); err != nil {
			w.Fatal(err)
		}
	}
	if _, err := w.store.Delete(w.Context(), at, nil); err != nil {
		w.Fatal(err)
	}
	w.drained("erasures WHERE state <> 'done'")
}

// TestAnArchiveOfAnotherEncoderReadsTheSame restores an archive as a program would have written it whose encoders made
// other bytes of the same: all that it says of them is of others. What comes back has digests that fit.
func TestAnArchiveOfAnotherEncoderReadsTheSame(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work(jobs.Config{})
	at, bodies := w.archivable("s")
	w.offloaded()
	before, rows := w.served(at), w.allRows(at)
	conn, err := pgx.Connect(t.Context(), w.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	found, _ := conn.Query(t.Context(), `
		SELECT 'packs', sha256(body) FROM message_packs
		 UNION ALL SELECT 'chunks', sha256(body) FROM result_chunks WHERE codec = 1
		 UNION ALL SELECT 'states', sha256(state) FROM checkpoints WHERE state IS NOT NULL
		 UNION ALL SELECT 'views', sha256(body) FROM checkpoints WHERE body IS NOT NULL
		 UNION ALL SELECT 'seals', body_digest FROM checkpoints WHERE body IS NOT NULL`)
	type digest struct {
		What string
		Sum  []byte
	}
	digests, err := pgx.CollectRows(found, pgx.RowToStructByPos[digest])
	if err != nil {
		t.Fatal(err)
	}
	w.archived(at)
	plain, err := onlyPart(t.Context(), conn)
	changed := map[string]int{}
	for _, d := range digests {
		if n := bytes.Count(plain, d.Sum[:8]); n > 0 {
			changed[d.What]++
			other := sha256.Sum256(d.Sum)
			plain = bytes.ReplaceAll(plain, d.Sum[:8], other[:8])
		}
	}
	if err != nil || len(changed) != 5 {
		t.Fatalf("changed %v, %v", changed, err)
	}
	encoder, _ := zstd.NewWriter(nil)
	part := encoder.EncodeAll(plain, nil)
	w.asOwner(`UPDATE archive_parts SET body = $1`, part)
	w.asOwner(`UPDATE session_archives SET digest = sha256(sha256($1::bytea))`, part)
	w.restored(at)
	w.whole(at, bodies)
	if after := w.served(at); after != before {
		t.Errorf("it was %s, and is %s", before, after)
	}
	w.sameRows(at.ID, rows, w.allRows(at)) // as the encoders are those that there were, even the digests are
	w.verified()
}

// TestWhatIsDamagedIsArchivedAsItIs has rows with other digests than when they were written: an archive has their bytes
// as they are, so that no encoder of later makes something whole of them.
func TestWhatIsDamagedIsArchivedAsItIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work(jobs.Config{})
	at, _ := w.archivable("s")
	w.offloaded()
	w.asOwner(`UPDATE message_packs SET digest = sha256('')`)
	w.asOwner(`UPDATE checkpoints SET body_digest = sha256('') WHERE body IS NOT NULL`)
	conn, err := pgx.Connect(t.Context(), w.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	found, _ := conn.Query(t.Context(), `
		SELECT body FROM message_packs
		 UNION ALL SELECT body FROM checkpoints WHERE body IS NOT NULL`)
	stored, err := pgx.CollectRows(found, pgx.RowTo[[]byte])
	if err != nil || len(stored) < 2 {
		t.Fatal(len(stored), err)
	}
	rows := w.allRows(at)
	w.archived(at)
	plain, err := onlyPart(t.Context(), conn)
	for i := range stored {
		if err != nil || !bytes.Contains(plain, stored[i]) {
			t.Errorf("value %d of %d is not as it was, %v", i, len(stored), err)
		}
	}
	w.restored(at)
	w.sameRows(at.ID, rows, w.allRows(at))
}

// onlyPart returns the only part of all archives, decompressed.
func onlyPart(ctx context.Context, conn *pgx.Conn) (plain []byte, err error) {
	var part []byte
	if err := conn.QueryRow(ctx, `SELECT body FROM archive_parts`).Scan(&part); err != nil {
		return nil, err
	}
	decoder, err := zstd.NewReader(nil)
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	return decoder.DecodeAll(part, nil)
}
