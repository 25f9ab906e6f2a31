//go:build !race

package api_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// TestAnInterruptedUploadKeepsWhatCame: what came before its sender was gone is stored.
func TestAnInterruptedUploadKeepsWhatCame(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t)
	content := toolOutput(12 << 20)
	r := httptest.NewRequestWithContext(t.Context(), "POST", uploads+"?more=true", io.MultiReader(strings.NewReader(content[:10_000_000]), goneReader{}))
	r.Header.Set("Authorization", "Bearer "+w.key)
	r.Header.Set("Idempotency-Key", "k")
	recorder := httptest.NewRecorder()
	w.server.ServeHTTP(recorder, r)
	at := recorder.Header().Get("Location")
	now := decoded[protocol.Upload](w.must(http.StatusOK, "GET", at, ""))
	if recorder.Code < 400 || now.Offset != 10_000_000 || recorder.Header().Get("Upload-Offset") != "10000000" {
		t.Fatalf("%d; %+v", recorder.Code, now)
	}
	w.holds(decoded[protocol.UploadedResult](w.must(http.StatusCreated, "POST", at+"?offset=10000000", content[10_000_000:])), content)
}

func TestAnUploadedResultComesBack(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t)
	for i, content := range []string{"", "x", "no line feed", toolOutput(3_000), toolOutput(400_000), toolOutput(9 << 20), "\x00\xff\xfe", strings.Repeat("x", 300_000)} {
		r := decoded[protocol.UploadedResult](w.must(http.StatusCreated, "POST", uploads+"?tool=Bash&call_id=c"+fmt.Sprint(i), content))
		w.holds(r, content)
		if r.Seq != 0 || r.Part != i+1 || r.Tool != "Bash" || r.CallID != "c"+fmt.Sprint(i) || r.Category != "non-reproducible" {
			t.Errorf("%+v", r)
		}
		if lines := int64(strings.Count(content, "\n")); r.Lines < lines || r.Lines > lines+1 || len(content) > 100 && r.Tokens < int64(len(content)/8) {
			t.Errorf("%s has %d lines and %d tokens", r.Ref, r.Lines, r.Tokens)
		}
		if len(content) < 5000 && i != 6 && r.Text != content || len(content) > 5000 && !strings.Contains(r.Text, "read_result "+r.Ref) {
			t.Errorf("%s has the text %.200q", r.Ref, r.Text)
		}
	}
	list := decoded[struct{ Data []protocol.Result }](w.must(http.StatusOK, "GET", uploads+"?limit=100", ""))
	if len(list.Data) != 8 || !strings.HasPrefix(list.Data[2].Ref, "u3-") {
		t.Errorf("%d are listed: %+v", len(list.Data), list.Data)
	}
}

// TestAnUploadThatLeavesAViewIsOneCallAway: upload, message, compaction, and the whole of it read back by the ref that
// the view names.
func TestAnUploadThatLeavesAViewIsOneCallAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"window_tokens":30000,"policy":{"trigger":1,"hard":1,"summarise":{"enabled":false},"truncate":{"enabled":false}}}`)
	content := toolOutput(3 << 20)
	r := decoded[protocol.UploadedResult](w.must(http.StatusCreated, "POST", uploads+"?tool=Bash&call_id=call_up", content))
	messages := []string{
		user("go"),
		`{"role":"assistant","content":null,"tool_calls":[{"id":"call_up","type":"function","function":{"name":"Bash","arguments":"{}"}}]}`,
		`{"role":"tool","tool_call_id":"call_up","content":` + strconv.Quote(r.Text) + `}`,
	}
	messages = append(messages, conversation(30, 500)...)
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", messages...))
	w.work()
	w.must(http.StatusOK, "PATCH", "/v1/sessions/s/policy", `{"trigger":0.3,"target":0.2}`)
	if w.compact("s", 0) == nil {
		t.Fatal("nothing was compacted")
	}
	view := w.must(http.StatusOK, "GET", "/v1/sessions/s/context", "").Body.String()
	if strings.Count(view, "compiling package") > 30 || !strings.Contains(view, "read_result "+r.Ref) {
		t.Errorf("the view does not name %s: %s", r.Ref, view)
	}
	w.holds(r, content)
	newest := decoded[session.Session](w.must(http.StatusOK, "GET", "/v1/sessions/s", "")).Checkpoint
	detail := decoded[protocol.CheckpointDetail](w.must(http.StatusOK, "GET", fmt.Sprintf("/v1/sessions/s/checkpoints/%d?manifest=all", newest), ""))
	named := 0
	for _, e := range detail.Manifest.Entries {
		if e.Source != r.Ref {
			continue
		}
		named++
		if got := w.must(http.StatusOK, "GET", uploads+"/"+e.Ref+"?raw=true", "").Body.String(); got != r.Text {
			t.Errorf("%s has other bytes than the message", e.Ref)
		}
	}
	if named != 1 {
		t.Errorf("%d entries of the manifest name %s: %+v", named, r.Ref, detail.Manifest.Entries[:min(3, len(detail.Manifest.Entries))])
	}
	w.exec(`DO $$ BEGIN IF EXISTS (SELECT FROM results WHERE seq = 3 AND body_id IS NOT NULL) OR NOT EXISTS (SELECT FROM results WHERE seq = 3) THEN RAISE 'it has a body'; END IF; END $$`)
}
