package postgres_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// recordedTurn is a message of a recorded session, and what the provider counted when it answered with it.
type recordedTurn struct {
	message session.NewMessage
	usage   *session.Usage
}

// recordedTurns reads a session of Claude Code that has usages. The lines of one answer share an id and a usage, which
// is that of the last of them.
func recordedTurns(t *testing.T, file string) (turns []recordedTurn, largest int64) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var last string
	for line := range bytes.Lines(data) {
		var record struct {
			IsSidechain bool
			Message     struct {
				ID, Role string
				Content  json.RawMessage
				Usage    *struct {
					Input    int64 `json:"input_tokens"`
					Creation int64 `json:"cache_creation_input_tokens"`
					Read     int64 `json:"cache_read_input_tokens"`
					Output   int64 `json:"output_tokens"`
				}
			}
		}
		if json.Unmarshal(line, &record) != nil || record.IsSidechain || record.Message.Content == nil {
			continue
		}
		m := record.Message
		body := fmt.Appendf(nil, `{"role":%q,"content":%s}`, m.Role, m.Content)
		found, err := wire.Inspect(session.Anthropic, body)
		if err != nil {
			continue
		}
		turn := recordedTurn{message: session.NewMessage{Body: body, Role: m.Role, Tokens: found.Tokens, StartsUnit: found.StartsUnit}}
		if u := m.Usage; u != nil {
			turn.usage = &session.Usage{InputTokens: u.Input, CacheCreationTokens: u.Creation, CacheReadTokens: u.Read, OutputTokens: u.Output}
			if m.ID == last {
				turns[len(turns)-1].usage = nil
			}
			largest = max(largest, turn.usage.Input()+u.Output)
		}
		last = m.ID
		turns = append(turns, turn)
	}
	return turns, largest
}

// TestCorpusUsageDecidesAtOnce: in recorded sessions, whose system prompt and tools the store never sees, the first
// answer with which the provider counted more than the trigger queues a run, or an append before it did.
func TestCorpusUsageDecidesAtOnce(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("VARVE_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data")
	}
	files, _ := filepath.Glob(filepath.Join(dir, "claude-code", "*.jsonl"))
	if len(files) == 0 {
		t.Skip("there are no recorded conversations on this machine")
	}
	store, tenant := newStore(t)
	sessions, requests := 0, 0
	for _, file := range files {
		turns, largest := recordedTurns(t, file)
		if largest < 50_000 {
			continue
		}
		sessions++
		at := newWideSession(t, store, session.Address{Tenant: tenant, ID: filepath.Base(file)}, int(largest), 0)
		requests += replayTurns(t, store, at, turns, largest)
	}
	t.Logf("corpus: %d sessions, %d requests until the first run", sessions, requests)
	if sessions < 9 {
		t.Errorf("only %d sessions have usages", sessions)
	}
}

// replayTurns appends turns until a run is queued, and returns how many answers came before.
func replayTurns(t *testing.T, store *postgres.Store, at session.Address, turns []recordedTurn, window int64) (requests int) {
	t.Helper()
	for _, turn := range turns {
		a := batch(at, turn.message)
		a.Format, a.Usage = session.Anthropic, turn.usage
		queued := mustAppend(t, store, a).Compaction == session.CompactionQueued
		if queued {
			return requests
		}
		if turn.usage == nil {
			continue
		}
		requests++
		if used := turn.usage.Input() + turn.usage.OutputTokens; float64(used) >= 0.8*float64(window) {
			t.Errorf("%s: the provider counted %d of %d tokens, and no run is queued", at.ID, used, window)
			return requests
		}
	}
	t.Errorf("%s: no run was queued", at.ID)
	return requests
}
