package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// BenchmarkViewOfASleeper reads the views of a session of 20 small messages, and of one with a checkpoint, while they are
// cold, and while they are hot.
func BenchmarkViewOfASleeper(b *testing.B) {
	w := newBenchWorld(b)
	w.files()
	w.work()
	messages := make([]string, 20)
	for i := range messages {
		messages[i] = user(fmt.Sprintf("message %d: lorem ipsum dolor sit amet", i))
	}
	w.must(http.StatusCreated, "PUT", "/v1/sessions/messages", "")
	w.must(http.StatusCreated, "POST", "/v1/sessions/messages/messages", batch("openai-chat", messages...))
	paths := map[string]string{"messages": "/v1/sessions/messages", "checkpoint": w.compacted("openai-chat")}
	w.frozen("messages", "openai-chat")
	for _, of := range []string{"messages", "checkpoint"} {
		path := paths[of]
		b.Run(of+"/cold", func(b *testing.B) { w.readViews(b, path, true) })
		w.must(http.StatusOK, "GET", path+"/messages", "") // which brings it back
		b.Run(of+"/hot", func(b *testing.B) { w.readViews(b, path, false) })
	}
}

func (w *world) readViews(b *testing.B, path string, cold bool) {
	answer := &sink{header: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest("GET", path+"/context", nil)
		r.Header["Authorization"] = []string{"Bearer " + w.key}
		answer.reset()
		if w.server.ServeHTTP(answer, r); answer.status != http.StatusOK {
			b.Fatal(answer.status)
		}
	}
	if is := w.isCold(strings.TrimPrefix(path, "/v1/sessions/")); is != cold {
		b.Errorf("%s: cold %t", path, is)
	}
}
