package api_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/upload"
)

const uploads = "/v1/sessions/s/results"

// TestAnUploadThatLeavesAViewIsOneCallAway: upload, message, compaction, and the whole of it read back by the ref that
// the view names.
func TestAnUploadThatLeavesAViewIsOneCallAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"window_tokens":30000,"policy":{"trigger":1,"hard":1,"summarise":{"enabled":false},"truncate":{"enabled":false},"trim":{"enabled":true}}}`)
	content := strings.Repeat("compiling package of wörter\n", 100_000)
	r := decoded[upload.UploadedResult](w.must(http.StatusCreated, "POST", uploads+"?tool=Bash&call_id=call_up", content))
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
	if got := w.must(http.StatusOK, "GET", uploads+"/"+r.Ref+"?raw=true", "").Body.String(); got != content {
		t.Errorf("%s brings %d other bytes back", r.Ref, len(got))
	}
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

// TestAnExportListsWhatItDoesNotHave: the bytes of uploads are not in an export, which says so; it can be imported.
func TestAnExportListsWhatItDoesNotHave(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "{}")
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user("hello")))
	r := decoded[upload.UploadedResult](w.must(http.StatusCreated, "POST", uploads+"?media_type=image/png", "\x89PNG"))
	w.must(http.StatusAccepted, "POST", uploads+"?more=true", "unfinished")
	text := w.must(http.StatusOK, "GET", "/v1/sessions/s/export", "").Body.String()
	want := fmt.Sprintf(`"uploads":[{"ref":%q,"media_type":"image/png","bytes":4,"sha256":%q}]`, r.Ref, r.SHA256)
	if strings.Count(text, want) != 1 {
		t.Errorf("the export lacks %s:\n%s", want, text)
	}
	w.must(http.StatusNoContent, "DELETE", "/v1/sessions/s", "")
	w.must(http.StatusCreated, "POST", "/v1/imports", text)
}
