package verify_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/persist/object"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/verify"
)

func TestWorkUnderWayIsNoFinding(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(p *policy.Policy) {
		p.Idle.Enabled, p.Economy.Enabled, p.Cache.TTLSeconds = false, false, 0
	})
	client, err := jobs.NewClient(w.store.Pool(), jobs.Config{Store: w.store, VerifyRound: -1})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.StopAndCancel(context.Background()) })
	recorded := conversation(t, "claude-code", "entire-17")
	var appending sync.WaitGroup
	for n := range 3 {
		window := 20_000
		at := session.Address{Tenant: w.tenant.ID, ID: fmt.Sprint("s", n)}
		if _, _, err := w.store.Create(t.Context(), at, session.Change{WindowTokens: &window}, nil); err != nil {
			t.Fatal(err)
		}
		appending.Go(func() {
			for i := range recorded.Messages {
				w.append(at, recorded.Format, recorded.Messages[i:i+1])
				if i%9 == 8 {
					if _, _, err := w.store.Compact(t.Context(), at, nil); err != nil {
						t.Error(err)
					}
				}
				if i%40 == 39 {
					if _, _, err := w.store.Remove(t.Context(), at, int64(i-20), nil); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { appending.Wait(); close(done) }()
	for looks := 1; ; looks++ {
		w.clean()
		select {
		case <-done:
			t.Logf("looked %d times meanwhile", looks)
			for report := w.clean(); report.Checkpoints < 3 || report.Messages < 100; { // one a session, when it is done
				report = w.clean()
			}
			return
		default:
		}
	}
}

func TestObjectsOutsideAreVerified(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain)
	dir := t.TempDir()
	files, err := object.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	w.store.UseResultStores(persist.Stores{
		New: persist.File, Outside: map[persist.Kind]object.Store{persist.File: files},
	})
	w.save("s", withLargeResult(conversation(t, "claude-code", "entire-17")), 20_000, 12, true)
	w.clean()
	changed := 0
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || changed > 0 {
			return err
		}
		changed++
		return os.Remove(path)
	})
	if err != nil || changed == 0 {
		t.Fatal("no object was removed: ", err)
	}
	found := w.found(false)
	if len(found) == 0 || !strings.HasPrefix(found[0], "result: ") && !strings.HasPrefix(found[0], "chunk: ") {
		t.Errorf("of an object that is gone %v was found", found)
	}
	w.found(true)
	w.clean()
}

func TestRowsWithoutASessionAreFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.save("s", conversation(t, "claude-code", "spotter-short"), 20_000, 100, false)
	w.clean()
	_, err := w.admin.Exec(t.Context(), `
		INSERT INTO messages (tenant_id, session_key, seq, role, format, tokens, starts_unit, body, shape)
		SELECT tenant_id, '00000000-0000-7000-8000-000000000007', seq, role, format, tokens, starts_unit, body, shape
		  FROM messages`)
	if err != nil {
		t.Fatal(err)
	}
	report := w.verify(false)
	if len(report.Findings) != 1 || report.Findings[0].Kind != verify.Orphan || report.Findings[0].Name != "messages" ||
		!strings.Contains(report.Findings[0].What, "00000000-0000-7000-8000-000000000007") {
		t.Errorf("found %+v", report.Findings)
	}
}

func TestTheSeqOfARemovalIsNoGapAndALostMessageBeforeItIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.save("s", conversation(t, "claude-code", "spotter-short"), 20_000, 100, false)
	if _, _, err := w.store.Remove(t.Context(), session.Address{Tenant: w.tenant.ID, ID: "s"}, 2, nil); err != nil {
		t.Fatal(err)
	}
	w.clean()
	for _, step := range []struct {
		sql  string
		want []string
	}{
		{`UPDATE sessions SET total_tokens = total_tokens + 7`, []string{"counter: total_tokens"}},
		{`DELETE FROM messages WHERE seq = 3`, []string{"missing_message: message 3"}},
	} {
		if _, err := w.admin.Exec(t.Context(), step.sql); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, w.found(true)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.sql, diff)
		}
	}
}

// TestWhatWasAssessedByFewerRulesIsNoFinding gives messages and checkpoints the flags and the state that versions wrote
// which did not look at all rules.
func TestWhatWasAssessedByFewerRulesIsNoFinding(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.save("s", conversation(t, "claude-code", "entire-17"), 20_000, 40, true)
	for _, sql := range []string{
		`UPDATE messages SET flags = flags & x'7FFFFFFF'::int | 256`,
		`UPDATE messages SET shape = regexp_replace(shape, E'^(\\d+)\x1f-?\\d+', E'\\1\x1f' || flags)`,
		`UPDATE checkpoints SET body_digest = NULL, validator_state = set_byte(validator_state, 0, get_byte(validator_state, 0) & 127)`,
	} {
		if _, err := w.admin.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	if report := w.clean(); report.Messages == 0 || report.Checkpoints == 0 {
		t.Errorf("looked at %d messages and %d checkpoints", report.Messages, report.Checkpoints)
	}
}
