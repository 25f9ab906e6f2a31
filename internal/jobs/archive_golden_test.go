//go:build !race

package jobs_test

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/session"
)

var update = flag.Bool("update", false, "write the golden archive anew; only for a version that has none")

// The golden archive: its part, what session_archives says of it, and the numbers of its session.
const (
	goldenPart = "testdata/archive-1.part"
	goldenRow  = "testdata/archive-1.json"
)

type golden struct {
	Tables  map[string]int64 `json:"tables"`
	Digest  string           `json:"digest"`
	Session json.RawMessage  `json:"session"`
}

// TestAnArchiveOfTheFirstVersionIsRestoredForEver restores one that the first version made, by the schema of now.
func TestAnArchiveOfTheFirstVersionIsRestoredForEver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work(jobs.Config{})
	bodies := turns(40, 1500)
	if *update {
		w.writeGolden(bodies)
	}
	part, err := os.ReadFile(goldenPart)
	if err != nil {
		t.Fatal(err)
	}
	row, err := os.ReadFile(goldenRow)
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(row, &g); err != nil {
		t.Fatal(err)
	}
	at := w.session("old")
	w.archived(at)
	w.asOwner(`DELETE FROM archive_parts`)
	w.asOwner(`INSERT INTO archive_parts (tenant_id, session_key, n, rows, size, digest, body)
		SELECT tenant_id, session_key, 0, 0, length($1::bytea), sha256($1::bytea), $1 FROM session_archives`, part)
	w.asOwner(`UPDATE session_archives SET tables = $1, digest = decode($2, 'hex'), parts = 1`, g.Tables, g.Digest)
	w.asOwner(`UPDATE sessions s SET last_seq = r.last_seq, format = r.format, tail_bytes = r.tail_bytes, context_tokens = r.context_tokens,
		total_tokens = r.total_tokens, checkpoint_n = r.checkpoint_n, through_seq = r.through_seq, checkpoint_size = r.checkpoint_size,
		offloaded_n = r.offloaded_n, last_append_at = r.last_append_at, policy_version = r.policy_version, engine_version = r.engine_version,
		floor_tokens = r.floor_tokens, armed_threshold = r.armed_threshold
		FROM jsonb_populate_record(NULL::sessions, $1) r WHERE s.id = 'old'`, g.Session)
	w.restored(at)
	w.whole(at, bodies)
	if found, err := w.store.Session(t.Context(), at); err != nil || found.Checkpoint == 0 {
		t.Errorf("%+v, %v", found, err)
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
		SELECT a.tables, encode(a.digest, 'hex'), to_jsonb(s) - 'tenant_id' - 'key' - 'policy_id', p.body
		  FROM session_archives a
		  JOIN sessions s ON s.key = a.session_key
		  JOIN archive_parts p ON p.session_key = a.session_key
		 WHERE s.id = 'golden'`).Scan(&g.Tables, &g.Digest, &g.Session, &part)
	if err != nil {
		w.Fatal(err)
	}
	row, err := json.MarshalIndent(g, "", "  ")
	if err != nil {
		w.Fatal(err)
	}
	for name, body := range map[string][]byte{goldenPart: part, goldenRow: row} {
		if err := os.WriteFile(name, body, 0o644); err != nil {
			w.Fatal(err)
		}
	}
	if _, err := w.store.Delete(w.Context(), at, nil); err != nil {
		w.Fatal(err)
	}
	w.drained("erasures WHERE state <> 'done'")
}
