//go:build !race

package api_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/test/peers"
)

// TestWhatIsAppendedAsSchemasAllowIsReadAsOthersWant appends messages made from the providers' published schemas, as
// they are, and wants the log to have their bytes, and views, most of them on the way that reads no JSON, to keep the
// rules of others.
func TestWhatIsAppendedAsSchemasAllowIsReadAsOthersWant(t *testing.T) {
	t.Parallel()
	s := peers.NewSuite(t)
	w := newWorld(t)
	random := rand.New(rand.NewPCG(15, 8))
	const sessions = 20 // of each format
	for n := range sessions * len(session.Formats()) {
		f := session.Formats()[n%len(session.Formats())]
		path := fmt.Sprintf("/v1/sessions/%s-%d", f, n)
		w.must(http.StatusCreated, "PUT", path, fmt.Sprintf(`{"format":%q}`, f))
		maker := peers.NewGenerator(t, string(f), random)
		var appended []string
		for range 4 {
			body := string(maker.Message(t))
			if _, err := wire.Accept(f, []byte(body)); err != nil {
				w.must(http.StatusUnprocessableEntity, "POST", path+"/messages", batch(string(f), body))
				continue
			}
			w.must(http.StatusCreated, "POST", path+"/messages", batch(string(f), body))
			appended = append(appended, body)
		}
		w.checkLog(path, appended)
		for _, target := range []session.Format{f, session.Formats()[random.IntN(len(session.Formats()))]} {
			w.checkByPeers(s, path, target, peers.Models[random.IntN(len(peers.Models))], random.IntN(2) == 0)
		}
	}
	s.Report()
}

// checkLog wants the log to be what was appended, byte for byte.
func (w *world) checkLog(path string, want []string) {
	w.Helper()
	var log struct {
		Data []struct{ Message json.RawMessage }
	}
	w.must(http.StatusOK, "GET", path+"/messages", "").into(&log)
	var got []string
	for _, m := range log.Data {
		got = append(got, string(m.Message))
	}
	if !slices.Equal(got, want) {
		w.Errorf("%s: the log is %q, want %q", path, got, want)
	}
}

// checkByPeers reads a view, and holds it to the rules of others.
func (w *world) checkByPeers(s *peers.Suite, path string, target session.Format, model string, open bool) {
	w.Helper()
	pending := wire.SynthesizePending
	if open {
		pending = wire.KeepPending
	}
	var read struct {
		Messages []json.RawMessage
		System   json.RawMessage
	}
	got := w.ask("GET", fmt.Sprintf("%s/context?format=%s&model=%s&pending=%s", path, target, model, pending), "")
	if got.Code != http.StatusOK {
		s.Found(string(target), peers.Violation{By: "the API", What: fmt.Sprint("answers ", got.Code)}, fmt.Sprint(path, ": ", got.Body))
		return
	}
	got.into(&read)
	s.Check(path, &peers.View{Format: string(target), Models: []string{model}, System: read.System, Messages: read.Messages, Open: open})
}
