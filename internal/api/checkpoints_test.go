package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/compact/manifest"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

// checkpoint is a checkpoint as callers decode it.
type checkpoint struct {
	session.CheckpointRecord
	Policy   map[string]any
	Manifest struct {
		Of           string
		TokensBefore int64 `json:"tokens_before"`
		TokensAfter  int64 `json:"tokens_after"`
		TokensSaved  int64 `json:"tokens_saved"`
		Stages       []manifest.StageSum
		Entries      []struct {
			manifest.Entry
			ReadBack string `json:"read_back"`
		}
	}
}

// compacted makes a session of a format with checkpoints 1 to 3, of which the last has a tail of one turn.
func (w *world) compacted(format string) (path string) {
	w.Helper()
	path = "/v1/sessions/" + format
	w.must(http.StatusCreated, "PUT", path, `{"window_tokens":10000000}`)
	w.must(http.StatusCreated, "POST", path+"/messages", batch(format, `{"role":"system","content":"be brief"}`))
	for round := range 3 {
		for n := range 3 {
			w.must(http.StatusCreated, "POST", path+"/messages", batch(format, turn(format, 3*round+n, 3, 6000)...))
		}
		w.must(http.StatusOK, "PATCH", path, `{"window_tokens":20000}`)
		w.must(http.StatusOK, "POST", path+"/compact?wait=20", "")
		w.must(http.StatusOK, "PATCH", path, `{"window_tokens":10000000}`) // nothing compacts by itself
	}
	w.until("no compaction is left, which what the test asks for would join", func() bool {
		return w.count(`SELECT count(*) FROM river_job WHERE kind = 'compact' AND finalized_at IS NULL`) == 0
	})
	w.must(http.StatusCreated, "POST", path+"/messages", batch(format, turn(format, 9, 1, 600)...))
	return path
}

// bothFormats runs a test on a compacted session of each format.
func bothFormats(t *testing.T, test func(w *world, format, path string)) {
	t.Parallel()
	for _, format := range []string{"openai-chat", "anthropic"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.work()
			test(w, format, w.compacted(format))
		})
	}
}

// originals returns the tokens of a view's messages as they were appended, through a seq.
func (w *world) originals(path, format string, through int64) (tokens int64) {
	w.Helper()
	log := decoded[struct {
		Data []struct {
			Seq, Tokens int64
			Role        string
		}
	}](w.must(http.StatusOK, "GET", path+"/messages?limit=1000", ""))
	for _, m := range log.Data {
		if m.Seq <= through && (format != "anthropic" || m.Role != "system") {
			tokens += m.Tokens
		}
	}
	return tokens
}

func TestCheckpointsAreListedNewestFirst(t *testing.T) {
	bothFormats(t, func(w *world, _, path string) {
		page := decoded[listPage](w.must(http.StatusOK, "GET", path+"/checkpoints?limit=2", ""))
		next := decoded[listPage](w.must(http.StatusOK, "GET", path+"/checkpoints?cursor="+*page.NextCursor, ""))
		var numbers []any
		for _, c := range slices.Concat(page.Data, next.Data) {
			numbers = append(numbers, c["n"])
			if c["has_body"] != true || c["restored_from"] != nil || len(c["policy_digest"].(string)) != 64 || c["engine_version"] == 0.0 {
				w.Errorf("%v", c)
			}
			w.must(http.StatusOK, "GET", fmt.Sprint(path, "/runs/", c["run"]), "")
		}
		if diff := cmp.Diff([]any{3.0, 2.0, 1.0}, numbers); diff != "" || next.HasMore {
			w.Error(diff)
		}
	})
}

func TestAManifestAddsUpAndEverythingInItCanBeReadBack(t *testing.T) {
	bothFormats(t, func(w *world, format, path string) {
		for n := 1; n <= 3; n++ {
			own := decoded[checkpoint](w.must(http.StatusOK, "GET", fmt.Sprintf("%s/checkpoints/%d", path, n), ""))
			all := decoded[checkpoint](w.must(http.StatusOK, "GET", fmt.Sprintf("%s/checkpoints/%d?manifest=all", path, n), ""))
			for _, c := range []checkpoint{own, all} {
				m := c.Manifest
				var byEntry, byStage int64
				for _, e := range m.Entries {
					byEntry += e.TokensBefore - e.TokensAfter
				}
				for _, s := range m.Stages {
					byStage += s.TokensSaved
				}
				if m.TokensSaved <= 0 || m.TokensSaved != byEntry || m.TokensSaved != byStage || m.TokensSaved != m.TokensBefore-m.TokensAfter || m.TokensAfter != c.Tokens {
					w.Errorf("%s of %d: %+v; entries %d, stages %d", m.Of, n, m, byEntry, byStage)
				}
			}
			if want := w.originals(path, format, all.Through); all.Manifest.TokensBefore != want {
				w.Errorf("checkpoint %d was made of messages of %d tokens, its manifests say %d", n, want, all.Manifest.TokensBefore)
			}
			if len(own.Policy) < 3 || own.Manifest.Of != "own" || all.Manifest.Of != "all" {
				w.Errorf("%+v", own)
			}
			for _, e := range all.Manifest.Entries {
				w.must(http.StatusOK, "GET", e.ReadBack, "")
			}
		}
	})
}

func TestTheViewOfACheckpointIsTheOneThatItWas(t *testing.T) {
	bothFormats(t, func(w *world, format, path string) {
		now := decoded[view](w.must(http.StatusOK, "GET", path+"/context", ""))
		for n := 1; n <= 3; n++ {
			was := w.must(http.StatusOK, "GET", fmt.Sprintf("%s/checkpoints/%d/context", path, n), "")
			v := decoded[view](was)
			if problems := wiretest.Validate(session.Format(format), v.bodies(), wire.Options{}); len(problems) > 0 || v.Checkpoint != n || v.LastSeq != v.Through {
				w.Errorf("%+v: %v", v, problems)
			}
			if (format == "anthropic") != (string(v.System) == `[{"type":"text","text":"be brief"}]` || string(v.System) == `"be brief"`) {
				w.Errorf("the system prompt is %s", v.System)
			}
			if n == 3 && !slices.EqualFunc(v.bodies(), now.bodies()[:len(v.Messages)], func(a, b []byte) bool { return string(a) == string(b) }) {
				w.Error("the newest checkpoint is not the beginning of the view")
			}
			record := decoded[checkpoint](w.must(http.StatusOK, "GET", fmt.Sprintf("%s/checkpoints/%d", path, n), ""))
			if system := w.originals(path, "", 1); v.Tokens != record.Tokens && v.Tokens != record.Tokens+system {
				w.Errorf("%d tokens, the checkpoint has %d, the system prompt %d", v.Tokens, record.Tokens, system)
			}
			w.must(http.StatusNotModified, "GET", fmt.Sprintf("%s/checkpoints/%d/context", path, n), "", "If-None-Match", was.Header().Get("Etag"))
		}
	})
}

// messagesOf returns the messages of a view's JSON.
func messagesOf(a answer) string {
	_, messages, _ := strings.Cut(a.Body.String(), `"messages":[`)
	return strings.TrimSuffix(messages, "]}")
}

func TestARestoredViewIsThatOfTheCheckpointAndTheTail(t *testing.T) {
	bothFormats(t, func(w *world, format, path string) {
		for _, n := range []int{1, 2, 1} {
			was := w.must(http.StatusOK, "GET", fmt.Sprintf("%s/checkpoints/%d/context", path, n), "")
			made := w.must(http.StatusCreated, "POST", fmt.Sprintf("%s/checkpoints/%d/restore", path, n), "")
			restored := decoded[checkpoint](made)
			if *restored.RestoredFrom != n || made.Header().Get("Location") != fmt.Sprintf("%s/checkpoints/%d", path, restored.N) {
				w.Errorf("%v %s", made.Header(), made.Body)
			}
			now := w.must(http.StatusOK, "GET", path+"/context", "")
			v := decoded[view](now)
			tail := messagesOf(w.must(http.StatusOK, "GET", path+"/context?view=full", ""))
			whole := messagesOf(now)
			rest, ok := strings.CutPrefix(whole, messagesOf(was)+",")
			if !ok || !strings.HasSuffix(tail, rest) || v.Checkpoint != restored.N || len(v.Messages) < 30 {
				w.Errorf("restored %d: a view of %d messages through %d", n, len(v.Messages), v.Through)
			}
			if problems := wiretest.Validate(session.Format(format), v.bodies(), wire.Options{}); len(problems) > 0 {
				w.Errorf("the view after the restoration: %v", problems)
			}
			run := decoded[session.Run](w.must(http.StatusOK, "GET", fmt.Sprint(path, "/runs/", restored.Run), ""))
			if run.Cause != "restore" || *run.Checkpoint != restored.N || *run.TokensAfter != v.Tokens {
				w.Errorf("run %+v, the view has %d tokens", run, v.Tokens)
			}
			w.must(http.StatusOK, "GET", fmt.Sprintf("%s/checkpoints/%d?manifest=all", path, restored.N), "")
		}
		w.must(http.StatusOK, "PATCH", path, `{"window_tokens":20000}`)
		w.must(http.StatusOK, "POST", path+"/compact?wait=20", "") // unless the run that the smaller window has woken was first
		if now := decoded[session.Session](w.must(http.StatusOK, "GET", path, "")); now.Checkpoint != 7 {
			w.Errorf("after a compaction of the restored session its checkpoint is %d", now.Checkpoint)
		}
		all := decoded[checkpoint](w.must(http.StatusOK, "GET", path+"/checkpoints/7?manifest=all", ""))
		if want := w.originals(path, format, all.Through); all.Manifest.TokensBefore != want {
			w.Errorf("checkpoint 7 was made of messages of %d tokens, its manifests say %d", want, all.Manifest.TokensBefore)
		}
	})
}

func TestADiffOfTwoCheckpointsAddsUp(t *testing.T) {
	bothFormats(t, func(w *world, format, path string) {
		w.must(http.StatusCreated, "POST", path+"/checkpoints/1/restore", "")
		type side struct {
			N       int
			Through int64 `json:"through_seq"`
			Tokens  int64
		}
		for _, pair := range [][2]int{{1, 2}, {1, 3}, {3, 1}, {3, 4}, {1, 4}, {2, 2}} {
			d := decoded[struct {
				From, To      side
				TokensCovered int64 `json:"tokens_covered"`
				TokensChanged int64 `json:"tokens_changed"`
				Changes       []manifest.Change
			}](w.must(http.StatusOK, "GET", fmt.Sprintf("%s/checkpoints/%d/diff?to=%d", path, pair[0], pair[1]), ""))
			if d.From.N != pair[0] || d.To.N != pair[1] || d.To.Tokens != d.From.Tokens+d.TokensCovered+d.TokensChanged {
				w.Errorf("%v: %+v", pair, d)
			}
			if want := w.originals(path, format, d.To.Through) - w.originals(path, format, d.From.Through); d.TokensCovered != want {
				w.Errorf("%v: the messages between have %d tokens, not %d", pair, want, d.TokensCovered)
			}
			if same := pair == [2]int{1, 4} || pair[0] == pair[1]; same != (len(d.Changes) == 0) {
				w.Errorf("%v: %+v", pair, d.Changes)
			}
		}
		newest := decoded[struct{ To side }](w.must(http.StatusOK, "GET", path+"/checkpoints/1/diff", ""))
		if newest.To.N != 4 {
			w.Errorf("without to: %+v", newest)
		}
	})
}

func TestARestorationIsOnceForItsKeyAndRefusedForNothingToRestore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	path := w.compacted("openai-chat")
	first := w.must(http.StatusCreated, "POST", path+"/checkpoints/1/restore", "", "Idempotency-Key", "k")
	again := w.must(http.StatusCreated, "POST", path+"/checkpoints/1/restore", "", "Idempotency-Key", "k")
	if first.Body.String() != again.Body.String() || again.Header().Get("Idempotent-Replayed") != "true" {
		t.Errorf("%s, then %s", first.Body, again.Body)
	}
	for _, test := range []struct {
		status           int
		method, path, in string
	}{
		{http.StatusUnprocessableEntity, "POST", "/checkpoints/2/restore", "k"},
		{http.StatusNotFound, "POST", "/checkpoints/9/restore", ""},
		{http.StatusNotFound, "GET", "/checkpoints/0", ""},
		{http.StatusNotFound, "GET", "/checkpoints/x", ""},
		{http.StatusNotFound, "GET", "/checkpoints/1/diff?to=9", ""},
		{http.StatusNotFound, "GET", "/checkpoints/99999999999/context", ""},
		{http.StatusUnprocessableEntity, "GET", "/checkpoints/1?manifest=none", ""},
		{http.StatusUnprocessableEntity, "GET", "/checkpoints/1/diff?to=0", ""},
		{http.StatusBadRequest, "GET", "/checkpoints/1/context?max_tokens=5", ""},
		{http.StatusBadRequest, "GET", "/checkpoints?cursor=x", ""},
	} {
		got := w.must(test.status, test.method, path+test.path, "", "Idempotency-Key", test.in)
		checkProblem(t, got, decoded[problem](got))
	}
}

// TestARestorationIsOnceForItsKeyAtOnce: the first of two requests may prune the checkpoint that both restore.
func TestARestorationIsOnceForItsKeyAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	path := w.compacted("openai-chat")
	for n := range 8 {
		oldest := 1 // that is kept
		for w.ask("GET", fmt.Sprintf("%s/checkpoints/%d/context", path, oldest), "").Code != http.StatusOK {
			oldest++
		}
		var both sync.WaitGroup
		answers := make(chan answer, 2)
		for range cap(answers) {
			both.Go(func() {
				answers <- w.ask("POST", fmt.Sprintf("%s/checkpoints/%d/restore", path, oldest), "", "Idempotency-Key", fmt.Sprint("at-once-", n))
			})
		}
		both.Wait()
		first, second := <-answers, <-answers
		replayed := first.Header().Get("Idempotent-Replayed") + second.Header().Get("Idempotent-Replayed")
		if first.Code != http.StatusCreated || first.Body.String() != second.Body.String() || replayed != "true" {
			t.Errorf("%d %s\n%d %s", first.Code, first.Body, second.Code, second.Body)
		}
	}
}

// TestViewsStayValidWhileASessionIsRestored restores, compacts, appends and reads all at once.
func TestViewsStayValidWhileASessionIsRestored(t *testing.T) {
	bothFormats(t, func(w *world, format, path string) {
		w.must(http.StatusOK, "PATCH", path, `{"window_tokens":20000}`)
		var group sync.WaitGroup
		group.Go(func() {
			for n := range 8 {
				w.ask("POST", fmt.Sprintf("%s/checkpoints/%d/restore", path, 1+n%3), "")
			}
		})
		group.Go(func() {
			for range 4 {
				w.ask("POST", path+"/compact?wait=10", "")
			}
		})
		group.Go(func() {
			for n := range 8 {
				w.ask("POST", path+"/messages", batch(format, turn(format, 20+n, 1, 3000)...))
			}
		})
		for range 30 {
			v := decoded[view](w.ask("GET", path+"/context", ""))
			if problems := wiretest.Validate(session.Format(format), v.bodies(), wire.Options{}); len(problems) > 0 {
				w.Fatalf("checkpoint %d: %v", v.Checkpoint, problems)
			}
		}
		group.Wait()
		v := decoded[view](w.must(http.StatusOK, "GET", path+"/context", ""))
		if v.LastSeq != 1+9*8+4+8*4 {
			w.Errorf("the last seq is %d", v.LastSeq)
		}
	})
}

// What an older engine made is still a view, but no base: its state says nothing to the engine of today.
func TestACheckpointOfAnotherEngineCanBeRestoredAndCompactedOn(t *testing.T) {
	bothFormats(t, func(w *world, format, path string) {
		w.exec(`UPDATE checkpoints SET engine_version = 0, state = 'old' WHERE n = 1`)
		restored := decoded[checkpoint](w.must(http.StatusCreated, "POST", path+"/checkpoints/1/restore", ""))
		if restored.EngineVersion != 0 {
			w.Errorf("%+v", restored)
		}
		w.must(http.StatusOK, "PATCH", path, `{"window_tokens":20000}`)
		w.must(http.StatusOK, "POST", path+"/compact?wait=20", "") // unless the run that the smaller window has woken was first
		now := decoded[session.Session](w.must(http.StatusOK, "GET", path, ""))
		if now.Checkpoint == restored.N {
			w.Fatalf("no compaction of checkpoint %d", restored.N)
		}
		made := decoded[checkpoint](w.must(http.StatusOK, "GET", fmt.Sprintf("%s/checkpoints/%d?manifest=all", path, now.Checkpoint), ""))
		if want := w.originals(path, format, made.Through); made.Base != 0 || made.Manifest.TokensBefore != want {
			w.Errorf("made on checkpoint %d of messages of %d tokens; want 0, %d", made.Base, made.Manifest.TokensBefore, want)
		}
	})
}
