package upload_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/api/apitest"
	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/upload"
)

// append appends messages to session s.
func (w *world) append(messages ...string) {
	w.Helper()
	w.MustAnswer(http.StatusCreated, "POST", "/v1/sessions/s/messages", `{"format":"openai-chat","messages":[`+strings.Join(messages, ",")+`]}`)
}

// call returns a call of a tool and its result.
func call(id, text string) []string {
	return []string{
		fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":%q,"type":"function","function":{"name":"Bash","arguments":"{}"}}]}`, id),
		fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":%q}`, id, text),
	}
}

// TestAnUploadThatLeavesAViewIsOneCallAway: upload, message, compaction, and the whole of it read back by the ref that
// the view names.
func TestAnUploadThatLeavesAViewIsOneCallAway(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t)
	w.MustAnswer(http.StatusOK, "PATCH", "/v1/sessions/s", `{"window_tokens":30000,"policy":{"trigger":1,"hard":1,"summarise":{"enabled":false},"truncate":{"enabled":false},"trim":{"enabled":true}}}`)
	content := toolOutput(3 << 20)
	r := apitest.Decoded[upload.UploadedResult](w, w.Must(http.StatusCreated, "POST", uploads+"?tool=Bash&call_id=call_up", content))
	w.append(append([]string{`{"role":"user","content":"go"}`}, call("call_up", r.Text)...)...)
	for n := range 30 {
		w.append(call(fmt.Sprint("c", n), strings.Repeat("a line of the file\n", 100))...)
	}
	w.Work(jobs.Config{})
	w.MustAnswer(http.StatusOK, "PATCH", "/v1/sessions/s/policy", `{"trigger":0.3,"target":0.2}`)
	run := apitest.Decoded[session.Run](w, w.Must(http.StatusOK, "POST", "/v1/sessions/s/compact?wait=20", ""))
	if run.Checkpoint == nil {
		t.Fatalf("nothing was compacted: %+v", run)
	}
	view := w.MustAnswer(http.StatusOK, "GET", "/v1/sessions/s/context", "").Body.String()
	if strings.Count(view, "compiling package") > 30 || !strings.Contains(view, "read_result "+r.Ref) {
		t.Errorf("the view does not name %s: %s", r.Ref, view)
	}
	w.holds(r, content)
	detail := apitest.Decoded[protocol.CheckpointDetail](w, w.Must(http.StatusOK, "GET", fmt.Sprintf("/v1/sessions/s/checkpoints/%d?manifest=all", *run.Checkpoint), ""))
	named := 0
	for _, e := range detail.Manifest.Entries {
		if e.Source != r.Ref {
			continue
		}
		named++
		if got := w.MustAnswer(http.StatusOK, "GET", uploads+"/"+e.Ref+"?raw=true", "").Body.String(); got != r.Text {
			t.Errorf("%s has other bytes than the message", e.Ref)
		}
	}
	if named != 1 {
		t.Errorf("%d entries of the manifest name %s: %+v", named, r.Ref, detail.Manifest.Entries[:min(3, len(detail.Manifest.Entries))])
	}
	if n := w.Count(`SELECT count(*) FROM results WHERE seq = 3 AND body_id IS NULL`); n != 1 {
		t.Errorf("%d results of the message have no body of their own", n)
	}
}

// TestAnExportListsWhatItDoesNotHave: the bytes of uploads are not in an export, which says so.
func TestAnExportListsWhatItDoesNotHave(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t)
	w.append(`{"role":"user","content":"hello"}`)
	r := apitest.Decoded[upload.UploadedResult](w, w.Must(http.StatusCreated, "POST", uploads+"?media_type=image/png", "\x89PNG"))
	w.MustAnswer(http.StatusAccepted, "POST", uploads+"?more=true", "unfinished")
	text := w.Must(http.StatusOK, "GET", "/v1/sessions/s/export", "")
	want := fmt.Sprintf(`"uploads":[{"ref":%q,"media_type":"image/png","bytes":4,"sha256":%q}]`, r.Ref, r.SHA256)
	if strings.Count(text, want) != 1 {
		t.Errorf("the export lacks %s:\n%s", want, text)
	}
}

// TestUploadsComeBackFromAnArchive archives a session with an upload that is complete and one that is not.
func TestUploadsComeBackFromAnArchive(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t)
	w.Work(jobs.Config{})
	content := toolOutput(600_000)
	whole := apitest.Decoded[upload.UploadedResult](w, w.Must(http.StatusCreated, "POST", uploads+"?tool=Bash", content))
	at := w.MustAnswer(http.StatusAccepted, "POST", uploads+"?more=true", content[:400_000]).Header().Get("Location")
	before := w.MustAnswer(http.StatusOK, "GET", at, "").Body.String()
	w.MustAnswer(http.StatusAccepted, "POST", "/v1/sessions/s/archive", "")
	w.Until("it is archived", func() bool {
		return strings.Contains(w.Must(http.StatusOK, "GET", "/v1/sessions/s/archive", ""), `"state":"archived"`)
	})
	w.MustAnswer(http.StatusAccepted, "POST", "/v1/sessions/s/unarchive", "")
	w.Until("it is back", func() bool { return w.Ask("GET", "/v1/sessions/s", "").Code == http.StatusOK })
	w.holds(whole, content)
	if after := w.MustAnswer(http.StatusOK, "GET", at, "").Body.String(); after != before {
		t.Errorf("the unfinished one was %s, and is %s", before, after)
	}
	w.holds(apitest.Decoded[upload.UploadedResult](w, w.Must(http.StatusCreated, "POST", at+"?offset=400000", content[400_000:])), content)
}
