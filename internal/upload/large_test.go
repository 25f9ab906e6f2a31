package upload_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/api/apitest"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/upload"
)

// TestAnInterruptedUploadKeepsWhatCame: what came before its sender was gone is stored.
func TestAnInterruptedUploadKeepsWhatCame(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t)
	content := toolOutput(12 << 20)
	r := httptest.NewRequestWithContext(t.Context(), "POST", uploads+"?more=true", io.MultiReader(strings.NewReader(content[:10_000_000]), goneReader{}))
	r.Header.Set("Authorization", "Bearer "+w.Key)
	r.Header.Set("Idempotency-Key", "k")
	recorder := httptest.NewRecorder()
	w.Server.ServeHTTP(recorder, r)
	at := recorder.Header().Get("Location")
	now := apitest.Decoded[upload.Answer](w, w.Must(http.StatusOK, "GET", at, ""))
	if recorder.Code < 400 || now.Offset != 10_000_000 || recorder.Header().Get("Upload-Offset") != "10000000" {
		t.Fatalf("%d; %+v", recorder.Code, now)
	}
	w.holds(apitest.Decoded[upload.UploadedResult](w, w.Must(http.StatusCreated, "POST", at+"?offset=10000000", content[10_000_000:])), content)
}

func TestAnUploadedResultComesBack(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t)
	for i, content := range []string{"", "x", "no line feed", toolOutput(3_000), toolOutput(400_000), toolOutput(9 << 20), "\x00\xff\xfe", strings.Repeat("x", 300_000)} {
		r := apitest.Decoded[upload.UploadedResult](w, w.Must(http.StatusCreated, "POST", uploads+"?tool=Bash&call_id=c"+fmt.Sprint(i), content))
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
	list := apitest.Decoded[struct{ Data []protocol.Result }](w, w.Must(http.StatusOK, "GET", uploads+"?limit=100", ""))
	if len(list.Data) != 8 || !strings.HasPrefix(list.Data[2].Ref, "u3-") {
		t.Errorf("%d are listed: %+v", len(list.Data), list.Data)
	}
}
