//go:build !race

package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

// BenchmarkViewOfASleeper reads the view of a session of 20 small messages while it is hot, and while it is cold.
func BenchmarkViewOfASleeper(b *testing.B) {
	w := newBenchWorld(b)
	w.files()
	w.work()
	messages := make([]string, 20)
	for i := range messages {
		messages[i] = user(fmt.Sprintf("message %d: lorem ipsum dolor sit amet", i))
	}
	for _, id := range []string{"hot", "cold"} {
		w.must(http.StatusCreated, "PUT", "/v1/sessions/"+id, "")
		w.must(http.StatusCreated, "POST", "/v1/sessions/"+id+"/messages", batch("openai-chat", messages...))
	}
	w.frozen("cold")
	w.must(http.StatusOK, "GET", "/v1/sessions/hot/context", "") // it has been frozen, too
	w.must(http.StatusOK, "GET", "/v1/sessions/hot/messages", "")
	for _, id := range []string{"hot", "cold"} {
		b.Run(id, func(b *testing.B) {
			answer := &sink{header: http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest("GET", "/v1/sessions/"+id+"/context", nil)
				r.Header["Authorization"] = []string{"Bearer " + w.key}
				answer.reset()
				if w.server.ServeHTTP(answer, r); answer.status != http.StatusOK {
					b.Fatal(answer.status)
				}
			}
			if w.isCold(id) != (id == "cold") {
				b.Errorf("%s: cold %t", id, w.isCold(id))
			}
		})
	}
}
