package api_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/compact/compacttest"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	reads "github.com/varve-dev/varve/internal/view"
	"github.com/varve-dev/varve/internal/wire"
)

// omittedUnits is what a view of which only the end was read does not tell.
var omittedUnits = regexp.MustCompile(`"omitted":\{"units":[0-9]+,`)

// TestABoundedViewOfALongLogIsThatOfTheWholeLog reads arbitrary sessions with arbitrary bounds: from the log's end,
// wherever that begins, from the end that the API chooses, and from all of it.
func TestABoundedViewOfALongLogIsThatOfTheWholeLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ends := w.streaming() // no log is short
	made, short, seeds := 0, 0, uint64(6)
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		for _, f := range session.Formats() {
			at := session.Address{Tenant: w.tenant, ID: fmt.Sprintf("%s-%d", f, seed)}
			rng := rand.New(rand.NewPCG(seed, 3))
			w.wander(rng, at, f, seed%2 == 1)
			for range 40 {
				r := reads.Request{MaxTokens: int64(100 + rng.IntN(6000)), Pending: wire.KeepPending, Largest: -1, Admit: func(int64) error { return nil }}
				want := w.bounded(at, r, nil)
				got := w.bounded(at, r, &postgres.End{First: int64(2 + rng.IntN(160))})
				if errors.Is(got.err, reads.ErrShortEnd) {
					short++
					continue
				}
				made++
				if diff := cmp.Diff(want.String(), got.String()); diff != "" {
					t.Fatalf("%s, %d tokens\n%.3000s", at.ID, r.MaxTokens, diff)
				}
			}
			for range 3 {
				limit := int64(100 + rng.IntN(6000))
				want := w.bounded(at, reads.Request{MaxTokens: limit, Pending: wire.KeepPending}, nil)
				got := plainOf(w.asked(ends, fmt.Sprintf("/v1/sessions/%s/context?max_tokens=%d", at.ID, limit)))
				if want.err == nil && want.String() != (boundedView{body: strings.TrimPrefix(got, "200")}).String() {
					t.Fatalf("%s: %.1000s\nwant %.1000s", at.ID, got, want)
				}
			}
		}
	}
	if made < 50*int(seeds) || short < 16*int(seeds) {
		t.Errorf("%d views were made of an end, of %d it was too short", made, short)
	}
}

// TestTheEndOfAShortLogIsThatOfTheWholeLog reads short logs in which messages of the user, calls, and results before and
// behind their calls follow one another in any order: from every beginning of an end, with bounds of every kind.
func TestTheEndOfAShortLogIsThatOfTheWholeLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pieces := map[session.Format][]string{
		"openai-responses": {
			`{"type":"message","role":"user","content":"a question"}`,
			`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"an answer"}]}`,
			`{"type":"function_call","call_id":"x%[1]d","name":"f","arguments":"{}"}`,
			`{"type":"function_call_output","call_id":"x%[1]d","output":"a result"}`,
		},
		"anthropic": {
			`{"role":"user","content":"a question"}`,
			`{"role":"assistant","content":"an answer"}`,
			`{"role":"assistant","content":[{"type":"tool_use","id":"x%[1]d","name":"f","input":{}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"x%[1]d","content":"a result"}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"x%[1]d","content":"a result"},{"type":"text","text":"a question"}]}`,
		},
		"gemini": {
			`{"role":"user","parts":[{"text":"a question"}]}`,
			`{"role":"model","parts":[{"text":"an answer"}]}`,
			`{"role":"model","parts":[{"functionCall":{"name":"f%[1]d","args":{}}}]}`,
			`{"role":"user","parts":[{"functionResponse":{"name":"f%[1]d","response":{}}}]}`,
		},
		"openai-chat": {
			`{"role":"user","content":"a question"}`,
			`{"role":"assistant","content":"an answer"}`,
			`{"role":"assistant","content":null,"tool_calls":[{"id":"x%[1]d","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
			`{"role":"tool","tool_call_id":"x%[1]d","content":"a result"}`,
		},
	}
	made, seeds := 0, uint64(40)
	if testing.Short() {
		seeds = 16
	}
	for f, pieces := range pieces {
		for seed := range seeds {
			at := session.Address{Tenant: w.tenant, ID: fmt.Sprintf("%s-short-%d", f, seed)}
			rng := rand.New(rand.NewPCG(seed, 4))
			var said []string
			for range 14 {
				piece := pieces[rng.IntN(len(pieces))]
				if strings.Contains(piece, "%") {
					piece = fmt.Sprintf(piece, rng.IntN(2))
				}
				said = append(said, piece)
			}
			w.must(http.StatusCreated, "PUT", "/v1/sessions/"+at.ID, fmt.Sprintf(`{"format":%q}`, f))
			w.must(http.StatusCreated, "POST", "/v1/sessions/"+at.ID+"/messages", batch(string(f), said...))
			made += w.readEnds(at, rng)
		}
	}
	if made < int(seeds) {
		t.Errorf("%d views were made of an end", made)
	}
}

// readEnds reads every end of a session with six bounds, and returns how many views were made.
func (w *world) readEnds(at session.Address, rng *rand.Rand) (made int) {
	w.Helper()
	now, err := w.store.Session(w.Context(), at)
	if err != nil {
		w.Fatal(err)
	}
	for range 6 {
		r := reads.Request{MaxTokens: 1 + rng.Int64N(now.ContextTokens), Pending: wire.KeepPending, Largest: -1, Admit: func(int64) error { return nil }}
		want := w.bounded(at, r, nil)
		for first := int64(2); first <= now.LastSeq; first++ {
			got := w.bounded(at, r, &postgres.End{First: first})
			if errors.Is(got.err, reads.ErrShortEnd) {
				continue
			}
			made++
			if diff := cmp.Diff(want.String(), got.String()); diff != "" {
				w.Errorf("%s from %d, %d tokens of\n%s\n%.3000s", at.ID, first, r.MaxTokens, w.must(http.StatusOK, "GET", "/v1/sessions/"+at.ID+"/messages", "").Body, diff)
				return made
			}
		}
	}
	return made
}

// TestAnEndIsReadBehindTheNewestCheckpoint reads ends that were chosen before a compaction made the view what it is: they
// may begin before the checkpoint's end, or the view may fit by now.
func TestAnEndIsReadBehindTheNewestCheckpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	at := session.Address{Tenant: w.tenant, ID: strings.TrimPrefix(w.compacted("openai-chat"), "/v1/sessions/")}
	now, err := w.store.Session(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	made, short := 0, 0
	for first := int64(1); first <= now.LastSeq; first++ {
		for _, limit := range []int64{now.ContextTokens / 2, now.ContextTokens * 3 / 4, now.ContextTokens} {
			r := reads.Request{MaxTokens: limit, Pending: wire.KeepPending, Largest: -1, Admit: func(int64) error { return nil }}
			got := w.bounded(at, r, &postgres.End{First: first})
			if errors.Is(got.err, reads.ErrShortEnd) {
				short++
				continue
			}
			made++
			if want := w.bounded(at, r, nil); want.String() != got.String() {
				t.Fatalf("from %d, %d tokens: %s\nwant %s", first, limit, got, want)
			}
		}
	}
	if made < 10 || short < 3 {
		t.Errorf("%d views were made, of %d the end was too short", made, short)
	}
}

// wander appends an arbitrary conversation. Some messages of every second one are removed.
func (w *world) wander(rng *rand.Rand, at session.Address, f session.Format, wild bool) {
	w.Helper()
	path := "/v1/sessions/" + at.ID
	said := strs(compacttest.Session(rng, f, compacttest.Options{Messages: 160, Wild: wild}))
	w.must(http.StatusCreated, "PUT", path, fmt.Sprintf(`{"format":%q}`, f))
	w.must(http.StatusCreated, "POST", path+"/messages", batch(string(f), said...))
	for seq := int64(9); rng.IntN(2) == 0 && seq < 150; seq += 50 {
		if _, _, err := w.store.Remove(w.Context(), at, seq, nil); err != nil {
			w.Fatal(err)
		}
	}
}

// boundedView is an answer with a bounded view, or why there is none.
type boundedView struct {
	body string
	err  error
}

func (b boundedView) String() string {
	return fmt.Sprint(b.err, omittedUnits.ReplaceAllString(b.body, `"omitted":{`))
}

// bounded makes a view of the end of a session's log, or of the whole log.
func (w *world) bounded(at session.Address, r reads.Request, end *postgres.End) (made boundedView) {
	w.Helper()
	var stored postgres.View
	err := w.store.ViewInto(w.Context(), at, postgres.ViewRead{MaxTokens: r.MaxTokens, Largest: r.Largest}, &stored)
	switch {
	case err == nil && end != nil:
		err = w.store.FillEnd(w.Context(), at, &stored, *end)
	case err == nil:
		err = r.Fill(w.Context(), w.store, at, &stored)
	}
	if err != nil {
		w.Fatal(err)
	}
	view, notes, err := r.Make(w.Context(), &stored)
	if err != nil {
		return boundedView{err: err}
	}
	body := reads.AppendHead(nil, at.ID, view, notes)
	for i, message := range view.Bodies {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, message...)
	}
	return boundedView{body: string(append(append(body, view.Tail...), "]}"...))}
}

func TestMessagesWithoutACheckpointAreCompressed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"format":"openai-chat"}`)
	for n := range 8 {
		w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user(fmt.Sprint(n, strings.Repeat(" the same", 500)))))
	}
	for name, server := range map[string]http.Handler{"whole": w.server, "piece by piece": w.streaming()} {
		plain := w.asked(server, "/v1/sessions/s/context")
		packed := w.asked(server, "/v1/sessions/s/context", "Accept-Encoding", "zstd")
		if sent := packed.Body.Len(); sent > plain.Body.Len()/5 || plainOf(packed) != plainOf(plain) {
			t.Errorf("%s: %d bytes of %d, equal: %t", name, sent, plain.Body.Len(), plainOf(packed) == plainOf(plain))
		}
	}
}

func TestAViewWithoutZstdIsThatOfItsOwnCheckpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	path := w.compacted("openai-chat")
	before := plainOf(w.ask("GET", path+"/checkpoints/1/context", ""))
	for range 2 { // the second time from memory
		for _, url := range []string{path + "/context", path + "/checkpoints/1/context", path + "/checkpoints/2/context"} {
			if plain, packed := plainOf(w.ask("GET", url, "")), plainOf(w.ask("GET", url, "", "Accept-Encoding", "zstd")); plain != packed {
				t.Errorf("%s: %.300s\nin zstd %.300s", url, plain, packed)
			}
		}
	}
	if after := plainOf(w.ask("GET", path+"/checkpoints/1/context", "")); after != before {
		t.Errorf("%.300s, it was %.300s", after, before)
	}
}

// TestTheEndHasWhatStaysWhereverItIs reads ends of logs in which something loads tools, or a provider's own compaction
// is, long before the end.
func TestTheEndHasWhatStaysWhereverItIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ends := w.streaming()
	for name, c := range map[string]struct {
		said []string
		has  string
	}{
		"compaction": {[]string{`{"role":"user","content":"a question"}`, `{"role":"assistant","content":[{"type":"compaction","content":"what was before"}]}`}, "what was before"},
		"tools": {[]string{
			`{"role":"user","content":"a question"}`,
			`{"role":"assistant","content":[{"type":"tool_use","id":"s","name":"search","input":{}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"s","content":[{"type":"tool_reference","tool_name":"deploy"}]}]}`,
		}, "deploy"},
	} {
		at := session.Address{Tenant: w.tenant, ID: name}
		said := c.said
		for range 400 {
			said = append(said, `{"role":"assistant","content":"an answer"}`, `{"role":"user","content":"a question of some words more"}`)
		}
		w.must(http.StatusCreated, "PUT", "/v1/sessions/"+at.ID, `{"format":"anthropic"}`)
		w.must(http.StatusCreated, "POST", "/v1/sessions/"+at.ID+"/messages", batch("anthropic", said...))
		want := w.bounded(at, reads.Request{MaxTokens: 500, Pending: wire.KeepPending}, nil)
		got := plainOf(w.asked(ends, "/v1/sessions/"+at.ID+"/context?max_tokens=500"))
		if !strings.Contains(got, c.has) || want.String() != (boundedView{body: strings.TrimPrefix(got, "200")}).String() {
			t.Errorf("%s: %.1000s\nwant %.1000s", name, got, want)
		}
	}
}
