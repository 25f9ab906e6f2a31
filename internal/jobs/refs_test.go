package jobs_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/readback"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

// parallelCalls returns a step of three calls at once in a format, whose results are a text, a short text, and blocks.
func parallelCalls(f session.Format, n int) [][]byte {
	var calls []string
	var view []wire.Stored
	for k := range 3 {
		calls = append(calls, fmt.Sprintf(`{"id":"c%d_%d","type":"function","function":{"name":"Read","arguments":"{\"path\":\"f%[1]d_%[2]d\"}"}}`, n, k))
	}
	add := func(body string) {
		view = append(view, wire.Stored{Format: session.OpenAIChat, Body: []byte(body), Seq: int64(len(view) + 1)})
	}
	add(`{"role":"assistant","content":"I read three files.","tool_calls":[` + strings.Join(calls, ",") + `]}`)
	text := func(k, lines int) string {
		return strings.Repeat(fmt.Sprintf(`line of file %d_%d with some text\n`, n, k), lines)
	}
	add(fmt.Sprintf(`{"role":"tool","tool_call_id":"c%d_0","content":"%s"}`, n, text(0, 120)))
	add(fmt.Sprintf(`{"role":"tool","tool_call_id":"c%d_1","content":"%s"}`, n, text(1, 3)))
	add(fmt.Sprintf(`{"role":"tool","tool_call_id":"c%d_2","content":[{"type":"text","text":"%s"},{"type":"text","text":"the end"}]}`, n, text(2, 140)))
	add(`{"role":"user","content":"go on"}`)
	return wiretest.Render(f, view, wire.Options{}).Bodies
}

// mixed is a session of one format whose messages were appended in another.
type mixed struct {
	at      session.Address
	of      session.Format
	results []loggedResult
	last    int64
}

// step appends a step and remembers its results by the names that they must have.
func (w *world) step(m *mixed, n int) {
	w.Helper()
	bodies := parallelCalls(m.of, n)
	w.appendLog(m.at, m.of, bodies)
	for _, body := range bodies {
		m.last++
		m.results = append(m.results, w.results(m.of, body, m.last)...)
	}
}

func (w *world) setFormat(at session.Address, f session.Format) {
	w.Helper()
	if _, _, err := w.store.Update(w.Context(), at, session.Change{Format: &f}, nil); err != nil {
		w.Fatal(err)
	}
}

var refs = regexp.MustCompile(`r\d+\.\d+-[0-9a-f]{4}`)

// oneRef holds a session to the names that its results have as they were appended.
func (w *world) oneRef(m *mixed, when string) {
	w.Helper()
	if run := w.newest(m.at); run.State != session.RunDone {
		w.Errorf("%s is %s: %s %v %v->%v", when, run.State, run.Reason, run.Error, *run.TokensBefore, *run.TokensAfter)
	}
	named := map[string]bool{}
	for _, r := range m.results {
		named[r.ref.String()] = true
		body, err := w.bodyOf(m.at, r.ref.String())
		if err != nil || !bytes.Equal(body, r.content) {
			w.Errorf("%s: %s brings back %d bytes of %d, %v", when, r.ref, len(body), len(r.content), err)
		}
	}
	rows, err := w.store.Results(context.Background(), m.at, persist.Filter{}, persist.Place{Part: -1}, 1000)
	if err != nil || len(rows) == 0 {
		w.Fatalf("%s: %d results, %v", when, len(rows), err)
	}
	for i := range rows {
		if !named[rows[i].Ref] {
			w.Errorf("%s: a result is persisted as %s, part %d of message %d, which is not how it was appended: it has %v", when, rows[i].Ref, rows[i].Part, rows[i].Seq, named)
		}
	}
	shown := 0
	for _, body := range w.view(m.at) {
		for _, ref := range refs.FindAllString(string(body), -1) {
			shown++
			if !named[ref] {
				w.Errorf("%s: the view names %s", when, ref)
			}
		}
	}
	if shown == 0 {
		w.Errorf("%s: the view names no result", when)
	}
	for seq := range m.last {
		parts, err := readback.Parts(context.Background(), w.store, m.at, seq+1)
		if err != nil {
			w.Fatal(err)
		}
		for _, p := range parts {
			if p.Kind == wire.Result && !named[p.Ref] {
				w.Errorf("%s: message %d is said to have %s", when, seq+1, p.Ref)
			}
		}
	}
}

// TestARefFromBeforeEngineVersion7HoldsForEver reads what such an engine named by the numbers that the parts of a message
// have in the format of its session.
func TestARefFromBeforeEngineVersion7HoldsForEver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, own := range session.Formats() {
		for _, of := range session.Formats() {
			if of == own {
				continue
			}
			m := &mixed{at: w.sessionOf(fmt.Sprintf("%s in %s", of, own), 20_000), of: of}
			w.setFormat(m.at, own)
			bodies := parallelCalls(of, 0)
			w.appendLog(m.at, of, bodies)
			for i, body := range bodies {
				before := 0
				for _, form := range wire.TranslateMessage(own, wire.Stored{Format: of, Body: body, Seq: int64(i + 1)}) {
					facts, err := wire.Inspect(own, form.Body)
					if err != nil {
						t.Fatal(err)
					}
					for _, part := range facts.Parts {
						content := wire.ResultText(own, form.Body, part).Stored
						if part.Kind != wire.Result || len(content) == 0 {
							continue
						}
						ref := session.NewResultRef(int64(i+1), before+part.Index, sha256.Sum256(content))
						if got, err := w.bodyOf(m.at, ref.String()); err != nil || !bytes.Equal(got, content) {
							t.Errorf("%s: %s brings back %d bytes of %d, %v", m.at.ID, ref, len(got), len(content), err)
						}
					}
					before += max(len(facts.Parts), 1)
				}
			}
		}
	}
}
