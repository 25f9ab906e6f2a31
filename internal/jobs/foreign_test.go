package jobs_test

import (
	"testing"

	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// What waits for its result stays in the tail, where it weighs what it did when it came. As the three messages of the
// session's own format that it is read as, it weighs more.
func TestTheCountersAreRightWhereMessagesOfAnotherFormatStayInTheTail(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.session("s")
	w.fill(at)
	w.appendAs(session.AISDK, at, []byte(`{"id":"m","role":"assistant","parts":[{"type":"step-start"},`+
		`{"type":"tool-Read","toolCallId":"a","state":"output-available","input":{"path":"f"},"output":"seen"},{"type":"step-start"},`+
		`{"type":"tool-Read","toolCallId":"b","state":"input-available","input":{"path":"g"}}]}`))
	w.work(jobs.Config{})
	w.settle()
	found, err := w.store.Session(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	snap, err := w.store.Snapshot(t.Context(), session.Key{Tenant: at.Tenant, Key: found.Key})
	if err != nil || snap.Base == nil {
		t.Fatalf("base %v, %v", snap.Base, err)
	}
	tail, err := w.store.Window(t.Context(), snap.Key, snap.Base.Through, snap.LastSeq)
	if err != nil || len(tail) != 1 {
		t.Fatalf("%d messages behind it, %v", len(tail), err)
	}
	if want := snap.Base.Tokens + tail[0].Tokens; found.ContextTokens != want {
		t.Errorf("the session counts %d tokens, its view has %d", found.ContextTokens, want)
	}
}

func (w *world) appendAs(f session.Format, at session.Address, body []byte) {
	w.Helper()
	m, err := wire.Inspect(f, body)
	if err != nil {
		w.Fatal(err)
	}
	said := wire.ShapeOf(f, &m)
	a := session.Append{Session: at, Format: f, Messages: []session.NewMessage{{
		Body: body, Role: m.Role, Tokens: m.Tokens, StartsUnit: m.StartsUnit, Flags: int32(m.Flags), Calls: said.Calls, Answers: said.Answers,
	}}}
	if _, _, err := w.store.Append(w.Context(), a); err != nil {
		w.Fatal(err)
	}
}
