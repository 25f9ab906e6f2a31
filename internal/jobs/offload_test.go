package jobs_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tier/pack"
	"github.com/varve-dev/varve/internal/wire"
)

// offloaded waits until no job that compacts or packs is live, and returns how much of the database is packed.
func (w *world) offloaded() (packs, packed, holes int) {
	w.Helper()
	w.drained("river_job WHERE kind IN ('compact', 'recompact', 'offload') AND finalized_at IS NULL")
	return w.count("message_packs"), w.count("messages WHERE body IS NULL"),
		w.count("message_packs WHERE results > 0")
}

// drained waits until no row of a table fits any more.
func (w *world) drained(rows string) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	for tick := time.NewTicker(20 * time.Millisecond); w.count(rows) > 0; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			w.Fatalf("there are still rows of %s", rows)
		}
	}
}

// count counts rows of a table, of any tenant.
func (w *world) count(rows string) (n int) {
	w.Helper()
	if err := pgtest.Row(w, w.dsn, `SELECT count(*) FROM `+rows).Scan(&n); err != nil {
		w.Fatal(err)
	}
	return n
}

// appendLog appends messages of a format.
func (w *world) appendLog(at session.Address, f session.Format, bodies [][]byte) {
	w.Helper()
	for batch := range slices.Chunk(bodies, 40) {
		a := session.Append{Session: at, Format: f}
		for _, body := range batch {
			m, err := wire.Inspect(f, body)
			if err != nil {
				w.Fatal(err)
			}
			n := session.NewMessage{
				Body: body, Role: m.Role, Tokens: m.Tokens, StartsUnit: m.StartsUnit, Flags: int32(m.Flags),
				Pinned: m.Flags&wire.FlagPinned != 0,
			}
			for i := range m.Parts {
				switch m.Parts[i].Kind {
				case wire.Call:
					n.Calls = append(n.Calls, m.Parts[i].CallID)
				case wire.Result:
					n.Answers = append(n.Answers, m.Parts[i].CallID)
				}
			}
			a.Messages = append(a.Messages, n)
		}
		if _, _, err := w.store.Append(context.WithoutCancel(w.Context()), a); err != nil {
			w.Fatal(err)
		}
	}
}

// same holds a log to its messages on every way that reads them.
func (w *world) same(at session.Address, f session.Format, bodies [][]byte) {
	w.Helper()
	ctx := context.WithoutCancel(w.Context())
	_, log, err := w.store.Messages(ctx, at, postgres.Range{Removed: true, Limit: 1_000_000})
	if err != nil || len(log) != len(bodies) {
		w.Fatalf("%s: %d messages of %d, %v", at.ID, len(log), len(bodies), err)
	}
	for i := range log {
		if !bytes.Equal(log[i].Body, bodies[i]) {
			w.Fatalf("%s: message %d is another", at.ID, i+1)
		}
	}
	e, err := w.store.ExportSession(ctx, at)
	if err != nil {
		w.Fatal(err)
	}
	exported := 0
	for from := int64(1); ; {
		page, err := w.store.ExportMessages(ctx, e, from)
		if err != nil {
			w.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for i := range page {
			if !bytes.Equal(page[i].Body, bodies[page[i].Seq-1]) {
				w.Fatalf("%s: exported message %d is another", at.ID, page[i].Seq)
			}
			exported++
		}
		from = page[len(page)-1].Seq + 1
	}
	if exported != len(bodies) {
		w.Fatalf("%s: %d messages exported of %d", at.ID, exported, len(bodies))
	}
	full, err := w.store.OlderView(ctx, at, postgres.ViewFrom(0), postgres.ViewRead{})
	if err != nil {
		w.Fatal(err)
	}
	if want := bytes.Join(bodies[full.Separate():], []byte(",")); !bytes.Equal(full.Tail, want) {
		w.Fatalf("%s: the log as a view is another", at.ID)
	}
	read, err := w.store.Window(ctx, e.Key, full.Separate(), full.LastSeq)
	if err != nil || len(read) != len(bodies)-int(full.Separate()) {
		w.Fatalf("%s: a window of %d messages, %v", at.ID, len(read), err)
	}
	for i := range read {
		if !bytes.Equal(read[i].Body, bodies[read[i].Seq-1]) {
			w.Fatalf("%s: message %d of the window is another", at.ID, read[i].Seq)
		}
	}
}

// readBack reads every persisted result of a session back and returns how many there are, and how many have a body.
func (w *world) readBack(at session.Address, f session.Format, bodies [][]byte) (n, stored int) {
	w.Helper()
	ctx := context.WithoutCancel(w.Context())
	var after persist.Place
	for {
		page, err := w.store.Results(ctx, at, persist.Filter{}, after, 1000)
		if err != nil {
			w.Fatal(err)
		}
		if len(page) == 0 {
			return n, stored
		}
		for i := range page {
			r := &page[i]
			body, err := w.bodyOf(at, r.Ref)
			if err != nil {
				w.Fatalf("%s %s: %v", at.ID, r.Ref, err)
			}
			facts, err := wire.Inspect(f, bodies[r.Seq-1])
			if err != nil {
				w.Fatal(err)
			}
			content := wire.ResultText(f, bodies[r.Seq-1], facts.Parts[r.Part])
			if sum := sha256.Sum256(content.Stored); !bytes.Equal(body, content.Stored) || !bytes.Equal(sum[:], r.SHA256) {
				w.Fatalf("%s %s: its body is another", at.ID, r.Ref)
			}
			if n++; !r.InLog {
				stored++
			}
			if small := len(body) <= 4<<10; small != r.InLog {
				w.Errorf("%s %s of %d bytes: in the log: %v", at.ID, r.Ref, len(body), r.InLog)
			}
			after = persist.Place{Seq: r.Seq, Part: r.Part}
		}
	}
}

// turns returns a request and n turns with results of about this many tokens.
func turns(n, tokens int) [][]byte {
	bodies := [][]byte{[]byte(`{"role":"user","content":"read all files"}`)}
	for i := range n {
		bodies = append(bodies, turn(i, tokens)...)
	}
	return bodies
}

func TestAViewBehindThePackedMessagesIsWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.session("s")
	bodies := turns(60, 1500)
	w.work(jobs.Config{})
	w.appendLog(at, session.OpenAIChat, bodies)
	if packs, packed, _ := w.offloaded(); packs == 0 || packed == 0 {
		t.Fatalf("%d packs with %d messages", packs, packed)
	}
	ctx := t.Context()
	records, err := w.store.Checkpoints(ctx, at, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range records {
		if !c.HasBody {
			continue
		}
		view, err := w.store.OlderView(ctx, at, postgres.ViewFrom(c.N), postgres.ViewRead{})
		if want := bytes.Join(bodies[c.Through:], []byte(",")); err != nil || !bytes.Equal(view.Tail, want) {
			t.Fatalf("the view behind checkpoint %d: %v", c.N, err)
		}
	}
	const removed = 5 // in a pack, before every checkpoint's end: the session goes back to its log
	if _, _, err := w.store.Remove(ctx, at, removed, nil); err != nil {
		t.Fatal(err)
	}
	rest := slices.Delete(slices.Clone(bodies), removed-1, removed)
	for name, view := range map[string]func() (postgres.View, error){
		"the newest": func() (postgres.View, error) { return w.store.View(ctx, at, postgres.Version{}) },
		"full": func() (postgres.View, error) {
			return w.store.OlderView(ctx, at, postgres.ViewFrom(0), postgres.ViewRead{})
		},
	} {
		v, err := view()
		if err != nil {
			t.Fatal(err)
		}
		if got := string(v.Tail); v.Checkpoint == 0 && got != string(bytes.Join(rest, []byte(","))) {
			t.Errorf("%s view after the removal has %d bytes of a tail", name, len(got))
		}
		if n := bytes.Count(v.TailShapes, []byte{0x1e}) + 1; v.Through == 0 && n != len(rest) {
			t.Errorf("%s view after the removal has %d shapes, want %d", name, n, len(rest))
		}
	}
	w.offloaded()
	_, log, err := w.store.Messages(ctx, at, postgres.Range{Removed: true, Limit: 1_000_000})
	if err != nil || len(log) != len(bodies) || !bytes.Equal(log[removed-1].Body, bodies[removed-1]) {
		t.Fatalf("%d messages, %v", len(log), err)
	}
}

func TestAMessageInAPackIsRecognisedWhenItIsSentAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.session("s")
	bodies := turns(60, 1500)
	w.work(jobs.Config{})
	a := session.Append{Session: at, Format: session.OpenAIChat}
	for i, body := range bodies {
		facts, err := wire.Inspect(a.Format, body)
		if err != nil {
			t.Fatal(err)
		}
		a.Messages = append(a.Messages, session.NewMessage{
			Body: body, Role: facts.Role, Tokens: facts.Tokens, StartsUnit: facts.StartsUnit, ClientID: fmt.Sprint(i),
		})
	}
	if _, _, err := w.store.Append(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if packs, packed, holed := w.offloaded(); packs == 0 || packed == 0 || holed == 0 {
		t.Fatalf("%d packs with %d messages, %d with holes", packs, packed, holed)
	}
	if done, _, err := w.store.Append(t.Context(), a); err != nil || !done.Replayed || done.FirstSeq != 1 {
		t.Errorf("%+v, %v", done, err)
	}
	a.Messages = slices.Clone(a.Messages)
	a.Messages[2].Body = bytes.Replace(a.Messages[2].Body, []byte("line"), []byte("lime"), 1)
	if _, _, err := w.store.Append(t.Context(), a); err == nil {
		t.Error("another message with a known client_id was taken for the one that is there")
	}
}

// In a session from before messages had the ids of their items, their bytes are searched.
func TestAnItemInAPackOfAnOldSessionIsFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.session("s")
	w.work(jobs.Config{})
	w.appendLog(at, session.OpenAIChat, turns(60, 1500))
	if packs, _, _ := w.offloaded(); packs == 0 {
		t.Fatal("no packs")
	}
	found, err := w.store.WithItemID(t.Context(), at, "assistant")
	if err != nil || len(found) != 0 {
		t.Errorf("the log was searched: %d messages, %v", len(found), err)
	}
	w.asOwner(`UPDATE installation SET items_since = now() + interval '1 day'`)
	found, err = w.store.WithItemID(t.Context(), at, "assistant")
	if err != nil || len(found) != 16 || found[0].Seq < found[15].Seq {
		t.Errorf("%d messages, %v", len(found), err)
	}
	found, err = w.store.WithItemID(t.Context(), at, "c3")
	if err != nil || len(found) != 2 || found[0].Seq != 9 {
		t.Errorf("%d messages, %v", len(found), err)
	}
}

// otherPack returns a pack of the messages of the first one, in which one says something else.
func (w *world) otherPack() []byte {
	w.Helper()
	var body []byte
	if err := pgtest.Row(w, w.dsn, `SELECT body FROM message_packs WHERE first_seq = 1`).Scan(&body); err != nil {
		w.Fatal(err)
	}
	records, err := pack.Decode(body)
	if err != nil {
		w.Fatal(err)
	}
	whole := slices.IndexFunc(records, func(r pack.Record) bool { return len(r.Holes) == 0 })
	records[whole].Rest = bytes.Replace(records[whole].Rest, []byte(`"role"`), []byte(`"rule"`), 1)
	return pack.Encode(records)
}

func TestADamagedPackIsNeverServed(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]string{
		"the pack":          `UPDATE message_packs SET body = set_byte(body, 40, get_byte(body, 40) # 255)`,
		"another pack":      `UPDATE message_packs SET body = $1 WHERE first_seq = 1`,
		"the pack is gone":  `DELETE FROM message_packs`,
		"what fills a hole": `UPDATE result_chunks SET body = set_byte(body, 20, get_byte(body, 20) # 255)`,
		"a body is gone":    `SET session_replication_role = replica; DELETE FROM result_chunks; DELETE FROM result_bodies`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			at := w.session("s")
			bodies := turns(60, 1500)
			_, stop := w.work(jobs.Config{})
			w.appendLog(at, session.OpenAIChat, bodies)
			if _, _, holed := w.offloaded(); holed == 0 {
				t.Fatal("no pack has a hole")
			}
			stop()
			conn, err := pgx.Connect(t.Context(), w.dsn)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(context.WithoutCancel(t.Context()))
			var args []any
			if strings.Contains(damage, "$1") {
				args = []any{w.otherPack()}
			}
			if _, err := conn.Exec(t.Context(), damage, args...); err != nil {
				t.Fatal(err)
			}
			damaged := 0
			for seq := int64(1); seq <= int64(len(bodies)); seq++ {
				_, found, err := w.store.Messages(t.Context(), at, postgres.Range{After: seq - 1, To: seq, Limit: 1})
				switch {
				case errors.Is(err, session.ErrDamaged):
					damaged++
				case err != nil || len(found) != 1 || !bytes.Equal(found[0].Body, bodies[seq-1]):
					t.Fatalf("message %d: %v", seq, err)
				}
			}
			if damaged == 0 {
				t.Error("the damage was not noticed")
			}
			if _, err := w.store.View(t.Context(), at, postgres.Version{}); err != nil {
				t.Errorf("the newest view needs no pack: %v", err)
			}
		})
	}
}

func TestAPackerKilledBetweenAnyTwoStepsLosesNothing(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"packs_planned", "packed", "pack_committed"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			at := w.session("s")
			bodies := turns(60, 1500)
			w.appendLog(at, session.OpenAIChat, bodies)
			w.kill(step)
			w.same(at, session.OpenAIChat, bodies)
			if committed := step == "pack_committed"; committed != (w.count("message_packs") > 0) {
				t.Fatalf("killed after %s: %d packs", step, w.count("message_packs"))
			}
			w.work(jobs.Config{Beat: beat})
			if packs, packed, _ := w.offloaded(); packs == 0 || packed == 0 {
				t.Errorf("%d packs with %d messages", packs, packed)
			}
			w.same(at, session.OpenAIChat, bodies)
			w.readBack(at, session.OpenAIChat, bodies)
		})
	}
}

func TestResultsThatLeaveLaterLeaveHolesLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.session("s")
	bodies := turns(200, 1500)
	_, stop := w.work(jobs.Config{})
	w.appendLog(at, session.OpenAIChat, bodies)
	w.offloaded()
	stop()
	before := w.count("message_packs p WHERE results < (SELECT count(*) FROM results r WHERE r.seq BETWEEN p.first_seq AND p.last_seq AND r.body_id IS NOT NULL)")
	whole := w.count("message_packs WHERE raw > 800000")
	if before > 0 || whole > 0 {
		t.Errorf("%d packs have results whole that are stored, %d are too large", before, whole)
	}
	w.same(at, session.OpenAIChat, bodies)
}

func TestTheSweepAsksForSessionsThatWereNotPacked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.session("s")
	bodies := turns(60, 1500)
	_, stop := w.work(jobs.Config{KeepWhole: true})
	w.appendLog(at, session.OpenAIChat, bodies)
	if packs, _, _ := w.offloaded(); packs > 0 {
		t.Fatalf("%d packs although the operator wants none", packs)
	}
	stop()
	w.work(jobs.Config{SweepEvery: 100 * time.Millisecond})
	for tick := time.NewTicker(20 * time.Millisecond); w.count("message_packs") == 0; {
		<-tick.C
	}
	w.offloaded()
	w.same(at, session.OpenAIChat, bodies)
}
