package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/varve-dev/varve/client"
)

// dialled returns a client of the world's server.
func (w *world) dialled() *client.Client {
	w.Helper()
	web := httptest.NewServer(w.server)
	w.Cleanup(web.Close)
	varve, err := client.Open(web.URL, w.key)
	if err != nil {
		w.Fatal(err)
	}
	return varve
}

func TestTheClientTakesOneCallAModelRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	varve, ctx := w.dialled(), t.Context()
	chat := varve.Session("chat", &client.Settings{Format: "openai-chat", WindowTokens: 20000, Metadata: map[string]string{"user": "u1"}})
	for n := range 12 {
		batch := client.Batch{Usage: &client.Usage{InputTokens: int64(100 * n), OutputTokens: 5}}
		for _, message := range turn("openai-chat", n, 2, 3000) {
			batch.Messages = append(batch.Messages, json.RawMessage(message))
		}
		view, err := chat.Step(ctx, batch, nil)
		if err != nil || view.OverWindow || len(view.Messages) == 0 {
			t.Fatalf("step %d: over its window: %t, %v", n, view.OverWindow, err)
		}
	}
	seq := int64(0)
	for m, err := range chat.Messages(ctx, 1) {
		if seq++; err != nil || m.Seq != seq {
			t.Fatalf("message %d: %+v, %v", seq, m, err)
		}
	}
	found, err := chat.Read(ctx)
	if err != nil || found.LastSeq != seq || found.LastUsage == nil {
		t.Errorf("%d messages were read: %+v, %v", seq, found, err)
	}
	if run, err := client.CompactSession.With(ctx, varve, client.Options{Query: client.Query{"wait": 60}}, "chat"); err != nil || !run.Value.State.Ended() {
		t.Fatalf("%+v, %v", run.Value, err)
	}
	runs := 0
	for _, err := range client.ListRuns.Each(ctx, varve, nil, "chat") {
		if runs++; err != nil {
			t.Fatal(err)
		}
	}
	for event, err := range varve.Events(ctx, 0, client.Query{"session": "chat"}) {
		if err != nil || event.Session == nil || *event.Session != "chat" {
			t.Fatalf("%+v, %v", event, err)
		}
		if event.Type == "session.compacted" {
			break
		}
	}
	if runs == 0 {
		t.Error("there are no runs")
	}
	stopped, stop := context.WithCancel(ctx)
	stop()
	for _, err := range varve.Events(stopped, 0, nil) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("events of a context that has ended: %v", err)
		}
	}
}

func TestTheClientsErrorsSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	varve, ctx := w.dialled(), t.Context()
	chat := varve.Session("a/b", &client.Settings{Format: "openai-chat", WindowTokens: 1000})
	large := json.RawMessage(`{"role":"user","content":[` + picture + "," + picture + `]}`)
	tests := map[string]struct {
		session *client.Session
		message any
		code    string
		pointer string
	}{
		"a session that is not there": {varve.Session("none", nil), json.RawMessage(user("x")), "not_found", ""},
		"a misspelt role":             {chat, json.RawMessage(`{"role":"usr"}`), "other_format", "/messages/0/role"},
		"no view":                     {chat, large, "window_exceeded", ""},
	}
	for name, test := range tests {
		_, err := test.session.Step(ctx, client.Batch{Messages: []any{test.message}}, client.Query{"wait": 0})
		problem := new(client.Error)
		if !errors.As(err, &problem) || problem.Code() != test.code || problem.Pointer() != test.pointer {
			t.Errorf("%s: %v", name, err)
		} else if appended := problem.Appended != nil; appended != (name == "no view") {
			t.Errorf("%s: appended: %t", name, appended)
		}
	}
}

// TestTheClientAsksAgainForALostAnswer has a connection break at each byte of an answer, in -short at some: no message is
// there twice.
func TestTheClientAsksAgainForALostAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	longest, tries, cut, stride := 1, 0, 0, 1
	whole := false // the first answer had fewer bytes
	if testing.Short() {
		stride = 17
	}
	web := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		recorder := httptest.NewRecorder()
		w.server.ServeHTTP(recorder, r)
		text := fmt.Sprintf("HTTP/1.1 %d OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", recorder.Code, recorder.Body.Len(), recorder.Body)
		longest = max(longest, len(text))
		if tries++; tries == 1 {
			whole = cut >= len(text)
			text = text[:min(cut, len(text))]
		}
		conn, _, err := rw.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = conn.Write([]byte(text))
		_ = conn.Close()
	}))
	defer web.Close()
	varve, err := client.Open(web.URL, w.key)
	if err != nil {
		t.Fatal(err)
	}
	varve.Sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	for ; cut < longest; cut += stride {
		tries = 0
		chat := varve.Session(fmt.Sprint("cut at ", cut), &client.Settings{Format: "openai-chat"})
		view, err := chat.Step(t.Context(), client.Batch{Messages: []any{json.RawMessage(user("hi"))}}, nil)
		if err != nil || len(view.Messages) != 1 || (tries != 2) != whole {
			t.Fatalf("cut at %d: %d messages after %d tries, %v", cut, len(view.Messages), tries, err)
		}
	}
	if longest < 200 {
		t.Errorf("the answers have %d bytes", longest)
	}
	for id := 0; id < cut; id += stride {
		log := w.ask("GET", "/v1/sessions/"+url.PathEscape(fmt.Sprint("cut at ", id))+"/messages", "").Body.String()
		if n := strings.Count(log, `"seq"`); n != 1 {
			t.Errorf("the session whose answer was cut at %d has %d messages", id, n)
		}
	}
}
